package learner

import "hindsight/pkg/oracle"

// UniformLearner plays every eligible action alike and learns nothing.
type UniformLearner struct{ constant }

// NewUniform returns a learner that plays uniformly.
func NewUniform() *UniformLearner { return &UniformLearner{constant{kind: kindUniform}} }

// FixedLearner plays one named action, and uniformly where it is not eligible.
type FixedLearner struct{ constant }

// NewFixed returns a learner that plays the action name.
func NewFixed(name string) *FixedLearner { return &FixedLearner{constant{kind: kindFixed, name: name}} }

// constant is a learner that learns nothing.
type constant struct {
	counter
	kind byte
	name string // the action to play; "": none
	p    []float64
}

// Propensities implements [Learner]: 1 on the action, 0 on all others, and all alike without it.
func (c *constant) Propensities(dst []float64, x *oracle.Input) ([]float64, float64) {
	best, epsilon := 0, 1.0
	for a := range x.Actions {
		if c.name != "" && x.Actions[a].Name == c.name {
			best, epsilon = a, 0
			break
		}
	}
	c.p = mostly(c.p, len(x.Actions), best, epsilon)
	return appendLaw(dst, c.p), 0
}

// mostly returns the law with 1−epsilon on best and epsilon spread over all.
func mostly(p []float64, k, best int, epsilon float64) []float64 {
	p = resize(p, k)
	for a := range p {
		p[a] = epsilon / float64(k)
	}
	p[best] += 1 - epsilon
	return p
}

// Learn implements [Learner].
func (c *constant) Learn(r *Round) { c.takes(r) }

// AppendBinary implements [Learner].
func (c *constant) AppendBinary(b []byte) ([]byte, error) { return c.appendBinary(b, c.kind, nil) }

// UnmarshalBinary implements [Learner].
func (c *constant) UnmarshalBinary(b []byte) error { return c.readBinary(b, c.kind, nil) }

// counter counts learned rounds; every baseline has one.
type counter struct{ learned int64 }

// Learned implements [Learner].
func (c *counter) Learned() int64 { return c.learned }

// NeedsFIFO implements [Learner]: baselines guarantee nothing.
func (c *counter) NeedsFIFO() bool { return false }

func (c *counter) takes(r *Round) bool {
	if r.Partial || r.Fate != Observed && r.Fate != Imputed {
		return false
	}
	c.learned++
	return true
}

// appendBinary appends the state of a baseline and, if it has one, of its oracle.
func (c *counter) appendBinary(b []byte, kind byte, reg oracle.Regressor) ([]byte, error) {
	w := oracle.NewWriter(b)
	if codeHeader(&w, kind, &c.learned); reg == nil {
		return w.Bytes(), nil
	}
	return reg.AppendBinary(w.Bytes())
}

func (c *counter) readBinary(b []byte, kind byte, reg oracle.Regressor) (err error) {
	r, learned := newReader(b), int64(0)
	if codeHeader(&r, kind, &learned) && reg != nil {
		err = reg.UnmarshalBinary(r.Bytes())
	} else {
		err = r.Err()
	}
	if err == nil {
		c.learned = learned
	}
	return err
}
