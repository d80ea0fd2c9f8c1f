package loop

import (
	"unsafe"

	"hindsight/pkg/codec"
)

// A backtest has contexts, decisions and outcomes at hand, and no log between. To write
// each as bytes only to parse it again would take a third of its time: the methods of this
// file take what the bytes would be parsed to, and do the same with it.

// DecideContext is Decide for a context at hand that is valid ([codec.Context.Validate]),
// whose decision fits into a record, and whose id, which it must have, occurs once: ids are
// neither looked up nor remembered. The decision has no Context.
func (d *Decider) DecideContext(dst *codec.Decision, c *codec.Context, src Source) Result {
	rd := d.replica.reader
	rd.ctx = c
	if err := rd.accept(); err != nil {
		return Result{Verdict: Invalid, ID: c.ID, Err: err}
	}
	d.decide(dst, nil, c.ID, src)
	d.next++
	return Result{Verdict: Decided, N: dst.N, ID: c.ID}
}

// LearnContext is Learn for a feedback whose context is at hand: f.Context is not looked at.
func (r *Replica) LearnContext(f *codec.Feedback, c *codec.Context) error { return r.learnOf(f, c) }

// AddDecided is AddDecision for a decision at hand. All of it is copied, but for names that
// are the model's own.
func (j *Joiner) AddDecided(at Place, logTime int64, d *codec.Decision) error {
	p := j.pool.alloc(0)
	rules := j.rules(d.Epoch)
	p.copy(d, rules != nil && sameTexts(rules.Actions, d.Actions))
	return j.add(p, at, logTime)
}

// AddGiven is AddOutcome for an outcome at hand that is valid ([codec.Outcome.Validate]); if
// it is the last of its round then [Joiner.Over], too.
func (j *Joiner) AddGiven(at Place, logTime int64, o *codec.Outcome, last bool) {
	a := arrival{Place: at, given: true, last: last, time: j.readOutcome(at, logTime), handled: j.outs[at.Partition].before(at.Offset)}
	a.refused = j.refusedAs(&a)
	j.outcome = *o
	j.take(&a, "")
}

// bytes returns the record, which is o where it came without bytes.
func (a *arrival) bytes(o *codec.Outcome) []byte {
	if a.given && a.raw == nil {
		return codec.AppendOutcome(nil, o)
	}
	return a.raw
}

// copy sets p's decision, as yet empty, to d. What d aliases is copied, but for the names of
// actions if they last.
func (p *pending) copy(d *codec.Decision, last bool) {
	actions, law, would := p.d.Actions, p.d.Propensities, p.d.Would
	p.d = *d
	p.d.Propensities, p.d.Would = append(law, d.Propensities...), append(would, d.Would...)
	raw := append(append(p.raw, d.Context...), d.ID...)
	if !last {
		for _, name := range d.Actions {
			raw = append(raw, name...)
		}
	}
	p.raw = raw
	n := len(d.Context)
	p.d.Context, raw = raw[:n:n], raw[n:]
	p.d.ID, raw = cut(raw, len(d.ID))
	if last {
		p.d.Actions = append(actions, d.Actions...)
		return
	}
	for _, name := range d.Actions {
		name, raw = cut(raw, len(name))
		actions = append(actions, name)
	}
	p.d.Actions = actions
}

// sameTexts reports whether a and b are the same texts at the same addresses.
func sameTexts(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	for i, text := range a {
		if !sameText(text, b[i]) {
			return false
		}
	}
	return true
}

// sameText reports whether a and b are equal because they are the same bytes of memory.
func sameText(a, b string) bool {
	return len(a) == len(b) && unsafe.StringData(a) == unsafe.StringData(b)
}

// cut returns the first n bytes of b as text that aliases them, and the rest.
func cut(b []byte, n int) (string, []byte) {
	return unsafe.String(unsafe.SliceData(b), n), b[n:]
}
