package learner

import (
	"encoding/binary"
	"fmt"
	"math"

	"hindsight/pkg/oracle"
)

// Kinds of snapshots of DA-FA with models.
const (
	kindWatched byte = 32
	kindOrdered byte = 33 // in the order of arrival: what waits goes before them
)

// The bytes of models: parameters, the sums, and then, if there is an alarm, its sums and
// the two regressions, each behind its length. Numbers are little endian, 8 bytes each.

func appendInt64(b []byte, v int64) []byte { return binary.LittleEndian.AppendUint64(b, uint64(v)) }

func appendFloats(b []byte, v []float64) []byte {
	for _, x := range v {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
	}
	return b
}

func flag(on bool) byte {
	if on {
		return 1
	}
	return 0
}

func (m *Models) appendBinary(b []byte) ([]byte, error) {
	b = appendFloats(append(b, flag(m.alarm != nil)), []float64{m.alpha})
	for _, v := range []int64{int64(m.size), m.unknown, m.charged, m.evidence, int64(len(m.which))} {
		b = appendInt64(b, v)
	}
	for _, i := range m.which {
		b = binary.LittleEndian.AppendUint32(b, uint32(i))
	}
	for _, s := range m.slices() {
		b = appendFloats(b, *s)
	}
	b = appendFloats(b, []float64{m.total})
	if m.alarm == nil {
		return b, nil
	}
	return m.alarm.appendBinary(b)
}

func (s *modelSums) slices() [5]*[]float64 {
	return [...]*[]float64{&s.loss, &s.regret, &s.silent, &s.top, &s.weight}
}

func (a *alarm) appendBinary(b []byte) ([]byte, error) {
	b = appendInt64(b, int64(len(a.played)))
	b = appendInt64(b, a.raised)
	b = appendFloats(b, a.rival[:])
	for _, n := range a.played {
		b = appendInt64(b, n)
	}
	b = appendFloats(b, a.bias)
	for _, z := range a.z {
		b = appendFloats(b, z)
	}
	for _, done := range a.refuted {
		b = append(b, flag(done))
	}
	for _, reg := range []*oracle.Linear{a.resid, a.plain} {
		at := len(b)
		var err error
		if b, err = reg.AppendBinary(appendInt64(b, 0)); err != nil {
			return nil, err
		}
		binary.LittleEndian.PutUint64(b[at:], uint64(len(b)-at-8))
	}
	return b, nil
}

// fresh returns models with the parameters of m that know nothing; so many rounds before
// are charged 1 each.
func (m *Models) fresh(rounds int64) (*Models, error) {
	f, err := NewModels(m.class, ModelsOptions{Alpha: m.alpha, Alarm: m.alarm != nil})
	if err == nil {
		f.unknown, f.charged = rounds, rounds
	}
	return f, err
}

// stateReader reads what is above. After the first fault everything reads as 0.
type stateReader struct {
	b   []byte
	bad bool
}

func (r *stateReader) take(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.bad, r.b = true, nil
		return nil
	}
	p := r.b[:n]
	r.b = r.b[n:]
	return p
}

func (r *stateReader) byte() byte {
	if p := r.take(1); p != nil {
		return p[0]
	}
	return 0
}

// int64 reads a number that is not negative.
func (r *stateReader) int64() int64 {
	p := r.take(8)
	if p == nil {
		return 0
	}
	v := int64(binary.LittleEndian.Uint64(p))
	r.bad = r.bad || v < 0
	return max(v, 0)
}

// floats fills dst with finite numbers of at least low.
func (r *stateReader) floats(dst []float64, low float64) {
	p := r.take(8 * len(dst))
	for i := range dst {
		if p == nil {
			return
		}
		v := math.Float64frombits(binary.LittleEndian.Uint64(p[8*i:]))
		r.bad = r.bad || !(v >= low) || math.IsInf(v, 0)
		dst[i] = v
	}
}

func (r *stateReader) float(low float64) float64 {
	var v [1]float64
	r.floats(v[:], low)
	return v[0]
}

// readBinary returns models with the parameters of m in the state that b begins with.
func (m *Models) readBinary(b []byte) (*Models, []byte, error) {
	r := stateReader{b: b}
	on, alpha, size := r.byte(), r.float(0), r.int64()
	if r.bad || on != flag(m.alarm != nil) || alpha != m.alpha || size != int64(m.size) {
		return nil, nil, fmt.Errorf("models of another class or level: %w", ErrSnapshot)
	}
	f, err := m.fresh(0)
	if err != nil {
		return nil, nil, err
	}
	f.unknown, f.charged, f.evidence = r.int64(), r.int64(), r.int64()
	left := r.int64()
	if left > size {
		r.bad, left = true, 0
	}
	f.cut(int(left))
	last := int64(-1)
	for i := range f.which {
		p := r.take(4)
		if p == nil {
			break
		}
		v := int64(binary.LittleEndian.Uint32(p))
		r.bad = r.bad || v <= last || v >= size
		last, f.which[i] = v, int32(v)
	}
	// A round's regret is 0 at least, but for rounding.
	for i, low := range []float64{0, -1, -1, math.Inf(-1), 0} {
		r.floats(*f.slices()[i], low)
	}
	f.total = r.float(0)
	if f.alarm != nil {
		f.alarm.readBinary(&r)
	}
	if r.bad {
		return nil, nil, fmt.Errorf("models are damaged: %w", ErrSnapshot)
	}
	return f, r.b, nil
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

func (a *alarm) readBinary(r *stateReader) {
	if r.int64() != int64(len(a.played)) {
		r.bad = true
		return
	}
	a.raised = r.int64()
	r.floats(a.rival[:], 0)
	for i := range a.played {
		a.played[i] = r.int64()
	}
	r.floats(a.bias, math.Inf(-1))
	for _, z := range a.z {
		r.floats(z, math.Inf(-1))
	}
	for i := range a.refuted {
		v := r.byte()
		r.bad = r.bad || v > 1
		a.refuted[i] = v == 1
	}
	for _, reg := range []*oracle.Linear{a.resid, a.plain} {
		n := r.int64()
		if n > int64(len(r.b)) {
			r.bad = true
			return
		}
		if r.bad || reg.UnmarshalBinary(r.take(int(n))) != nil {
			r.bad = true
			return
		}
	}
}
