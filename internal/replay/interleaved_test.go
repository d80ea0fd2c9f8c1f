package replay

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"hindsight/internal/follow"
	"hindsight/internal/join"
	"hindsight/internal/loop"
	"hindsight/internal/model"
	"hindsight/internal/verify"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// interleaved is a backtest in which a decision is made after as many feedbacks as a
// live system had learned, and not as soon as it could have.
type interleaved struct {
	*backtest
	released [][]byte // feedback
	next     int      // of them to learn
}

// learnThrough learns the released feedback up to number through.
func (b *interleaved) learnThrough(through int64) error {
	var f codec.Feedback
	for ; b.replica.LearnedThrough() < through; b.next++ {
		if b.next == len(b.released) {
			return fmt.Errorf("only %d feedbacks are released, the live system had learned %d", b.next, through)
		}
		if err := codec.ParseFeedback(&f, b.released[b.next]); err != nil {
			return err
		}
		if err := b.replica.Learn(&f, nil); err != nil {
			return err
		}
	}
	return nil
}

func (b *interleaved) release() {
	b.joiner.Ready(&b.ready)
	for i := range b.ready.Feedback {
		b.released = append(b.released, codec.AppendFeedback(nil, &b.ready.Feedback[i]))
	}
}

// round makes decision t as the live one was made, and fails unless it is the same to
// the bit.
func (b *interleaved) round(t int, want *codec.Decision) error {
	if err := b.learnThrough(want.LearnedThrough); err != nil {
		return err
	}
	res := b.decider.Decide(b.dec, b.match.rounds.Bytes(t), "",
		loop.Source{Offset: want.Source, Through: want.ContextsThrough, Time: want.Time})
	if res.Verdict != loop.Decided {
		return res.Err
	}
	if got, live := codec.AppendDecision(nil, b.dec), codec.AppendDecision(nil, want); !bytes.Equal(got, live) {
		return fmt.Errorf("decision %d is %+v, live it was %+v", t+1, *b.dec, *want)
	}
	b.match.Decided(b.dec)
	if err := b.join(t); err != nil {
		return err
	}
	b.release()
	return nil
}

// TestLiveEqualsBacktest holds that a backtest that is given the interleaving of a live
// run (LearnedThrough of each decision) makes its decisions to the bit and ends in the
// same state, for each learner and all orders; and that the logs verify.
func TestLiveEqualsBacktest(t *testing.T) {
	for _, c := range []struct {
		env, learner, delays string
		arrival              bool
		oracle               string // as flags or a model file name it; "": the environment's own
	}{
		{"sigmoid", "dafa", "exp:10", false, ""},
		{"sigmoid", "dafa", "exp:10", true, ""},
		{"sigmoid", "egreedy:0.1", "exp:10", true, ""},
		{"sigmoid", "exp4dale", "exp:10", false, ""},
		{"sigmoid", "exp4dale", "exp:10", true, ""},
		{"sigmoid", "exp4dale:plain,3000", "loss:0,20", false, ""},
		{"trap:3,40,80,160", "exp4dale", "", true, ""},
		{"blocks:9,8", "exp4dale:1500", "", false, ""},
		{"cyc:50,10", "exp4dale:plain", "", true, ""},
		{"linear:3,4", "dafa", "exp:10", false, model.Auto},
		{"linear:3,4", "dafa", "exp:10", false, "{kind: auto, share: steered, fourier: 4}"},
		{"linear:3,4", "dafa", "exp:10", false, model.Linear},
		{"linear:3,4", "dafa", "exp:10", false, model.Shared},
		{"linear:3,4", "egreedy:0.1", "exp:10", false, model.Hybrid},
		{"linear:3,4", "greedy", "exp:10", false, model.Fourier},
		{"linear:3,4", "dafa", "exp:10", false, "{kind: linear, beta: 1, forget: 0.99, fourier: 8, bandwidth: 2, " +
			"seed: 3}"},
		{"sigmoid", "elimination", "exp:10", false, ""},
		{"sigmoid", "dafa", "loss:0,20", true, "{kind: hedge, eta: 2, class: class.jsonl, unproved: true, " +
			"substitution: vovk}"},
		{"sigmoid", "greedy", "exp:10", true, ""},
		{"close:0.3", "dafa", "exp:10", false, "{kind: hedge, eta: 0.25, class: class.jsonl}"},
		{"sigmoid", "uniform", "loss:0,20", false, ""},
		{"sigmoid", "fixed", "burst:20", false, ""},
	} {
		t.Run(fmt.Sprint(c.env, " ", c.learner, " ", c.oracle, " arrival=", c.arrival), func(t *testing.T) {
			t.Parallel()
			env := environment(t, c.env, 1, 300)
			if c.delays == "" {
				c.delays = env.Delays
			}
			if c.learner == model.Fixed {
				c.learner += ":" + env.Actions[1]
			}
			tr := trialOf(t, env, c.learner, "200", c.delays)
			tr.Model.Arrival = c.arrival
			if c.oracle != "" {
				useOracle(t, tr, env, c.oracle)
			}
			if c.learner == model.DAFA && !c.arrival {
				tr.Model.DefaultOrder()
			}
			if err := UsePolicies(tr.Model, env); err != nil {
				t.Fatal(err)
			}
			_, v := liveLog(t, tr, func(log stream.Log) { sameAsLive(t, tr, log) })
			if v.ExitCode() != verify.Identical {
				t.Errorf("the logs do not verify: %s", said(v))
			}
		})
	}
}

