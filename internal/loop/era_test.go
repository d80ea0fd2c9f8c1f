package loop

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"hindsight/internal/testkit/daily"
	"hindsight/pkg/codec"
)

// fault is something wrong that is planted in a joiner or its shell.
type fault int

const (
	noFault fault = iota
	forgetsInside
	repeatsCut
	goesBack
	eraWithoutDone
	limitsUnmarked
	sumOneLess
)

// eraWorld are logs that lose their tails, each its own part; joiners that go on by one rule; and an
// audit that replays what is left.
type eraWorld struct {
	*cutLog
	rng    *rand.Rand
	fault  fault
	now    int64
	n      []int64 // last round, by partition
	minted int
	ids    []string
	limits codec.Limits
	count  map[string]int

	j    *Joiner
	dead bool
	err  error // what a joiner found wrong with its log, or the audit
}

func newEraWorld(seed uint64, f fault) *eraWorld {
	w := &eraWorld{cutLog: &cutLog{}, rng: rand.New(rand.NewPCG(seed, 5)), fault: f, now: 1000, count: map[string]int{},
		dead: true}
	w.partitions = 1 + w.rng.IntN(2)
	w.n, w.inputs = make([]int64, w.partitions), make([][]record, 2*w.partitions)
	rules := &Rules{Range: Range{Max: 1}, Window: Window{Nanos: 1 + w.rng.Int64N(60)}, Arrival: w.rng.IntN(3) == 0}
	if w.rng.IntN(3) == 0 {
		rules.Window = Window{Rounds: 1 + w.rng.Int64N(8)}
	}
	if w.rng.IntN(3) == 0 {
		rules.Outcomes = Mean
	}
	if w.rng.IntN(3) == 0 {
		rules = namedRules(nil, "quality - cost/10")
		rules.Window.Nanos = 10 + w.rng.Int64N(50)
		rules.Named[0].Window.Nanos, rules.Named[1].Window = 1+w.rng.Int64N(12), rules.Window
	}
	w.rules = func(int64) *Rules { return rules }
	w.limits = codec.Limits{Heart: Heart, Pending: 1000, Dedup: 1000}
	return w
}

func (w *eraWorld) tick() int64 { w.now += 1 + w.rng.Int64N(3); return w.now }

func (w *eraWorld) add(q int, r record) {
	r.at = Place{q % w.partitions, int64(len(w.inputs[q]))}
	r.time = w.tick()
	r.outcome = q >= w.partitions
	w.inputs[q] = append(w.inputs[q], r)
}

func (w *eraWorld) decide(p int) {
	w.n[p]++
	w.minted++
	d := codec.Decision{Partition: p, N: w.n[p], ID: "x" + strconv.Itoa(w.minted), Epoch: 1,
		Actions: []string{"a", "b"}, Propensities: []float64{.25, .75}, Action: 1, Context: []byte("{}")}
	w.ids = append(w.ids, d.ID)
	w.add(p, record{raw: codec.AppendDecision(nil, &d)})
}

func (w *eraWorld) report(p int) {
	id := "nobody"
	if len(w.ids) > 0 && w.rng.IntN(20) > 0 {
		id = w.ids[max(0, len(w.ids)-1-w.rng.IntN(12))]
	}
	o := codec.Outcome{ID: id, Kind: codec.Loss, Value: float64(w.rng.IntN(5)) / 4}
	if w.rules(1).Named != nil && w.rng.IntN(10) > 0 {
		all := []codec.Value{cost(o.Value), quality(1 - o.Value), {Name: "cost", Withdrawn: true}}
		from := w.rng.IntN(3)
		o.Kind, o.Value, o.Values = codec.Named, 0, all[from:min(3, from+1+w.rng.IntN(2), max(2, from+1))]
	}
	if w.rng.IntN(10) == 0 {
		o.OutcomeID = "same"
	}
	w.add(w.partitions+p, record{raw: codec.AppendOutcome(nil, &o)})
}

