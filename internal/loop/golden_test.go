package loop

import (
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"hash"
	"os"
	"strings"
	"testing"

	"hindsight/pkg/codec"
	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

var update = flag.Bool("update", false, "write the golden files")

// heart is the whole heart at work on one event log, made by a generator of its own:
// two partitions, two epochs, outcomes late, twice, wrong or never.
type heart struct {
	t        testing.TB
	random   uint64
	epochs   []Epoch
	replica  *Replica
	deciders []*Decider
	joiner   *caller
	now      int64
	offset   int64
	outcomes []outcomeAt
	sum      hash.Hash
	dec      codec.Decision
	buf      []byte
	feedback [][]byte // released, not yet learned
	learned  int64
	fates    [5]int
}

type outcomeAt struct {
	time    int64
	outcome codec.Outcome
}

func newHedge(t testing.TB) learner.Learner {
	t.Helper()
	var w [][][]float64
	for f := range 40 {
		rows := make([][]float64, 4)
		for a := range rows {
			rows[a] = []float64{float64((f*7+a*3)%11)/5 - 1, float64((f*5+a)%7)/3 - 1, float64((f+a)%3)/2 - 0.5}
		}
		w = append(w, rows)
	}
	class, err := oracle.NewLogisticClass([]string{"x", "vip"}, []string{"a", "b", "c", "d"}, w)
	if err != nil {
		t.Fatal(err)
	}
	reg, err := oracle.NewHedge(class, oracle.HedgeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := learner.NewSchedule("balanced", reg)
	if err != nil {
		t.Fatal(err)
	}
	return learner.NewDAFA(reg, s)
}

func newHeart(t testing.TB, l func(testing.TB) learner.Learner) *heart {
	h := &heart{t: t, random: 1, replica: NewReplica(), sum: sha256.New()}
	actions := []string{"a", "b", "c", "d"}
	h.epochs = []Epoch{
		{Number: 1, Learner: l(t), Rules: &Rules{Actions: actions, MaxActions: 4, Range: Range{Max: 1, Clip: true},
			Window: Window{Rounds: 30}}},
		{Number: 2, Learner: l(t), Rules: &Rules{Actions: actions, MaxActions: 4, Range: Range{Max: 1},
			Window: Window{Nanos: 90}, Impute: true, DefaultLoss: 0.5, Outcomes: Mean}},
	}
	h.joiner = newCaller(t, 2, codec.Limits{Heart: Heart, Pending: 100, Dedup: 200}, func(n int64) *Rules {
		return h.epochs[n-1].Rules
	})
	h.replica.Begin(h.epochs[0])
	for p := range 2 {
		h.deciders = append(h.deciders, NewDecider(h.replica, testSeed, "golden", p, 50))
	}
	return h
}

// next returns a number below n (SplitMix64, as published by Steele, Lea and Flood).
func (h *heart) next(n uint64) uint64 {
	h.random += 0x9e3779b97f4a7c15
	z := h.random
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return (z ^ z>>31) % n
}

func (h *heart) add(b []byte) { fmt.Fprintf(h.sum, "%d:", len(b)); h.sum.Write(b) }

// collect takes what the joiner released: when it is called must not matter.
func (h *heart) collect() {
	for _, f := range h.joiner.ready() {
		h.fates[f.Fate]++
		b := codec.AppendFeedback(nil, &f)
		h.add(b)
		h.feedback = append(h.feedback, b)
	}
}

// learn learns what was released up to now, at places that the event log fixes.
func (h *heart) learn() {
	h.collect()
	for _, b := range h.feedback {
		var f codec.Feedback
		if err := codec.ParseFeedback(&f, b); err != nil {
			h.t.Fatal(err)
		}
		if err := h.replica.Learn(&f, nil); err != nil {
			h.t.Fatal(err)
		}
		h.learned++
	}
	h.feedback = h.feedback[:0]
}

func (h *heart) decide(round int) {
	p := int(h.next(2))
	var features string
	if x := h.next(2000); x < 1900 {
		features = fmt.Sprintf(`"x":%v,"vip":%v`, float64(x)/1000-1, h.next(2) == 0)
	}
	raw := []byte(fmt.Sprintf(`{"id":"round-%d","features":{%s}}`, round, features))
	if res := h.deciders[p].Decide(&h.dec, raw, "", Source{Offset: int64(round), Through: int64(round + 1),
		Time: h.now}); res.Verdict != Decided {
		h.t.Fatalf("%+v", res)
	}
	h.buf = codec.AppendDecision(h.buf[:0], &h.dec)
	h.joiner.decide(Place{p, int64(round)}, h.now, h.dec)
	h.outcome(round)
}

func (h *heart) outcome(round int) {
	o := codec.Outcome{ID: h.dec.ID, Kind: codec.Loss, Value: float64(h.next(1000)) / 999}
	if h.dec.Action == round%4 {
		o.Value /= 4
	}
	for range h.next(3) {
		delay := int64(h.next(40))
		if h.next(8) == 0 {
			delay += int64(h.next(200))
		}
		h.outcomes = append(h.outcomes, outcomeAt{h.now + 1 + delay, o})
	}
}

// run drives the heart over 3,000 rounds and returns the hash of all decisions,
// feedback, rejects and learner states.
func (h *heart) run(batch int) string {
	decisions, rejects := sha256.New(), sha256.New() // apart from the feedback, which comes in batches
	for round := range 3000 {
		h.now += int64(h.next(4))
		for k := 0; k < len(h.outcomes); { // the oldest first; ties as they were made
			if o := h.outcomes[k]; o.time <= h.now {
				h.joiner.outcome(Place{0, h.offset}, o.time, o.outcome)
				h.offset++
				h.outcomes = append(h.outcomes[:k], h.outcomes[k+1:]...)
				continue
			}
			k++
		}
		h.decide(round)
		decisions.Write(h.buf)
		if round%batch == 0 {
			h.collect()
		}
		if round%7 == 0 {
			h.learn()
		}
		if round == 1700 {
			h.collect()
			h.state()
			h.replica.Begin(h.epochs[1])
		}
	}
	h.joiner.advance(End)
	h.learn()
	h.state()
	for _, r := range h.joiner.rejected() {
		r.Cut = 0 // the bits are those of joiners that logged no cuts
		rejects.Write(codec.AppendReject(nil, &r))
	}
	h.sum.Write(decisions.Sum(nil))
	h.sum.Write(rejects.Sum(nil))
	return hex.EncodeToString(h.sum.Sum(nil))
}

func (h *heart) state() {
	b, err := h.replica.Epoch().Learner.AppendBinary(nil)
	if err != nil {
		h.t.Fatal(err)
	}
	h.add(b)
}

// One event log gives the same bits whatever the batches, and on every machine: run
// it with GODEBUG=cpu.fma=off and with GOAMD64=v3 too.
func TestGoldenHeart(t *testing.T) {
	var got strings.Builder
	for _, l := range []struct {
		name string
		new  func(testing.TB) learner.Learner
	}{{"linear", newDAFA}, {"hedge", newHedge}} {
		want := ""
		for _, batch := range []int{1, 3, 64, 10_000} {
			h := newHeart(t, l.new)
			sum := h.run(batch)
			if want == "" {
				want = sum
			}
			if sum != want {
				t.Errorf("%s: batches of %d give other bits", l.name, batch)
			}
			if h.learned != 3000 {
				t.Errorf("%s: %d feedbacks of 3000 decisions", l.name, h.learned)
			}
			for fate := codec.Observed; fate <= codec.Skipped; fate++ {
				if h.fates[fate] < 50 {
					t.Errorf("%s: only %d rounds %v: the log does not try enough", l.name, h.fates[fate], fate)
				}
			}
		}
		fmt.Fprintf(&got, "%s %s\n", l.name, want)
	}
	const file = "testdata/heart.golden"
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("other bits than those kept in %s\n got\n%swant\n%s", file, got.String(), want)
	}
}
