package verify

import (
	"context"

	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// checkSurplus checks that what somebody put to partitions of contexts and outcomes that the model
// does not have was refused, each record, up to the last one that was.
func (v *verification) checkSurplus(ctx context.Context) error {
	for _, topic := range []string{v.topics.Contexts, v.topics.Outcomes} {
		n, err := v.Log.Partitions(ctx, topic)
		if err != nil {
			return err
		}
		for p := v.partitions; p < n; p++ {
			if err := v.checkRefused(ctx, topic, p); err != nil {
				return err
			}
		}
	}
	return nil
}

func (v *verification) checkRefused(ctx context.Context, topic string, partition int) error {
	c, err := v.openCursor(ctx, topic, partition)
	if err != nil {
		return err
	}
	x, outcomes, last := v.rejects, topic == v.topics.Outcomes, int64(-1)
	for key := range x.all {
		if key.outcomes == outcomes && key.partition == partition {
			last = max(last, key.offset)
		}
	}
	return c.walk(ctx, func(r *stream.Record) error {
		if r.Type != "" || r.Offset > last {
			return nil // the latter is not yet refused
		}
		info := x.find(rejectKey{outcomes, partition, r.Offset, r.Time})
		if info == nil {
			if !x.dropped(r.Time) {
				v.differ(at(c, r, "reject", "one: the partition is not the model's", "none"))
			}
			return nil
		}
		v.count(&v.report.Rejects, Tally{Checked: 1})
		field, want, got := x.compare(info, r)
		for _, reason := range append([]string{info.reason}, info.again...) {
			if field == "" && reason != codec.ReasonMalformed {
				field, want, got = "reason", codec.ReasonMalformed, reason
			}
		}
		if field != "" {
			v.differ(x.wrong(info, "", field, want, got))
		}
		return nil
	})
}