// step cuts all there is.
func (w *eraWorld) step() {
	prev, next := w.positions(w.j), make([]int64, len(w.inputs))
	for q := range w.inputs {
		next[q] = int64(len(w.inputs[q]))
	}
	c := w.cut(w.j.LastCut()+1, w.now, prev, next)
	e := cutEntry{cut: c, prev: prev}
	err := w.takeFaulty(&e)
	w.entries = append(w.entries, e)
	if err != nil {
		w.err = err
		return
	}
	w.emit(true)
	if w.rng.IntN(4) == 0 && !w.dead {
		w.err = w.mark(w.j, w.limits)
	}
}

// takeFaulty takes a cut, and may spoil what is logged of it or how it is taken.
func (w *eraWorld) takeFaulty(e *cutEntry) error {
	spoils := w.fault != noFault && w.rng.IntN(8) == 0
	if w.fault == forgetsInside {
		return w.takeForgetting(e)
	}
	if err := w.take(w.j, e); err != nil || !spoils {
		return err
	}
	c := *e.cut
	c.Decisions = slices.Clone(c.Decisions)
	e.cut = &c
	switch {
	case w.fault == repeatsCut && c.Cut > 1:
		c.Cut--
	case len(c.Decisions) == 0:
	case w.fault == sumOneLess:
		r := &c.Decisions[0]
		r.Sum = cutSum(w.span(r.Partition, e.prev[r.Partition], r.Next-1))
	case w.fault == goesBack && e.prev[c.Decisions[0].Partition] > 0:
		r := &c.Decisions[0]
		e.prev = slices.Clone(e.prev)
		e.prev[r.Partition]--
		r.Next = e.prev[r.Partition]
		r.Sum = 0
	}
	return nil
}

// takeForgetting takes a cut as if each of its outcomes were a cut of its own.
func (w *eraWorld) takeForgetting(e *cutEntry) error {
	b, done := w.batches(e, noLimit)
	defer done()
	k := len(e.cut.Decisions)
	if err := w.j.Take(&codec.Cut{Cut: e.cut.Cut, Decisions: e.cut.Decisions}, b[:k]); err != nil {
		return err
	}
	type one struct {
		partition int
		event     OutcomeEvent
	}
	var all []one
	for i, r := range e.cut.Outcomes {
		for _, x := range b[k+i].Outcomes {
			all = append(all, one{r.Partition, x})
		}
	}
	slices.SortFunc(all, func(a, b one) int { return int(a.event.Time - b.event.Time) }) // which are all different
	for _, x := range all {
		w.j.cut--
		c := codec.Cut{Cut: e.cut.Cut, Outcomes: []codec.Range{{Partition: x.partition, Next: x.event.Offset + 1}}}
		if err := w.j.Take(&c, []Batch{{Outcomes: []OutcomeEvent{x.event}}}); err != nil {
			return err
		}
	}
	for _, r := range e.cut.Outcomes { // marks tell of the cut as it is logged
		w.j.parts[r.Partition].outcomes = cutRange{r.Next, e.prev[w.partitions+r.Partition], r.Sum}
	}
	w.j.cut--
	return w.j.Take(&codec.Cut{Cut: e.cut.Cut, Time: e.cut.Time}, nil)
}

// emit compares what follows from the last cut with what is stored, and stores the rest if it may.
func (w *eraWorld) emit(may bool) {
	var ready Ready
	w.j.Ready(&ready)
	for i := range ready.Feedback {
		f := &ready.Feedback[i]
		b := codec.AppendFeedback(nil, f)
		if was := w.feedback(f.N); was != nil {
			if string(was) != string(b) {
				w.err = fmt.Errorf("feedback %d differs when it is made again:\nwas %s\nnow %s", f.N,
					print(was), print(b))
			}
			continue
		}
		if may = may && !w.dead && w.rng.IntN(40) > 0; !may {
			w.dead = true
			return
		}
		w.entries = append(w.entries, cutEntry{feedback: b, n: f.N})
	}
}

