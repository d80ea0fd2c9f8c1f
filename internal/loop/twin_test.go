package loop

import (
	"cmp"
	"slices"

	"hindsight/pkg/codec"
)

// The dumb twin: it keeps everything, and judges every round from all that it was given, again after
// each record, in the order of the cuts.
type twin struct {
	w         *world
	steps     []step
	rounds    []*twinRound // in the order of the line
	left      []*twinRound // have their fate, in the order of release
	forgotten int          // N of the last feedback that is not remembered
	rejects   []codec.Reject
}

// step is a record in the order of the cuts, or the end of a cut.
type step struct {
	record
	time    int64 // lifted
	cut     bool  // the end of one
	reached bool  // log time alone: that of a decision which was read ahead
}

// script is what cuts take, in their order: decisions by time, partition and offset, then outcomes, then
// the log time of the cut. Before an outcome log time is that of the last decision that is no later.
func (l *cutLog) script(cuts []cutAt) (steps []step) {
	next, reached, now := make([]int64, len(l.inputs)), make([]int64, l.partitions), int64(0)
	var told []int64
	for _, at := range cuts {
		var decisions, outcomes []step
		for q := range l.inputs {
			time := now
			if q < l.partitions {
				time = reached[q]
			}
			for _, r := range l.span(q, next[q], at.next[q]) {
				time = max(time, r.time)
				if s := (step{record: r, time: time}); q < l.partitions {
					decisions, reached[q] = append(decisions, s), time
				} else {
					outcomes = append(outcomes, s)
				}
			}
			next[q] = max(next[q], at.next[q])
		}
		byTime := func(a, b step) int {
			return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(a.at.Partition, b.at.Partition))
		}
		slices.SortStableFunc(decisions, byTime)
		slices.SortStableFunc(outcomes, byTime)
		for _, s := range decisions {
			told = append(told, s.time)
		}
		steps = append(steps, decisions...)
		for _, s := range append(outcomes, step{time: max(now, at.time), cut: true}) {
			s.time = max(s.time, now)
			if t := latest(told, s.time); t > now {
				steps = append(steps, step{time: t, reached: true})
			}
			now = s.time
			steps = append(steps, s)
		}
	}
	return steps
}

// latest returns the largest of some times up to another, 0 if none is.
func latest(times []int64, to int64) (t int64) {
	for _, x := range times {
		if x <= to {
			t = max(t, x)
		}
	}
	return t
}

type twinRound struct {
	d      codec.Decision
	rules  *Rules
	step   int
	time   int64
	repeat bool // of a known id
	got    []twinOutcome
	left   bool
	frozen int // overflow: outcomes of this step and later are too late
	end    verdictOf
}

type twinOutcome struct {
	codec.Outcome
	s    *step
	step int
	time int64
}

// verdictOf is what becomes of a round.
type verdictOf struct {
	ready    bool // an outcome ended it
	fate     codec.Fate
	reason   string
	loss     float64
	last     *twinOutcome
	closedAt int64
	why      []string // why each outcome of got is rejected; "": it counts
}

func runTwin(w *world, steps []step) *twin {
	tw := &twin{w: w, steps: steps}
	begins := true
	for i := range steps {
		if begins {
			tw.forgotten = max(tw.forgotten, len(tw.left)-w.dedup)
		}
		begins = steps[i].cut
		tw.take(&steps[i], i)
		tw.release(i, &steps[i])
	}
	for _, r := range tw.rounds {
		for k, why := range tw.judge(r, len(tw.steps)).why {
			if why != "" {
				tw.reject(&r.got[k], why)
			}
		}
	}
	return tw
}

func (tw *twin) take(s *step, i int) {
	switch {
	case s.cut || s.reached || s.pass || s.from > 0:
	case s.outcome:
		o := twinOutcome{s: s, step: i, time: s.time}
		err := codec.ParseOutcome(&o.Outcome, s.raw)
		if o.OutcomeID == "" {
			o.OutcomeID = s.ceID
		}
		if err != nil || o.Validate() != nil {
			o.ID = ""
			tw.reject(&o, codec.ReasonMalformed)
		} else if r := tw.lookup(o.ID); r != nil {
			r.got = append(r.got, o)
		} else {
			tw.reject(&o, codec.ReasonOrphan)
		}
	default:
		r := &twinRound{step: i, time: s.time, frozen: len(tw.steps)}
		if err := codec.ParseDecision(&r.d, s.raw); err != nil {
			panic(err)
		}
		r.rules = tw.w.rules[r.d.Epoch-1]
		r.repeat = tw.lookup(r.d.ID) != nil
		tw.rounds = append(tw.rounds, r)
	}
}

