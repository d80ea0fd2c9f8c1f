package oracle

import (
	"encoding/binary"
	"fmt"
)

// MaxFourier is the most random features of an oracle.
const MaxFourier = 4096

// random returns what draws the random features of o.
func (o *LinearOptions) random() (fourier, error) {
	if o.Bandwidth == 0 {
		o.Bandwidth = 1
	}
	switch {
	case o.Fourier < 0 || o.Fourier > MaxFourier:
		return fourier{}, fmt.Errorf("fourier is %d: it must be in [0, %d]", o.Fourier, MaxFourier)
	case o.Columns < 0 || o.Columns > 1<<16+1:
		return fourier{}, fmt.Errorf("columns is %d: it must be in [0, 65537]", o.Columns)
	case !(o.Bandwidth >= 1e-3 && o.Bandwidth <= 1e3):
		return fourier{}, fmt.Errorf("bandwidth is %v: it must be in [1e-3, 1e3]", o.Bandwidth)
	}
	f := newFourier(o.Fourier, o.Seed)
	f.wide, f.expected = o.Bandwidth, o.Columns
	return f, nil
}

// randomised reports whether regressions take random features.
func (o *Linear) randomised() bool { return len(o.fourier.phase) > 0 }

// point returns what regressions take: z, or phi, which [Linear.project] made of it.
func (o *Linear) point() []float64 {
	if o.randomised() {
		return o.phi
	}
	return o.z
}

// project sets phi from z: the constant, the random features, the other columns. New
// columns come behind the old, so that a regression only grows at its end.
func (o *Linear) project() {
	m, d := len(o.fourier.phase), len(o.z)
	if d == 1 {
		o.phi = append(o.phi[:0], 1)
		return
	}
	if n := m + d; cap(o.phi) < n {
		o.phi = make([]float64, n, n+n/2)
	}
	o.phi = o.phi[:m+d]
	o.phi[0] = 1
	o.fourier.fill(o.phi[1:m+1], o.z, max(d, o.fourier.expected))
	copy(o.phi[m+1:], o.z[1:])
}

// fits reports whether a regression can have d columns.
func (o *Linear) fits(d int) bool {
	if d > 1 {
		d -= len(o.fourier.phase)
		return d > 1 && d <= len(o.cols)
	}
	return d == 1
}

// append appends what the features are drawn from; is reports whether that comes next.
func (f *fourier) append(b []byte) []byte {
	for _, v := range []uint64{uint64(len(f.phase)), f.seed, uint64(f.expected)} {
		b = binary.AppendUvarint(b, v)
	}
	return appendFloat(b, f.wide)
}

func (f *fourier) is(r *wireReader) bool {
	return r.uvarint() == uint64(len(f.phase)) && r.uvarint() == f.seed && r.uvarint() == uint64(f.expected) &&
		r.float() == f.wide
}

// fresh returns f without frequencies: those of the columns of another dictionary differ.
func (f *fourier) fresh() fourier {
	return fourier{seed: f.seed, wide: f.wide, expected: f.expected, phase: f.phase}
}
