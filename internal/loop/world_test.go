package loop

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"pgregory.net/rapid"

	"hindsight/pkg/codec"
	"hindsight/pkg/learner"
)

// A world is what a joiner may be given: the records of all partitions, with every
// trouble that logs and their writers make.
type world struct {
	partitions int
	maxPending int
	dedup      int
	rules      []*Rules // of epochs 1, 2, …
	decisions  [][]record
	outcomes   [][]record
}

// record is one record of a partition.
type record struct {
	outcome bool
	at      Place
	time    int64 // as the log has it: may jump backwards
	raw     []byte
	ceID    string
	pass    bool  // a control record
	from    int64 // a gap from..to of lost rounds, if positive
	to      int64
}

func (w *world) ruleOf(epoch int64) *Rules {
	if epoch < 1 || int(epoch) > len(w.rules) {
		return nil
	}
	return w.rules[epoch-1]
}

func genRules(t *rapid.T) *Rules {
	r := &Rules{MaxActions: 10, Range: Range{Min: 0, Max: 1}}
	if rapid.Bool().Draw(t, "wide") {
		r.Range.Min, r.Range.Max = -1, 2.5
	}
	r.Range.Clip = rapid.Bool().Draw(t, "clip")
	if rapid.Bool().Draw(t, "rounds") {
		r.Window.Rounds = int64(rapid.IntRange(1, 6).Draw(t, "window"))
	} else {
		r.Window.Nanos = int64(rapid.IntRange(1, 15).Draw(t, "window"))
	}
	r.Impute = rapid.Bool().Draw(t, "impute")
	r.DefaultLoss = 0.75
	r.Outcomes = rapid.SampledFrom([]Aggregate{First, First, First, Last, Sum, Mean, Max, Min}).Draw(t, "outcomes")
	r.Activation = rapid.IntRange(0, 3).Draw(t, "activation") == 0
	switch rapid.IntRange(0, 3).Draw(t, "order") {
	case 0:
		r.Arrival = true
	case 1:
		r.Early = true
	}
	return r
}

// nameOutcomes makes rules those of a model that names outcomes, of up to three stages.
func nameOutcomes(t *rapid.T, r *Rules) {
	r.Activation, r.Arrival, r.Early = false, false, false
	window := func(n int64) Window {
		if r.Window.Rounds > 0 {
			return Window{Rounds: n}
		}
		return Window{Nanos: 2 * n}
	}
	var scope learner.Scope
	for _, name := range []string{"cost", "loss", "quality"}[rapid.IntRange(0, 2).Draw(t, "unnamed"):] {
		o := OutcomeRule{Name: name, Range: r.Range, Window: window(int64(rapid.IntRange(1, 7).Draw(t, "window"))),
			Impute: rapid.Bool().Draw(t, "impute"), Default: .5,
			Take: Aggregate(rapid.IntRange(0, int(Min)).Draw(t, "take"))}
		if len(r.Named) == 0 || r.Window.compare(o.Window) < 0 {
			r.Window = o.Window
		}
		r.Named = append(r.Named, o)
		scope.Outcomes = append(scope.Outcomes, learner.Variable{Name: name, Lo: o.Range.Min, Hi: o.Range.Max})
	}
	text := "quality"
	if rapid.Bool().Draw(t, "two are used") && len(r.Named) > 1 {
		text = "2*quality - loss"
	}
	scope.Actions = []string{"a", "b"}
	worth, err := learner.NewFormula(text, &scope)
	if err != nil {
		panic(err)
	}
	r.Worth = worth
}

// genNamedWorld draws a world of models that name outcomes, and some that do not.
func genNamedWorld(rounds int) *rapid.Generator[*world] { return genWorldOf(rounds, nameOutcomes) }

// learnSoon gives rules provisional records.
func learnSoon(t *rapid.T, r *Rules) {
	r.Activation, r.Arrival, r.Early, r.Outcomes, r.Impute = false, false, false, First, true
	r.Provisional = &Provisional{Silence: rapid.SampledFrom([]float64{.5, .75}).Draw(t, "silence")}
	switch rapid.IntRange(0, 2).Draw(t, "after") {
	case 0:
		r.Provisional.After.Nanos = int64(rapid.IntRange(1, 9).Draw(t, "nanos"))
	case 1:
		r.Provisional.After.Rounds = int64(rapid.IntRange(1, 5).Draw(t, "rounds"))
	}
}

