package service

import (
	"testing"

	"hindsight/internal/join"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/mem"
)

// TestClaimedMode: the mode of an epoch whose record is lost is that of its rounds, though a live epoch has rounds
// that the baseline answers.
func TestClaimedMode(t *testing.T) {
	type round struct {
		epoch int64
		mode  codec.Mode
	}
	held := func(epoch int64, n int) (all []round) {
		for range n {
			all = append(all, round{epoch, codec.Shadow})
		}
		return all
	}
	for _, c := range []struct {
		name   string
		rounds []round
		want   codec.Mode
	}{
		{"the last is held back", append([]round{{1, codec.Live}, {2, codec.Live}}, held(2, 1)...), codec.Live},
		{"the last page is held back", append([]round{{1, codec.Shadow}, {2, codec.Live}}, held(2, 2000)...),
			codec.Live},
		{"shadow behind live", append([]round{{1, codec.Live}}, held(2, 700)...), codec.Shadow},
		{"another's behind shadow", append(held(2, 3), round{2, codec.External}), codec.Shadow},
		{"paused", []round{{1, codec.Live}, {2, codec.Paused}}, codec.Paused},
	} {
		t.Run(c.name, func(t *testing.T) {
			log := mem.New(mem.Options{})
			defer log.Close()
			j := &Joiner{topics: join.TopicsOf("m")}
			j.cfg.Log = log
			must := func(err error) {
				if err != nil {
					t.Helper()
					t.Fatal(err)
				}
			}
			must(log.Create(t.Context(), j.topics.Decisions, 1, stream.TopicOptions{}))
			w, _, err := log.Open(t.Context(), j.topics.Decisions, 0, stream.OpenOptions{})
			must(err)
			for i, r := range c.rounds {
				d := codec.Decision{N: int64(i + 1), ID: "x", Epoch: r.epoch, Mode: r.mode, Actions: []string{"a", "b"},
					Propensities: []float64{.5, .5}}
				if r.mode == codec.Shadow {
					d.Would = []float64{.25, .75}
				}
				_, err := w.Append(t.Context(), &stream.Record{Value: codec.AppendDecision(nil, &d)})
				must(err)
			}
			must(j.readDecisionClaims(t.Context(), 0, func(_, _, _ int64) {}))
			if mode, ok := j.lost.modeBehind(1); !ok || mode != c.want {
				t.Errorf("%v, %v; want %v", mode, ok, c.want)
			}
		})
	}
}
