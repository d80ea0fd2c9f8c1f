package service

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// TestLostTail has a log of decisions lose two that were acknowledged, of which no feedback tells,
// under the process that wrote them: it says so by itself, whether it writes more or not, and does not
// use their numbers again.
func TestLostTail(t *testing.T) {
	for _, writes := range []bool{false, true} {
		t.Run(fmt.Sprint("writes=", writes), func(t *testing.T) {
			r := newRig(t, func(r *rig) { r.dc.wrote = new(wrote) })
			r.contexts("a", "b", "c")
			r.must(r.settle())
			r.look()
			r.must(r.d.Err())
			_, end, err := r.log.Bounds(t.Context(), "m.decisions", 0)
			r.must(err)
			r.must(r.log.DropTail("m.decisions", 0, end-2))
			if writes {
				_, err := r.d.out.Append(t.Context(),
					&stream.Record{Type: codec.TypeMark, Value: codec.AppendDecisionMark(nil,
						&codec.DecisionMark{V: 1, N: 3})})
				r.must(err)
				r.must(r.d.out.Flush(t.Context()))
			} else {
				r.look()
			}
			if err := r.d.Err(); !errors.Is(err, errLostTail) || fatal(err) {
				t.Fatalf("it says %v", err)
			}
			if writes {
				return
			}
			r.d.Close()
			r.d, err = OpenDecider(t.Context(), r.dc)
			r.must(err)
			r.expect(map[string]float64{"hindsight_lost_tails_total": 1})
			r.contexts("d")
			r.must(r.settle())
			var numbers []int64
			var gap codec.DecisionMark
			_, end, err = r.log.Bounds(t.Context(), "m.decisions", 0)
			r.must(err)
			r.must(stream.Scan(t.Context(), r.log, "m.decisions", 0, stream.Earliest, end,
				func(rec *stream.Record) error {
					var d codec.Decision
					if m, err := codec.ParseDecisionMark(rec.Value); rec.Type == codec.TypeMark && err == nil &&
						m.GapFrom > 0 {
						gap = m
					}
					if rec.Type == "" && codec.ParseDecision(&d, rec.Value) == nil {
						numbers = append(numbers, d.N)
					}
					return nil
				}))
			if gap.GapFrom != 2 || gap.GapTo != 3 || fmt.Sprint(numbers) != "[1 4 5 6]" {
				t.Errorf("rounds %d to %d are told as lost; decisions %v", gap.GapFrom, gap.GapTo, numbers)
			}
		})
	}
}

// TestLostTailOfAnother has a log lose decisions under a process that has just lost the partition to another: the new
// owner cannot know of them and uses their numbers again, and the old one says so. What was not lost it says nothing
// of.
func TestLostTailOfAnother(t *testing.T) {
	for i, lost := range []int64{0, 2, 0, 2, 0} {
		encoding, large := codec.Encoding(i/2%2), i == 4
		t.Run(fmt.Sprint(encoding, " lost=", lost, " large=", large), func(t *testing.T) {
			r := newRig(t, func(r *rig) { r.dc.Encoding = encoding })
			c := r.dc
			c.Partitions, c.written = 1, make([]wrote, 1)
			r.dc.wrote = &c.written[0]
			r.d.Close()
			var err error
			r.d, err = OpenDecider(t.Context(), r.dc)
			r.must(err)
			if large {
				r.d.recent.most = 1
			}
			r.contexts("a", "b", "c")
			r.must(r.settle())
			r.d.Close()
			_, end, err := r.log.Bounds(t.Context(), "m.decisions", 0)
			r.must(err)
			c.witness(t.Context())                    // of what it made itself; what it read back comes next
			r.d, err = OpenDecider(t.Context(), r.dc) // and loses it again
			r.must(err)
			r.d.Close()
			c.witness(t.Context())
			c.written[0].left.Load().due = time.Time{}
			r.must(r.log.DropTail("m.decisions", 0, end-lost))
			r.dc.wrote = new(wrote)
			r.d, err = OpenDecider(t.Context(), r.dc)
			r.must(err)
			r.contexts("d", "e", "f", "g")
			r.must(r.settle())
			c.witness(t.Context())
			if c.written[0].left.Load() != nil { // it is there: a later look says nothing either
				c.written[0].left.Load().due = time.Time{}
			}
			c.witness(t.Context())
			r.expect(map[string]float64{"hindsight_lost_tails_total": float64(lost / 2)})
		})
	}
}
