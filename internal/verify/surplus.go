package verify

import (
	"context"

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
	if v.surplus == nil {
		v.surplus = map[rejectKey]*logCursor{}
	}
	v.surplus[rejectKey{topic == v.topics.Outcomes, partition, 0}] = c
	outcomes, last := topic == v.topics.Outcomes, int64(-1)
	for key := range v.rejects.all {
		if key.outcomes == outcomes && key.partition == partition {
			last = max(last, key.offset)
		}
	}
	return c.walk(ctx, func(r *stream.Record) error {
		if r.Type != "" || r.Offset > last {
			return nil // the latter is not yet refused
		}
		info := v.rejects.reject(rejectKey{outcomes, partition, r.Offset}, r.Time)
		switch {
		case info != nil:
			v.checkReject(info, r, r.Time, "")
			v.checkReason(info, "", malformed)
		case !v.rejects.dropped(r.Time):
			v.differ(at(c, r, "reject", "one: the partition is not the model's", "none"))
		}
		return nil
	})
}