// lose takes tails, and lets deciders and users go on before the joiner comes.
func (w *eraWorld) lose() {
	w.count["losses"]++
	for q := range w.inputs {
		if k := len(w.inputs[q]); w.rng.IntN(2) == 0 {
			w.inputs[q] = w.inputs[q][:k-w.rng.IntN(min(k, 8)+1)]
		}
	}
	if k := len(w.entries); w.rng.IntN(2) == 0 {
		w.entries = w.entries[:k-w.rng.IntN(min(k, 12)+1)]
	}
	w.now += 100
	alive := map[string]bool{}
	for p := range w.partitions {
		last := int64(0)
		for i := range w.inputs[p] {
			r := &w.inputs[p][i]
			last = max(last, lastRound(r))
			var d codec.Decision
			if r.from == 0 && codec.ParseDecision(&d, r.raw) == nil {
				alive[string([]byte(d.ID))] = true
			}
		}
		if w.n[p] = max(last, w.told(p)); w.n[p] > last { // its number is not used again
			w.add(p, record{from: last + 1, to: w.n[p]})
			w.count["gaps"]++
		}
	}
	w.ids = slices.DeleteFunc(w.ids, func(id string) bool { return !alive[id] })
	w.dead = true
	for range w.rng.IntN(6) {
		if p := w.rng.IntN(w.partitions); w.rng.IntN(2) == 0 {
			w.decide(p)
		} else {
			w.report(p)
		}
	}
}

// told returns the last round of a partition that the feedback log tells of.
func (w *eraWorld) told(p int) (n int64) {
	for i := range w.entries {
		e := &w.entries[i]
		if e.mark != nil {
			n = max(n, e.mark.Positions[p].Round)
		}
		var f codec.Feedback
		if e.feedback != nil && codec.ParseFeedback(&f, slices.Clone(e.feedback)) == nil && f.Partition == p {
			n = max(n, f.Round)
		}
	}
	return n
}

// open goes on from the logs with a new joiner.
func (w *eraWorld) open() {
	w.dead = false
	w.count["opened"]++
	m, at := w.last()
	if m == nil {
		w.entries = nil
		w.j = NewJoiner(w.partitions, w.limits, 1, w.rules)
		w.err = w.mark(w.j, w.limits)
		return
	}
	lost := w.losses()
	whole := true // the mark hangs on nothing that is gone
	for _, x := range lost {
		whole = whole && position(m, x.Topic, x.Partition) <= x.Offset
	}
	reached := m.Time
	if whole {
		if w.j, w.err = w.restore(m, at, false); w.err != nil {
			return
		}
		if w.fault == limitsUnmarked {
			w.j.limits.Pending = 2
		}
		last := w.lastCut()
		for i := at + 1; i < len(w.entries) && w.err == nil && !w.dead; i++ {
			e := w.entries[i]
			if e.cut == nil {
				continue
			}
			if !w.sums(&e, noLimit) {
				break
			}
			if w.err = w.take(w.j, &e); w.err != nil {
				return
			}
			w.emit(e.cut.Cut == last)
		}
		reached = w.j.Now()
	}
	if len(lost) > 0 && w.err == nil && !w.dead {
		w.openEra(m, at, lost, reached)
	}
}

func (w *eraWorld) lastCut() (n int64) {
	for i := range w.entries {
		if e := &w.entries[i]; e.cut != nil {
			n = e.cut.Cut
		}
	}
	return n
}

// position returns the next offset of an input at a mark.
func position(m *codec.FeedbackMark, topic string, partition int) int64 {
	if topic == "outcomes" {
		return m.Positions[partition].Outcomes
	}
	return m.Positions[partition].Decisions
}

// inputRange is a range of an input that a cut or the mark of an era ends at.
type inputRange struct {
	since, next int64
	sum         uint32
}