// TestModesLiveEqualsBacktest holds that a backtest in a mode, or live with a guard that holds the learner back, makes
// the decisions of a live run in it, to the bit, and ends in the same state.
func TestModesLiveEqualsBacktest(t *testing.T) {
	for _, c := range []struct {
		env    string
		mode   codec.Mode
		oracle string
	}{{"linear:3,4", codec.Shadow, model.Linear}, {"linear:3,4", codec.Apprentice, model.Hybrid},
		{"sigmoid", codec.Shadow, ""}, {"linear:3,4", codec.Paused, model.Linear}, {"sigmoid", codec.Live, ""}} {
		t.Run(fmt.Sprint(c.env, c.mode), func(t *testing.T) {
			t.Parallel()
			env := environment(t, c.env, 1, 300)
			tr := trialOf(t, env, "dafa", "200", "exp:10")
			tr.Model.Mode, tr.Model.Baseline.Kind = c.mode, loop.UniformAction
			if c.mode == codec.Live {
				tr.Model.Guard = loop.GuardRules{Alpha: .05, LoseAtMost: .02}
			}
			if c.oracle != "" {
				useOracle(t, tr, env, c.oracle)
			}
			_, v := liveLog(t, tr, func(log stream.Log) { sameAsLive(t, tr, log) })
			if v.ExitCode() != verify.Identical {
				t.Errorf("the logs do not verify: %s", said(v))
			}
		})
	}
}

// useOracle gives a trial an oracle; the shared ones with few columns, to
// be quick.
func useOracle(t *testing.T, tr *Trial, env *Rounds, kind string) {
	t.Helper()
	m, err := model.Parse("oracle", []byte("oracle: "+kind))
	if !strings.HasPrefix(kind, "{") {
		m = model.Default()
		m.Oracle, err = model.ParseOracle(kind)
	}
	if err != nil {
		t.Fatal(err)
	}
	o := m.Oracle
	if o.Hashed > 0 {
		o.Hashed = 32
	}
	tr.Model.Oracle = o
	tr.Model.Resolve(env.Columns, len(env.Actions))
}

// sameAsLive replays the decisions of a live run and compares. It returns the backtest.
func sameAsLive(t *testing.T, tr *Trial, log stream.Log) *interleaved {
	topics := join.TopicsOf("replay")
	var live []codec.Decision
	scanned(t, log, topics.Decisions, func(r *stream.Record) error {
		var d codec.Decision
		err := codec.ParseDecision(&d, slices.Clone(r.Value))
		live = append(live, d)
		return err
	})
	l, err := tr.learner()
	if err != nil {
		t.Fatal(err)
	}
	b := &interleaved{backtest: newBacktest(loop.Epoch{Number: live[0].Epoch, Rules: tr.Model.Rules(), Learner: l},
		"replay", SecretSeed(tr.Seed), tr.Rounds, tr.Delays)}
	if len(live) != tr.Rounds.Len() {
		t.Fatalf("%d live decisions", len(live))
	}
	for i := range live {
		if err := b.round(i, &live[i]); err != nil {
			t.Fatal(err)
		}
	}
	err = errors.Join(b.joinOutcomes(b.match.Schedule.Rest(), len(live)-1), b.take(loop.End, nil, nil))
	if err != nil {
		t.Fatal(err)
	}
	b.release()
	audit := follow.New(log, "replay", model.Epoch, 1)
	n := 0
	err = stream.Scan(t.Context(), log, topics.Feedback, 0, stream.Earliest, math.MaxInt64,
		func(r *stream.Record) error {
			if r.Type == "" {
				n++
			}
			return audit.Take(t.Context(), r)
		})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.learnThrough(int64(n)); err != nil {
		t.Fatal(err)
	}
	got, err := b.replica.Epoch().Learner.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	want, err := audit.Replica().Epoch().Learner.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	if n < len(live)*5/6 || !bytes.Equal(got, want) {
		t.Errorf("after %d feedbacks the learner of the backtest is not that of the live system", n)
	}
	return b
}

// scan reads the data records of a topic of one partition.
func scanned(t *testing.T, log stream.Log, topic string, f func(r *stream.Record) error) {
	t.Helper()
	err := stream.Scan(t.Context(), log, topic, 0, stream.Earliest, math.MaxInt64, func(r *stream.Record) error {
		if r.Type != "" {
			return nil
		}
		return f(r)
	})
	if err != nil {
		t.Fatal(err)
	}
}