// genSoonWorld draws a world of models with provisional records, and some without.
func genSoonWorld(rounds int) *rapid.Generator[*world] { return genWorldOf(rounds, learnSoon) }

// genWorld draws a world of so many decisions a partition at most.
func genWorld(rounds int) *rapid.Generator[*world] { return genWorldOf(rounds, nil) }

func genWorldOf(rounds int, more func(*rapid.T, *Rules)) *rapid.Generator[*world] {
	return rapid.Custom(func(t *rapid.T) *world {
		w := &world{partitions: rapid.IntRange(1, 3).Draw(t, "P"), maxPending: 1000, dedup: 1000}
		if rapid.IntRange(0, 2).Draw(t, "bounded") == 0 {
			w.maxPending = rapid.IntRange(1, 5).Draw(t, "max pending")
		}
		if rapid.IntRange(0, 2).Draw(t, "forgets") == 0 {
			w.dedup = rapid.IntRange(0, 6).Draw(t, "dedup")
		}
		for range rapid.IntRange(1, 3).Draw(t, "epochs") {
			r := genRules(t)
			if more != nil && rapid.IntRange(0, 3).Draw(t, "named") > 0 {
				more(t, r)
			}
			w.rules = append(w.rules, r)
		}
		named := slices.ContainsFunc(w.rules, func(r *Rules) bool { return r.Named != nil })
		g := worldGen{t: t, w: w, named: named}
		for p := range w.partitions {
			w.decisions = append(w.decisions, g.decisions(p, rapid.IntRange(0, rounds).Draw(t, "rounds")))
		}
		w.outcomes = g.outcomes(rapid.IntRange(0, 3*rounds).Draw(t, "outcomes"))
		return w
	})
}

type worldGen struct {
	t    *rapid.T
	w    *world
	made []codec.Decision
	time []int64
	end  int64

	named bool // some outcomes are
}

// offset draws the next offset of a partition: gaps are common.
func (g *worldGen) offset(last int64) int64 {
	return last + 1 + int64(max(0, rapid.IntRange(-4, 2).Draw(g.t, "offset gap")))
}

// clock moves a log clock on, and sometimes shows one that jumped backwards.
func (g *worldGen) clock(now *int64) int64 {
	*now += int64(rapid.IntRange(0, 3).Draw(g.t, "clock"))
	if rapid.IntRange(0, 9).Draw(g.t, "jump") == 0 {
		return max(1, *now-6)
	}
	return *now
}

func (g *worldGen) decisions(p, rounds int) (out []record) {
	now, offset, n := int64(10), int64(-1), int64(0)
	epoch := 1
	for range rounds {
		offset = g.offset(offset)
		r := record{at: Place{p, offset}, time: g.clock(&now)}
		switch kind := rapid.IntRange(0, 19).Draw(g.t, "kind"); {
		case kind == 0:
			r.pass = true
		case kind == 1:
			r.from = n + 1
			n += int64(rapid.IntRange(1, 3).Draw(g.t, "lost"))
			r.to = n
		default:
			n++
			if epoch < len(g.w.rules) && rapid.IntRange(0, 5).Draw(g.t, "epoch") == 0 {
				epoch++
			}
			d := g.decision(p, n, int64(epoch))
			g.made, g.time = append(g.made, d), append(g.time, now)
			r.raw = codec.AppendDecision(nil, &d)
		}
		out = append(out, r)
	}
	g.end = max(g.end, now)
	return out
}

func (g *worldGen) decision(p int, n, epoch int64) codec.Decision {
	id := fmt.Sprintf("%d/%d", p, n)
	if len(g.made) > 0 && rapid.IntRange(0, 9).Draw(g.t, "repeat") == 0 {
		id = rapid.SampledFrom(g.made).Draw(g.t, "of").ID
	}
	return codec.Decision{
		Partition: p, N: n, ID: id, Epoch: epoch, LearnedThrough: (n - 1) * (n % 4) / 3, Learned: n / 3,
		Gamma: float64(n), Source: n,
		Time: 5, Actions: []string{"a", "b"}, Propensities: []float64{0.25, 0.75}, Action: int(n % 2),
		Context: []byte(`{"id":"` + id + `"}`),
	}
}