// history of an input, oldest first: its ranges, a range a cut, and those that eras go back to.
func (w *eraWorld) rangesOf(q int) (out []inputRange) {
	out = append(out, inputRange{})
	for i := range w.entries {
		e := &w.entries[i]
		switch {
		case e.cut != nil:
			for k, r := range w.ranges(e.cut) {
				if k == q {
					out = append(out, inputRange{e.prev[q], r.Next, r.Sum})
				}
			}
		case e.mark != nil && w.lostBefore(e.mark, q) < End:
			p := &e.mark.Positions[q%w.partitions]
			if q < w.partitions {
				out = append(out, inputRange{p.DecisionsSince, p.Decisions, p.DecisionsSum})
			} else {
				out = append(out, inputRange{p.OutcomesSince, p.Outcomes, p.OutcomesSum})
			}
		}
	}
	return out
}

// survives returns the newest range of an input that is there, and where the last one ended.
func (w *eraWorld) survives(q int) (r inputRange, was int64) {
	all := w.rangesOf(q)
	was = all[len(all)-1].next
	for i := len(all) - 1; i > 0; i-- {
		if r = all[i]; cutSum(w.span(q, r.since, r.next)) == r.sum && r.next <= int64(len(w.inputs[q])) {
			return r, was
		}
	}
	return inputRange{}, was
}

// losses returns what the feedback log tells of inputs that do not have it.
func (w *eraWorld) losses() (lost []codec.LostTail) {
	for q := range w.inputs {
		topic := "decisions"
		if q >= w.partitions {
			topic = "outcomes"
		}
		if r, was := w.survives(q); r.next < was {
			lost = append(lost, codec.LostTail{Topic: topic, Partition: q % w.partitions, Offset: r.next, Was: was})
		}
	}
	return lost
}

// openEra begins an era: inputs that lost their tail are read again from where that began.
func (w *eraWorld) openEra(last *codec.FeedbackMark, at int, lost []codec.LostTail, reached int64) {
	w.count["eras"]++
	m := &codec.FeedbackMark{N: last.N, Cut: last.Cut, Time: reached, Era: last.Era + 1, Limits: w.limits,
		LostTails: lost}
	for i := at + 1; i < len(w.entries); i++ {
		switch e := &w.entries[i]; {
		case e.cut != nil:
			m.Cut, m.Time = e.cut.Cut, max(m.Time, e.cut.Time)
		case e.feedback != nil:
			m.N = e.n
		}
	}
	m.Eras = append(slices.Clone(last.Eras), codec.EraStart{Era: m.Era, N: m.N})
	for p := range w.partitions {
		d, _ := w.survives(p)
		o, was := w.survives(w.partitions + p)
		pos := codec.Position{Partition: p, Again: last.Positions[p].Again, Decisions: d.next, DecisionsSince: d.since,
			DecisionsSum: d.sum, Outcomes: o.next, OutcomesSince: o.since, OutcomesSum: o.sum}
		if o.next < was {
			pos.Again = max(pos.Again, was)
		}
		m.Positions = append(m.Positions, pos)
	}
	from, _ := w.from(last, at)
	for ; from > 0; from-- {
		x := w.entries[from].mark
		gone := func(l codec.LostTail) bool { return position(x, l.Topic, l.Partition) > l.Offset }
		if x != nil && !slices.ContainsFunc(lost, gone) {
			break
		}
	}
	m.From, m.FromCut = int64(from), w.entries[from].mark.Cut
	if w.j, w.err = w.restore(m, len(w.entries), true); w.err != nil {
		return
	}
	var told codec.FeedbackMark
	w.j.Mark(&told)
	m.Positions, m.Remembers = told.Positions, told.Remembers
	if w.fault == eraWithoutDone {
		for p := range m.Positions {
			m.Positions[p].Done, w.j.parts[p].done = nil, nil
		}
	}
	w.err = w.write(w.j, m)
}