// lookup returns the round that an id means: one that waits, or one that is remembered.
func (tw *twin) lookup(id string) *twinRound {
	for _, r := range tw.rounds {
		if r.d.ID == id && !r.repeat && (!r.left || slices.Index(tw.left, r) >= tw.forgotten) {
			return r
		}
	}
	return nil
}

// deadline returns the end of a round's window as far as the records before a step tell it, End if they
// do not.
func (tw *twin) deadline(r *twinRound, before int) int64 {
	if r.rules.Window.Rounds == 0 {
		return r.time + r.rules.Window.Nanos
	}
	n := r.d.N + r.rules.Window.Rounds
	for i := range tw.steps[:before] {
		s := &tw.steps[i]
		if s.cut || s.reached || s.outcome || s.pass || s.at.Partition != r.d.Partition {
			continue
		}
		if s.from > 0 && s.from <= n && n <= s.to {
			return s.time
		}
		if s.from == 0 {
			var d codec.Decision
			if codec.ParseDecision(&d, s.raw); d.N == n {
				return s.time
			}
		}
	}
	return End
}

// judge decides from the outcomes before a step.
func (tw *twin) judge(r *twinRound, before int) (v verdictOf) {
	if r.repeat {
		return verdictOf{ready: true, fate: codec.Skipped, reason: codec.ReasonDuplicateID, closedAt: r.time}
	}
	after := codec.ReasonLate
	var values []twinOutcome
	var active *twinOutcome
	for k := range r.got {
		o := &r.got[k]
		if o.step >= before {
			break
		}
		why := ""
		switch {
		case v.ready:
			why = codec.ReasonDuplicate
		case o.time > tw.deadline(r, o.step) || o.step > r.frozen:
			why = after
		case o.Action != "" && o.Action != r.d.Actions[r.d.Action]:
			why = codec.ReasonMismatch
		case o.Kind == codec.Withdrawn:
			v.ready, v.fate = true, codec.WithdrawnRound
		case o.Kind == codec.Activated && !r.rules.Activation:
			why = codec.ReasonMalformed
		case o.Kind == codec.Activated && active != nil:
			why = codec.ReasonDuplicate
		case o.Kind == codec.Activated:
			active = o
		case !r.rules.allows(values, o):
			why = codec.ReasonMalformed
		case r.rules.Outcomes == First && len(values) > 0:
			why = codec.ReasonDuplicate
		case r.rules.Outcomes != First && o.OutcomeID != "" && slices.ContainsFunc(values, func(x twinOutcome) bool {
			return x.OutcomeID == o.OutcomeID
		}):
			why = codec.ReasonDuplicate
		default:
			values = append(values, *o)
		}
		v.why = append(v.why, why)
		if why != "" {
			continue
		}
		v.last = o
		if !v.ready && r.rules.Outcomes == First && len(values) > 0 && (active != nil || !r.rules.Activation) {
			v.ready, v.fate = true, codec.Observed
		}
		v.closedAt = o.time
	}
	switch {
	case v.ready && v.fate == codec.Observed:
		v.loss = r.rules.loss(values)
	case v.ready:
	case r.rules.Activation && active == nil:
		v.fate, v.reason, v.last = codec.WithdrawnRound, codec.ReasonInactive, nil
	case len(values) > 0:
		v.fate, v.loss = codec.Observed, r.rules.loss(values)
	case r.rules.Impute:
		v.fate, v.loss, v.last = codec.Imputed, r.rules.DefaultLoss, nil
	default:
		v.fate, v.last = codec.Skipped, nil
	}
	return v
}

