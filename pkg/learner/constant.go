package learner

import "hindsight/pkg/oracle"

// UniformLearner plays every eligible action alike and learns nothing.
type UniformLearner struct {
	counter
	p []float64
}

// NewUniform returns a learner that plays uniformly.
func NewUniform() *UniformLearner { return &UniformLearner{} }

// Propensities implements [Learner].
func (u *UniformLearner) Propensities(dst []float64, x *oracle.Input) ([]float64, float64) {
	u.p = uniform(u.p, len(x.Actions))
	return appendLaw(dst, u.p), 0
}

func uniform(p []float64, k int) []float64 {
	p = resize(p, k)
	for a := range p {
		p[a] = 1 / float64(k)
	}
	return p
}

// Learn implements [Learner].
func (u *UniformLearner) Learn(r *Round) { u.takes(r) }

// AppendBinary implements [Learner].
func (u *UniformLearner) AppendBinary(b []byte) ([]byte, error) {
	return appendHeader(b, kindUniform, u.learned), nil
}

// UnmarshalBinary implements [Learner].
func (u *UniformLearner) UnmarshalBinary(b []byte) error {
	return u.counter.readAll(b, kindUniform)
}

// FixedLearner plays one named action, and uniformly where it is not eligible.
type FixedLearner struct {
	counter
	name string
	p    []float64
}

// NewFixed returns a learner that plays the action name.
func NewFixed(name string) *FixedLearner { return &FixedLearner{name: name} }

// Propensities implements [Learner]: 1 on the action, 0 on all others.
func (f *FixedLearner) Propensities(dst []float64, x *oracle.Input) ([]float64, float64) {
	for a := range x.Actions {
		if x.Actions[a].Name == f.name {
			f.p = mostly(f.p, len(x.Actions), a, 0)
			return appendLaw(dst, f.p), 0
		}
	}
	f.p = uniform(f.p, len(x.Actions))
	return appendLaw(dst, f.p), 0
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
func (f *FixedLearner) Learn(r *Round) { f.takes(r) }

// AppendBinary implements [Learner].
func (f *FixedLearner) AppendBinary(b []byte) ([]byte, error) {
	return appendHeader(b, kindFixed, f.learned), nil
}

// UnmarshalBinary implements [Learner].
func (f *FixedLearner) UnmarshalBinary(b []byte) error { return f.readAll(b, kindFixed) }
