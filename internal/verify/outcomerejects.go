package verify

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"math"
	"slices"

	"hindsight/internal/follow"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// outcomeRejects compares the rejects of outcomes that are stored with those that follow from the cuts.
// A reject is stored when its cut is, at least once, and before the next mark.
type outcomeRejects struct {
	v     *verification
	c     *logCursor
	seed  maphash.Seed
	unmet map[rejectPlace]codec.Reject
	met   map[rejectPlace]uint64 // hashes of bytes
	gaps  []stretch              // cuts that were not replayed
	lost  int64                  // the last cut before a gap that has begun; -1: none has
	eras  []eraCut
	tails []int64 // offsets from which rejects are lost, as marks say
	again bool    // an input is, as a mark says since the last that was compared: cuts are not taken again
	own   int64   // offset behind the last first copy
	last  int64   // what the last mark said of that
	kept  int64   // cut of the first; 0: none was read
}

// rejectPlace is what a reject is of, and the cut that took it.
type rejectPlace struct {
	partition   int
	offset, cut int64
}

// eraCut says after which cut an era began.
type eraCut struct{ era, cut int64 }

func newOutcomeRejects(v *verification, c *logCursor) *outcomeRejects {
	return &outcomeRejects{v: v, c: c, seed: maphash.MakeSeed(), unmet: map[rejectPlace]codec.Reject{},
		met: map[rejectPlace]uint64{}, lost: math.MinInt64}
}

// expect takes note of rejects that must be stored.
func (x *outcomeRejects) expect(rejects []codec.Reject) {
	for i := range rejects {
		r := rejects[i]
		r.Fit()
		x.unmet[rejectPlace{r.Partition, r.Offset, r.Cut}] = r
	}
}

// gap begins a stretch of cuts that are not replayed, resume ends it.
func (x *outcomeRejects) gap(last int64) { x.lost = last }

func (x *outcomeRejects) resume(cut int64) {
	x.gaps = append(x.gaps, stretch{x.lost, cut})
	x.lost = -1
}

// void takes note of an era: what earlier ones told of later cuts is void.
func (x *outcomeRejects) void(era, cut int64) { x.eras = append(x.eras, eraCut{era, cut}) }

// exempt reports whether nobody knows what a reject should be.
func (x *outcomeRejects) exempt(r *codec.Reject) bool {
	return slices.ContainsFunc(x.eras, func(e eraCut) bool { return e.era > r.Era && e.cut < r.Cut }) ||
		slices.ContainsFunc(x.gaps, func(g stretch) bool { return g.from < r.Cut && r.Cut <= g.to }) ||
		x.lost != -1 && r.Cut > x.lost
}

// read compares what is stored up to the first reject of a later cut.
func (x *outcomeRejects) read(ctx context.Context, cut int64) (later *codec.Reject, err error) {
	for ; ; x.c.take() {
		r, err := x.c.head(ctx)
		if err != nil || r == nil {
			return nil, err
		}
		rej, err := codec.ParseReject(r.Value)
		if r.Type != "" || err != nil || rej.Topic != outcomesTopic || rej.Partition >= x.v.partitions {
			continue // not the joiner's, or reported where rejects are read
		}
		x.kept = cmp.Or(x.kept, rej.Cut)
		switch {
		case rej.Cut == 0 || x.exempt(&rej):
			x.v.count(&x.v.report.Rejects, Tally{TooOld: 1})
		case rej.Cut > cut:
			return &rej, nil
		default:
			x.compare(r, &rej)
		}
	}
}

func (x *outcomeRejects) compare(r *stream.Record, got *codec.Reject) {
	x.v.count(&x.v.report.Rejects, Tally{Checked: 1})
	place := rejectPlace{got.Partition, got.Offset, got.Cut}
	wrong := func(field, want, have string) { x.v.differ(at(x.c, r, field, want, have).in(0, got.ID)) }
	want, due := x.unmet[place]
	hash, met := x.met[place]
	switch {
	case due:
		delete(x.unmet, place)
		value := codec.Like(r.Value, codec.AppendReject(nil, &want))
		x.met[place], x.own = maphash.Bytes(x.seed, value), r.Offset+1
		if !bytes.Equal(value, r.Value) {
			wrong(differs(&want, got, value, r.Value))
		}
	case met && hash != maphash.Bytes(x.seed, r.Value):
		wrong("bytes", "those of the reject before it", "others")
	case !met:
		for other := range x.unmet {
			if other.partition == place.partition && other.offset == place.offset {
				wrong("cut", i64(other.cut), i64(place.cut))
				return
			}
		}
		wrong("offset", fmt.Sprintf("no reject: cut %d rejects no outcome there", place.cut),
			fmt.Sprintf("%s of outcomes[%d]@%d", got.Reason, place.partition, place.offset))
	}
}

// mark checks that all rejects before a mark are stored, and what it says of where they end.
func (x *outcomeRejects) mark(ctx context.Context, c *logCursor, r *stream.Record, m *codec.FeedbackMark,
	begun bool) error {
	later, err := x.read(ctx, m.Cut)
	if err != nil {
		return err
	}
	behind, again := len(x.tails), x.again
	gone := func() bool { // or its cut is not taken again
		return again || slices.ContainsFunc(x.tails[behind:], func(offset int64) bool { return offset < m.Rejects })
	}
	for place, rej := range x.unmet {
		if err := codec.ParseOutcome(new(codec.Outcome), rej.Bytes); follow.Newer(err) { // a newer joiner could read it
			return c.failed(r.Offset, err)
		}
		if x.c.cut() && (x.kept == 0 || place.cut <= x.kept) {
			x.v.count(&x.v.report.Rejects, Tally{TooOld: 1}) // retention may have dropped it
		} else {
			x.v.suspect(at(c, r, "rejects", fmt.Sprintf("the reject of outcomes[%d]@%d, by cut %d", place.partition,
				place.offset, place.cut), "none").in(0, rej.ID), &x.v.report.Rejects, gone)
		}
	}
	clear(x.unmet)
	x.again = false
	end := x.c.end
	if later != nil {
		end = x.c.offset()
	}
	if least, most := max(x.own, x.last), max(end, x.last); begun && (m.Rejects < least || m.Rejects > most) {
		x.v.suspect(at(c, r, "rejects", fmt.Sprintf("%d to %d", least, most), m.Rejects), nil, gone)
	}
	x.last = m.Rejects
	return nil
}

// finish reads the rest. A reject may be of a cut that was appended meanwhile.
func (x *outcomeRejects) finish(ctx context.Context, cut int64, feedback *logCursor) error {
	_, end, err := x.v.Log.Bounds(ctx, feedback.topic, 0)
	for ; err == nil; x.c.take() {
		later, failed := x.read(ctx, cut)
		if later == nil || failed != nil {
			return failed
		}
		if end == feedback.end {
			x.v.differ(at(x.c, &x.c.batch[x.c.i], "cut", fmt.Sprintf("at most %d, the last cut", cut), later.Cut).in(0,
				later.ID))
		}
	}
	return err
}