// allows reports whether a value is in the model's range, with those before it.
func (r *Rules) allows(before []twinOutcome, o *twinOutcome) bool {
	x := o.Value
	in := r.Range.Clip || r.Range.Min <= x && x <= r.Range.Max
	if r.Outcomes == Sum {
		x = r.sum(append(slices.Clone(before), *o))
		if o.OutcomeID != "" && slices.ContainsFunc(before,
			func(x twinOutcome) bool { return x.OutcomeID == o.OutcomeID }) {
			return in // a duplicate anyway
		}
	}
	return in && (r.Range.Clip || r.Range.Min <= x && x <= r.Range.Max)
}

// sum returns the sum on the scale of the last one's kind.
func (r *Rules) sum(os []twinOutcome) (x float64) {
	for i := range os {
		if i > 0 && os[i].Kind != os[i-1].Kind {
			x = r.Range.Min + r.Range.Max - x
		}
		x += os[i].Value
	}
	return x
}

// loss returns what several outcomes are worth.
func (r *Rules) loss(os []twinOutcome) float64 {
	var all []float64
	total := 0.0
	for i := range os {
		x, err := r.Range.ToLoss(os[i].Kind, os[i].Value)
		if err != nil {
			panic(err)
		}
		all = append(all, x)
		total += x
	}
	switch r.Outcomes {
	case First:
		return all[0]
	case Max:
		return slices.Max(all)
	case Min:
		return slices.Min(all)
	case Mean:
		return total / float64(len(all))
	case Sum:
		x, err := r.Range.ToLoss(os[len(os)-1].Kind, r.sum(os))
		if err != nil {
			panic(err)
		}
		return x
	}
	return all[len(all)-1]
}

// release lets go what can go after a step: behind decisions rounds that wait for no turn, and from the
// head of the line behind outcomes and at the end of the cut.
func (tw *twin) release(i int, s *step) {
	for _, r := range tw.rounds {
		if v := tw.judge(r, i+1); !r.rules.Waits(r.d.N, r.d.LearnedThrough) && v.ready && !r.left {
			tw.leave(r, v)
		}
	}
	if !s.cut && !s.reached && !s.outcome {
		return
	}
	for {
		var head *twinRound
		waiting := 0
		for _, r := range tw.rounds {
			if !r.left {
				if head == nil {
					head = r
				}
				waiting++
			}
		}
		if head == nil {
			return
		}
		v := tw.judge(head, i+1)
		deadline := tw.deadline(head, i+1)
		switch {
		case v.ready:
		case deadline < s.time:
			v.closedAt = deadline
		case s.time == End:
			v.closedAt = End
		case s.cut && waiting > tw.w.maxPending:
			v.reason, v.closedAt = codec.ReasonOverflow, s.time
			head.frozen = i
		default:
			return
		}
		tw.leave(head, v)
	}
}

func (tw *twin) leave(r *twinRound, v verdictOf) {
	r.left, r.end = true, v
	tw.left = append(tw.left, r)
}

func (tw *twin) reject(o *twinOutcome, reason string) {
	tw.rejects = append(tw.rejects, codec.Reject{V: codec.Version, Topic: "outcomes", Partition: o.s.at.Partition,
		Offset: o.s.at.Offset, Time: o.time, Reason: reason, ID: o.ID, Bytes: o.s.raw})
}

// feedback returns the records that a joiner must emit.
func (tw *twin) feedback() (out [][]byte) {
	for i, r := range tw.left {
		f := codec.Feedback{
			N: int64(i + 1), Partition: r.d.Partition, Round: r.d.N, ID: r.d.ID, Epoch: r.d.Epoch,
			LearnedThrough: r.d.LearnedThrough,
			Gamma:          r.d.Gamma, Time: r.time, Actions: r.d.Actions, Propensities: r.d.Propensities,
			Action: r.d.Action,
			Fate:   r.end.fate, Reason: r.end.reason, Loss: r.end.loss, OutcomePartition: -1, OutcomeOffset: -1,
			ClosedAt: r.end.closedAt, Context: r.d.Context,
		}
		if r.end.last != nil {
			f.OutcomePartition, f.OutcomeOffset = r.end.last.s.at.Partition, r.end.last.s.at.Offset
		}
		out = append(out, codec.AppendFeedback(nil, &f))
	}
	return out
}
