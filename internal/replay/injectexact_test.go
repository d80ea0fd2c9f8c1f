package replay

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"hindsight/internal/access"
	"hindsight/internal/engine"
	"hindsight/internal/join"
	"hindsight/internal/latelosses"
	"hindsight/internal/loop"
	"hindsight/internal/model"
	"hindsight/internal/testkit/daily"
	"hindsight/internal/verify"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/kafkatest"
	"hindsight/pkg/stream/mem"
	"hindsight/pkg/stream/natstest"
)

// TestInjectEqualsBacktest: with one context in flight an injection makes the decisions of
// the backtest to the bit, from as many feedbacks, and finds the same losses, without delays,
// with delays some of which exceed the window, and in both orders.
func TestInjectEqualsBacktest(t *testing.T) {
	const rounds = 400
	engines := []struct {
		name string
		open func(t *testing.T) stream.Log
	}{
		{"mem", func(t *testing.T) stream.Log {
			log := mem.New(mem.Options{Clock: func() int64 { return time.Now().UnixNano() }})
			t.Cleanup(func() { log.Close() })
			return log
		}},
		{"mem in milliseconds", func(t *testing.T) stream.Log {
			log := mem.New(mem.Options{Clock: func() int64 { return time.Now().Truncate(time.Millisecond).UnixNano() }})
			t.Cleanup(func() { log.Close() })
			return log
		}},
		{"embedded", func(t *testing.T) stream.Log { return opened(t, "embedded:"+filepath.Join(t.TempDir(), "log")) }},
	}
	if !testing.Short() {
		engines = append(engines, []struct {
			name string
			open func(t *testing.T) stream.Log
		}{
			{"nats", func(t *testing.T) stream.Log { return opened(t, natstest.Start(t, natstest.Options{}).URL()) }},
			{"kafka", func(t *testing.T) stream.Log {
				addrs, _ := kafkatest.Fake(t, 1)
				return opened(t, "kafka://"+strings.Join(addrs, ","))
			}},
		}...)
	}
	for i, e := range engines {
		for k, c := range []struct {
			learner, delays string
			arrival, named  bool
			early           *model.Hurry
		}{{"dafa", "none", false, false, nil}, {"dafa", "exp:50", false, false, nil},
			{"egreedy:0.1", "exp:50", true, false, nil}, {"dafa", "exp:50,c=exp:5+never:0.1", false, true, nil},
			{"dafa", "exp:50+never:0.1", false, false, &model.Hurry{After: loop.Window{Rounds: 20}}},
			{"dafa", "exp:50+never:0.1", false, false, &model.Hurry{}}} {
			if inMemory := i < 2; !inMemory && !testing.Short() && !daily.Turn(t, i+k, 3) {
				continue
			}
			t.Run(fmt.Sprint(e.name, " ", c.delays, " arrival=", c.arrival, " early=", c.early), func(t *testing.T) {
				t.Parallel()
				var tr *Trial
				if c.named {
					tr = namedTrial(t, rounds, c.delays)
				} else {
					tr = trialOf(t, environment(t, "sigmoid", 1, rounds), c.learner, "100", c.delays)
				}
				tr.Model.Arrival = c.arrival
				if c.early != nil {
					tr.Model.Impute, tr.Model.DefaultLoss, tr.Model.Hurry = true, 1, c.early
				}
				if !c.arrival {
					tr.Model.Early = false
					tr.Model.Candidates = []loop.Candidate{{Kind: loop.BaselineCandidate},
						{Kind: loop.UniformCandidate}, {Kind: loop.LearnerCandidate},
						{Kind: loop.PolicyCandidate, Action: "lists"}}
					tr.Files = withLists(tr.Model, tr.Files)
				}
				want, trace, states := decisionsOf(t, tr)
				live, v := liveOn(t, e.open(t), tr, "", func(log stream.Log) {
					if got := livesOf(t, log); !slices.Equal(got, want) {
						t.Errorf("%d decisions, %s", len(got), firstOther(got, want))
					}
					if n := judgedAlike(t, log, states); n == 0 && !c.arrival {
						t.Error("no state of the candidates was compared")
					}
				})
				if v.ExitCode() != verify.Identical {
					t.Errorf("the logs do not verify: %s", said(v))
				}
				var played Result
				trace.match.Score(&played)
				played.setFates(trace.Outcomes, trace.late)
				for i := range played.Outcomes { // a live run leaves rounds waiting that the end of a backtest closes
					o, l := &played.Outcomes[i], &live.Outcomes[i]
					if o.Late == 0 || o.Imputed+o.Skipped == 0 || l.Late == 0 || l.Observed == 0 ||
						l.Observed > o.Observed {
						t.Errorf("%+v\n%+v", o.OutcomeFates, l.OutcomeFates)
					}
					o.OutcomeFates, l.OutcomeFates = OutcomeFates{}, OutcomeFates{}
					o.Lateness, l.Lateness = latelosses.Comparison{}, latelosses.Comparison{}
				}
				found := func(r *Result) string {
					return asJSON(t, r.MeanLoss) + " " + asJSON(t, r.Regret) + asJSON(t, r.Outcomes) +
						asJSON(t, r.Budgets)
				}
				if got, want := found(live), found(&played); got != want {
					t.Errorf("live it was %s, the backtest found %s", got, want)
				}
			})
		}
	}
}

