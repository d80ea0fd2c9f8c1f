package loop

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"hindsight/pkg/codec"
)

func state(t *rapid.T, r *Replica) []byte {
	b, err := r.Epoch().Learner.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// history draws feedbacks 1..n as deciders of epoch 1 would have caused them.
func history(t *testing.T, rt *rapid.T, n int) []codec.Feedback {
	r := newReplica(t, anyRules())
	d := NewDecider(r, testSeed, "shop", 0, 100)
	var dec codec.Decision
	var out []codec.Feedback
	learned := 0
	for i := range n {
		if res := d.Decide(&dec, genRequest(rt, fmt.Sprint("id", i)), "",
			Source{Offset: RequestSource}); res.Verdict != Decided {
			rt.Fatal(res.Err)
		}
		out = append(out, feedbackOf(&dec, int64(i+1), codec.Fate(rapid.IntRange(1, 4).Draw(rt, "fate")),
			rapid.Float64Range(0, 1).Draw(rt, "loss")))
		for learned < len(out) && rapid.Bool().Draw(rt, "learn") {
			if err := r.Learn(&out[learned], nil); err != nil {
				rt.Fatal(err)
			}
			learned++
		}
	}
	return out
}

// Replicas that followed the same log equally far are equal to the bit: with repeats,
// with decisions in between, and restored from any snapshot on the way.
func TestReplicasAreEqual(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		log := history(t, rt, rapid.IntRange(1, 25).Draw(rt, "n"))
		a, b := newReplica(t, anyRules()), newReplica(t, anyRules())
		d := NewDecider(b, testSeed, "shop", 0, 100)
		var dec codec.Decision
		for i := range log {
			if err := a.Learn(&log[i], nil); err != nil {
				rt.Fatal(err)
			}
			if rapid.Bool().Draw(rt, "decide") {
				d.Decide(&dec, genRequest(rt, ""), "", Source{Offset: RequestSource})
			}
			if rapid.IntRange(0, 4).Draw(rt, "snapshot") == 0 {
				s := state(rt, b)
				c := NewReplica()
				if err := c.Restore(Epoch{Number: 1, Rules: anyRules(), Learner: newDAFA(t)}, b.LearnedThrough(),
					s); err != nil {
					rt.Fatal(err)
				}
				if !bytes.Equal(s, state(rt, c)) || c.LearnedThrough() != int64(i) {
					rt.Fatal("a restored replica differs")
				}
				b = c
				d = NewDecider(b, testSeed, "shop", 0, 100)
			}
			for k := rapid.IntRange(0, i).Draw(rt, "again from"); k <= i; k++ {
				if err := b.Learn(&log[k], nil); err != nil {
					rt.Fatal(err)
				}
			}
			if !bytes.Equal(state(rt, a), state(rt, b)) || a.LearnedThrough() != b.LearnedThrough() ||
				b.LearnedThrough() != int64(i+1) {
				rt.Fatalf("replicas differ after feedback %d", i+1)
			}
		}
	})
}

func TestReplicaRefuses(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		log := history(t, rt, 4)
		if err := NewReplica().Learn(&log[0], nil); !errors.Is(err, ErrNoEpoch) {
			rt.Fatalf("before the first epoch: %v", err)
		}
		r := newReplica(t, anyRules())
		if err := r.Learn(&log[0], nil); err != nil {
			rt.Fatal(err)
		}
		was := state(rt, r)
		short, broken := log[1], log[1]
		short.Propensities = append([]float64{0}, short.Propensities...)
		broken.Context = []byte(`{"actions":`)
		for name, f := range map[string]*codec.Feedback{"gap": &log[2], "law": &short, "context": &broken} {
			err := r.Learn(f, nil)
			if err == nil || name == "gap" != errors.Is(err, ErrGap) || name != "gap" && !errors.Is(err,
				codec.ErrCorrupt) {
				rt.Fatalf("%s: %v", name, err)
			}
			if !bytes.Equal(was, state(rt, r)) || r.LearnedThrough() != 1 {
				rt.Fatalf("%s: it changed the replica", name)
			}
		}
	})
}

// A new epoch starts with its own learner; feedback of the older one is counted and
// not learned; a repeat of an epoch changes nothing.
func TestReplicaEpochs(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		log := history(t, rt, 6)
		r := newReplica(t, anyRules())
		for i := range 3 {
			if err := r.Learn(&log[i], nil); err != nil {
				rt.Fatal(err)
			}
		}
		r.Begin(Epoch{Number: 2, Rules: anyRules(), Learner: newDAFA(t)})
		fresh := state(rt, r)
		if err := r.Learn(&log[3], nil); err != nil || r.LearnedThrough() != 4 || !bytes.Equal(fresh, state(rt, r)) {
			rt.Fatalf("feedback of the older epoch: %v, through %d", err, r.LearnedThrough())
		}
		log[4].Epoch, log[4].Fate, log[4].Loss = 2, codec.Observed, 0.25
		if err := r.Learn(&log[4], nil); err != nil || bytes.Equal(fresh, state(rt, r)) ||
			r.Epoch().Learner.Learned() != 1 {
			rt.Fatalf("feedback of the new epoch: %v", err)
		}
		is := state(rt, r)
		r.Begin(Epoch{Number: 2, Rules: anyRules(), Learner: newDAFA(t)})
		r.Begin(Epoch{Number: 1, Rules: anyRules(), Learner: newDAFA(t)})
		if r.Epoch().Number != 2 || !bytes.Equal(is, state(rt, r)) {
			rt.Fatal("a repeated epoch began anew")
		}
		if err := NewReplica().Restore(Epoch{Number: 2, Rules: anyRules(), Learner: newDAFA(t)}, 5,
			is[:len(is)/2]); err == nil {
			rt.Fatal("half a snapshot was restored")
		}
	})
}
