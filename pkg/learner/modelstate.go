package learner

import (
	"encoding/binary"
	"math"

	"hindsight/pkg/oracle"
)

// Kinds of snapshots of DA-FA with models.
const (
	kindWatched byte = 32
	kindOrdered byte = 33 // in the order of arrival: what waits goes before them
)

// code is parameters, the sums, and then, if there is an alarm, its sums and the two regressions, each behind its
// length. It reads into fresh ones.
func (m *Models) code(c *oracle.Coder) {
	if !c.Same("models of another class or level", m.alarm != nil, m.alpha, oracle.Word(m.size)) {
		return
	}
	c.Words(&m.unknown, &m.charged, &m.evidence)
	left, last := c.Length(len(m.which), 4), int64(-1)
	if !c.Must(left <= m.size, "models are damaged") {
		return
	}
	if c.Reading() {
		m.cut(left)
	}
	for i, f := range m.which {
		var word [4]byte
		binary.LittleEndian.PutUint32(word[:], uint32(f))
		if p := c.Raw(word[:], 4); c.Reading() {
			v := int64(binary.LittleEndian.Uint32(p))
			if !c.Must(v > last && v < int64(m.size), "models are damaged") {
				return
			}
			last, m.which[i] = v, int32(v)
		}
	}
	// A round's regret is 0 at least, but for rounding.
	for i, low := range []float64{0, -1, -1, math.Inf(-1), 0} {
		c.FloatsFrom(low, *m.slices()[i])
	}
	if c.Float(0, &m.total); m.alarm != nil {
		m.alarm.code(c)
	}
	c.Must(true, "models are damaged")
}

func (s *modelSums) slices() [5]*[]float64 {
	return [...]*[]float64{&s.loss, &s.regret, &s.silent, &s.top, &s.weight}
}

func (a *alarm) code(c *oracle.Coder) {
	if !c.Same("models are damaged", oracle.Word(len(a.played))) {
		return
	}
	c.Words(&a.raised)
	c.FloatsFrom(0, a.rival[:])
	for i := range a.played {
		c.Words(&a.played[i])
	}
	c.Floats(a.bias)
	for _, z := range a.z {
		c.Floats(z)
	}
	for i := range a.refuted {
		c.Flag(&a.refuted[i])
	}
	for _, reg := range []*oracle.Linear{a.resid, a.plain} {
		if state := c.Part(reg); c.Reading() && !c.Must(reg.UnmarshalBinary(state) == nil, "models are damaged") {
			return
		}
	}
}

// fresh returns models with the parameters of m that know nothing.
func (m *Models) fresh() (*Models, error) {
	return NewModels(m.class, ModelsOptions{Alpha: m.alpha, Alarm: m.alarm != nil})
}

// cut leaves the first n functions.
func (m *Models) cut(n int) {
	m.which = m.which[:n]
	for _, s := range m.slices() {
		*s = (*s)[:n]
	}
	if m.alarm != nil {
		m.alarm.cut(n)
	}
}