func opened(t *testing.T, log string) stream.Log {
	t.Helper()
	e, err := engine.Open(t.Context(), engine.Options{Log: log, Listen: "127.0.0.1:0", Requests: access.None})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e.Log
}

// exact is what a decision says of the learner, to the bit.
func exact(d *codec.Decision) string {
	return fmt.Sprintf("%d through %d plays %d of %x with %x at %x", d.N, d.LearnedThrough, d.Action, d.Propensities,
		d.Gamma, d.Prices)
}

// withLists adds a file of two policies that read the context.
func withLists(m *model.Model, files map[string][]byte) map[string][]byte {
	files = maps.Clone(files)
	if files == nil {
		files = map[string][]byte{}
	}
	files["lists"] = fmt.Appendf(nil, `{"hindsight_policies":1,"actions":[%q,%q]}
{"rules":[{"if":{"x1":[-9,0.4]},"then":%[1]q},{"if":{"h":[0,0.4]},"then":%[1]q},{"then":%[2]q}]}
{"rules":[{"if":{"x2":[-9,0.4]},"then":%[2]q},{"if":{"h":[0,0.6]},"then":%[2]q},{"then":%[1]q}]}`, m.Actions[0],
		m.Actions[1])
	return files
}

// judgedAlike compares what marks of a live system know of candidates with what a backtest knew after as many
// feedbacks, and returns how many it compared.
func judgedAlike(t *testing.T, log stream.Log, states map[int64][]byte) (n int) {
	t.Helper()
	topic := join.TopicsOf("replay").Feedback
	err := stream.Scan(t.Context(), log, topic, 0, stream.Earliest, math.MaxInt64, func(r *stream.Record) error {
		if r.Type != codec.TypeMark {
			return nil
		}
		m, err := codec.ParseFeedbackMark(r.Value)
		if want, ok := states[m.N]; ok && err == nil && m.N > 0 {
			if n++; !bytes.Equal(m.Candidates, want) {
				t.Errorf("live and in the backtest candidates are worth different things after feedback %d", m.N)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// decisionsOf returns what the backtest of a trial decides, and what it knows of candidates after each feedback.
func decisionsOf(t *testing.T, tr *Trial) ([]string, *trace, map[int64][]byte) {
	t.Helper()
	l, err := tr.learner()
	if err != nil {
		t.Fatal(err)
	}
	rules, err := tr.Model.Judging(tr.Files)
	if err != nil {
		t.Fatal(err)
	}
	ep := loop.Epoch{Number: 1, Rules: rules, Learner: l}
	b := newBacktest(ep, "replay", SecretSeed(tr.Seed), tr.Rounds, tr.Delays)
	var out []string
	judge, states := b.joiner.Judge(), map[int64][]byte{}
	judge.Begin(1, false, ep.Rules)
	b.each = func(int) {
		out = append(out, exact(b.dec))
		states[b.joiner.LastN()] = judge.Append(nil)
	}
	trace, err := b.run(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return out, trace, states
}

// livesOf returns what a live system decided.
func livesOf(t *testing.T, log stream.Log) (out []string) {
	scanned(t, log, join.TopicsOf("replay").Decisions, func(r *stream.Record) error {
		var d codec.Decision
		err := codec.ParseDecision(&d, r.Value)
		out = append(out, exact(&d))
		return err
	})
	return out
}

// firstOther says where two lists differ first.
func firstOther(got, want []string) string {
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			return fmt.Sprintf("live decision %s, in the backtest %s", got[i], want[i])
		}
	}
	return fmt.Sprintf("%d, want %d", len(got), len(want))
}