// end lets every round have its fate, and audits the log.
func (w *eraWorld) end() {
	for range 20 {
		if w.dead && w.err == nil {
			w.open()
		}
	}
	if w.dead || w.err != nil {
		return
	}
	w.now += 1000
	for p := range w.partitions {
		for range 10 {
			w.decide(p)
		}
	}
	for _, w.now = range []int64{1 << 40, End} {
		for w.step(); w.dead && w.err == nil; {
			w.open()
		}
		if w.err != nil {
			return
		}
	}
	compared := 0
	compared, w.err = w.audit()
	w.count["feedbacks compared"] += compared
	w.count["audits"]++
}

// run plays a world.
func (w *eraWorld) run() error {
	for w.open(); w.count["steps"] < 150 && w.err == nil; w.count["steps"]++ {
		switch w.rng.IntN(14) {
		case 0, 1, 2, 3:
			w.decide(w.rng.IntN(w.partitions))
		case 4, 5, 6:
			w.report(w.rng.IntN(w.partitions))
		case 7:
			w.dead = w.dead || w.rng.IntN(6) == 0
		case 8:
			if w.rng.IntN(5) == 0 {
				w.lose()
			}
		default:
			for range 3 {
				if w.dead && w.err == nil {
					w.open()
				}
			}
			if !w.dead && w.err == nil {
				w.step()
			}
		}
	}
	if w.err == nil {
		w.end()
	}
	return w.err
}

// dump says what the feedback log holds, for people.
func (w *eraWorld) dump() (s string) {
	for i := range w.entries {
		switch e := &w.entries[i]; {
		case e.cut != nil:
			s += fmt.Sprintf("%d cut %d at %d of %v: %v %v\n", i, e.cut.Cut, e.cut.Time, e.prev, e.cut.Decisions,
				e.cut.Outcomes)
		case e.mark != nil:
			s += fmt.Sprintf("%d mark %+v\n", i, *e.mark)
		default:
			s += fmt.Sprintf("%d %s\n", i, print(e.feedback))
		}
	}
	for q := range w.inputs {
		s += fmt.Sprintf("input %d has %d\n", q, len(w.inputs[q]))
	}
	return s
}

// TestEras: logs lose their tails at random, grow again, and every joiner goes on from what is left
// by the one rule. Each decision that is left has one feedback, and an audit that replays the logs
// finds nothing.
func TestEras(t *testing.T) {
	worlds := 700
	if long() {
		worlds = 24_000
	}
	total := map[string]int{}
	for seed := range daily.Seeds(t, worlds, 2) {
		if only := os.Getenv("ERA"); only != "" && only != fmt.Sprint(seed) {
			continue
		}
		w := newEraWorld(seed, noFault)
		if err := w.run(); err != nil {
			t.Fatalf("world %d: %v\n%s", seed, err, w.dump())
		}
		for k, n := range w.count {
			total[k] += n
		}
	}
	for _, k := range slices.Sorted(maps.Keys(total)) {
		t.Log(total[k], k)
	}
}

// TestPlantedInHeart: each fault that is planted is found, by an audit of the log or by the next
// joiner that opens it.
func TestPlantedInHeart(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector has nothing to find in one goroutine")
	}
	few := func(seed uint64, f fault) *eraWorld {
		w := newEraWorld(seed, f)
		w.limits.Dedup = 10
		return w
	}
	for seed := range uint64(60) {
		if err := few(seed, noFault).run(); err != nil {
			t.Fatalf("world %d: %v", seed, err)
		}
	}
	for f, name := range map[fault]string{
		forgetsInside: "forgets inside a cut", repeatsCut: "uses the number of a cut twice",
		goesBack: "a position goes back", eraWithoutDone: "begins an era without telling of rounds that are done",
		limitsUnmarked: "changes its limits without a mark", sumOneLess: "sums one record less",
	} {
		found := 0
		for seed := range uint64(60) {
			if few(seed, f).run() != nil {
				found++
			}
		}
		t.Logf("%s: found in %d of 60 worlds", name, found)
		if found == 0 {
			t.Errorf("a joiner that %s is not found", name)
		}
	}
}