// outcomes draws outcomes of rounds that exist and of others, around their windows.
func (g *worldGen) outcomes(count int) [][]record {
	type timed struct {
		time int64
		r    record
	}
	parts := make([][]timed, g.w.partitions)
	for i := range count {
		p := rapid.IntRange(0, g.w.partitions-1).Draw(g.t, "outcome partition")
		x := timed{time: int64(rapid.IntRange(1, 60).Draw(g.t, "time"))}
		o := codec.Outcome{ID: "nobody-" + strconv.Itoa(rapid.IntRange(0, 2).Draw(g.t, "orphan"))}
		if len(g.made) > 0 && rapid.IntRange(0, 11).Draw(g.t, "known") > 0 {
			k := rapid.IntRange(0, len(g.made)-1).Draw(g.t, "round")
			o.ID = g.made[k].ID
			x.time = max(1, g.time[k]+int64(rapid.IntRange(-2, 14).Draw(g.t, "delay")))
			if act := rapid.IntRange(0, 5).Draw(g.t, "action"); act < 2 {
				o.Action = []string{"a", "b"}[act]
			}
		}
		g.fill(&o)
		x.r = record{outcome: true, raw: codec.AppendOutcome(nil, &o)}
		switch rapid.IntRange(0, 24).Draw(g.t, "odd") {
		case 0:
			x.r.raw = []byte{0xc1, byte(i)}
		case 1:
			x.r.raw, x.r.pass = nil, true
		case 2, 3:
			x.r.raw = codec.AppendOutcomeJSON(nil, &o)
		case 4, 5, 6, 7:
			x.r.ceID = strconv.Itoa(i % 3)
		}
		parts[p] = append(parts[p], x)
	}
	out := make([][]record, g.w.partitions)
	for p, part := range parts {
		slices.SortStableFunc(part, func(a, b timed) int { return cmp.Compare(a.time, b.time) })
		offset := int64(-1)
		for _, x := range part {
			offset = g.offset(offset)
			x.r.at, x.r.time = Place{p, offset}, x.time
			if rapid.IntRange(0, 9).Draw(g.t, "jump") == 0 {
				x.r.time = max(1, x.time-6)
			}
			out[p] = append(out[p], x.r)
		}
	}
	return out
}

func (g *worldGen) fill(o *codec.Outcome) {
	if g.named && rapid.IntRange(0, 4).Draw(g.t, "named") > 0 {
		g.fillNamed(o)
	} else {
		g.fillOne(o)
	}
	if rapid.Bool().Draw(g.t, "with id") {
		o.OutcomeID = strconv.Itoa(rapid.IntRange(0, 3).Draw(g.t, "outcome id"))
	}
}

func (g *worldGen) fillNamed(o *codec.Outcome) {
	o.Kind = codec.Named
	names := []string{"quality", "quality", "quality", "cost", "cost", "loss", "loss", "other"}
	for range rapid.IntRange(1, 3).Draw(g.t, "values") {
		v := codec.Value{Name: rapid.SampledFrom(names).Draw(g.t, "name")}
		if v.Withdrawn = rapid.IntRange(0, 7).Draw(g.t, "null") == 0; !v.Withdrawn {
			v.X = rapid.SampledFrom([]float64{0, 0.1, 0.25, 0.3, 0.7, 1, -0.5, 2, 3}).Draw(g.t, "value")
		}
		if !slices.ContainsFunc(o.Values, func(x codec.Value) bool { return x.Name == v.Name }) {
			o.Values = append(o.Values, v)
		}
	}
}

func (g *worldGen) fillOne(o *codec.Outcome) {
	switch k := rapid.IntRange(0, 9).Draw(g.t, "outcome"); {
	case k == 0:
		o.Kind = codec.Withdrawn
	case k < 3:
		o.Kind = codec.Activated
	case k < 5:
		o.Kind = codec.Reward
	default:
		o.Kind = codec.Loss
	}
	if o.Kind <= codec.Reward {
		o.Value = rapid.SampledFrom([]float64{0, 0.1, 0.25, 0.3, 0.7, 1, -0.5, 2, 3}).Draw(g.t, "value")
	}
}
