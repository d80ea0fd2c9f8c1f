package oracle

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"runtime"
	"testing"
)

// fed returns an oracle after a few examples, and its snapshot.
func fed(t *testing.T, o Regressor) (Regressor, []byte) {
	t.Helper()
	x := &Input{Features: []Feature{num("x", 1), num("y", 2)}, Actions: named("a", "b")}
	for i := range 6 {
		x.Features[0].Value = float64(i)
		o.Update(x, i%2, .5)
	}
	b, err := o.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	return o, b
}

// patched returns a copy of b with floats from an offset on.
func patched(b []byte, at int, v ...float64) []byte {
	b = bytes.Clone(b)
	for i, x := range v {
		binary.LittleEndian.PutUint64(b[at+8*i:], math.Float64bits(x))
	}
	return b
}

// TestDamagedStates: snapshots of the right length that no run can leave are refused, and
// change nothing. Their floats lie behind headers whose numbers take a byte each.
func TestDamagedStates(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	class := table{{0, 1}, {1, 0}, {.5, .5}}
	factored, err := NewFactored(func(*Input) int { return 0 }, []Class{class}, HedgeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	const (
		hedge     = 1 + 8 + 2 + 3*8   // version, η, fed, size, priors: 3 log-weights and 3 losses
		linear    = 1 + 2*8 + 8       // version, β, λ, 8 counts: losses, regret, columns
		column    = linear + 2*8 + 5  // scope, kind, "x", "": n, mean, m2
		shared    = 2 + 2*8 + 6       // version, hybrid, β, λ, 6 counts: as linear
		aggregate = 1 + 4             // version, 4 numbers: 2 weights, 2 losses, that of the mixture, the duel
		block     = 1 + 1 + 1 + hedge // version, blocks, length of the first
	)
	three := func(at int, of string, bad ...[3]float64) map[string]func(b []byte) []byte {
		out := map[string]func(b []byte) []byte{}
		for _, v := range bad {
			out[fmt.Sprint(of, v)] = func(b []byte) []byte { return patched(b, at, v[:]...) }
		}
		return out
	}
	weights := [][3]float64{{-1, -1, -1}, {1, 0, 0}, {0, nan, 0}, {0, -inf, 0}, {inf, 0, 0}}
	losses := [][3]float64{{0, nan, 0}, {0, -1, 0}, {0, 0, inf}}
	columns := [][3]float64{{nan, 0, 0}, {.5, 0, 0}, {-1, 0, 0}, {inf, 0, 0}, {0, 1, 0}, {2, nan, 0}, {2, 1e200, 0},
		{2, 0, -1}, {2, 0, inf}}
	sum := func(at int) map[string]func(b []byte) []byte {
		out := map[string]func(b []byte) []byte{}
		for _, v := range []float64{nan, -1, 7, inf} {
			out[fmt.Sprint("losses ", v)] = func(b []byte) []byte { return patched(b, at, v) }
		}
		return out
	}
	parts := map[string]func(b []byte) []byte{}
	for _, v := range [][6]float64{ // honest: ½, ½, losses up to 6, a duel between 0 and 1
		{.25, .25, 1, 1, 1, .5}, {1, 1, 1, 1, 1, .5}, {1.5, -.5, 1, 1, 1, .5}, {nan, .5, 1, 1, 1, .5},
		{1, 0, 1, 1, 1, .5},
		{.5, .5, nan, 1, 1, .5}, {.5, .5, -1, 1, 1, .5}, {.5, .5, 7, 1, 1, .5}, {.5, .5, 1, 1, nan, .5},
		{.5, .5, 1, 1, 7, .5},
		{.5, .5, 1, 1, 1, nan}, {.5, .5, 1, 1, 1, 0}, {.5, .5, 1, 1, 1, 1},
	} {
		parts[fmt.Sprint("state ", v)] = func(b []byte) []byte { return patched(b, aggregate, v[:]...) }
	}
	for _, c := range []struct {
		name    string
		oracle  Regressor
		honest  map[int]float64 // about, by offset: of a wrong one the table would say nothing
		damages []map[string]func(b []byte) []byte
	}{
		{"hedge", newHedge(class, HedgeOptions{}), map[int]float64{hedge + 16: 0, hedge + 24: 1.5, hedge + 40: 0},
			[]map[string]func(b []byte) []byte{three(hedge, "weights ", weights...),
				three(hedge+24, "losses ", losses...)}},
		{"factored", factored, map[int]float64{block + 16: 0, block + 24: 1.5, block + 40: 0},
			[]map[string]func(b []byte) []byte{three(block, "weights ", weights...),
				three(block+24, "losses ", losses...)}},
		{"linear", newLinear(LinearOptions{MaxFeatures: 8, MaxActions: 3}),
			map[int]float64{linear: 3, column: 6, column + 8: 2.5},
			[]map[string]func(b []byte) []byte{sum(linear), three(column, "column ", columns...)}},
		{"shared", newShared(SharedOptions{Hashed: 8, MaxFeatures: 8}), map[int]float64{shared: 3, shared + 2*8 + 5: 6,
			shared + 2*8 + 13: 2.5},
			[]map[string]func(b []byte) []byte{sum(shared), three(shared+2*8+5, "column ", columns...)}},
		{"auto", newAggregate(AggregateOptions{Columns: 4, MaxFeatures: 8, MaxActions: 3}),
			map[int]float64{aggregate: .5, aggregate + 8: .5, aggregate + 40: .5},
			[]map[string]func(b []byte) []byte{parts}},
	} {
		o, good := fed(t, c.oracle)
		for at, v := range c.honest {
			if got := math.Float64frombits(binary.LittleEndian.Uint64(good[at:])); math.Abs(got-v) > .1 {
				t.Errorf("%s: what lies at %d is %v, not %v", c.name, at, got, v)
			}
		}
		for _, damages := range c.damages {
			for what, damage := range damages {
				if err := o.UnmarshalBinary(damage(good)); !errors.Is(err, ErrSnapshot) {
					t.Errorf("%s, %s: %v", c.name, what, err)
				}
				if b, err := o.AppendBinary(nil); err != nil || !bytes.Equal(b, good) {
					t.Fatalf("%s, %s: the state changed (%v)", c.name, what, err)
				}
			}
		}
		if err := o.UnmarshalBinary(good); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestCountsAreGuarded: no number of things is believed that the bytes behind it cannot hold.
func TestCountsAreGuarded(t *testing.T) {
	for _, c := range []struct {
		n           uint64
		size, bytes int
		want        int
	}{{3, 8, 24, 3}, {3, 8, 23, 0}, {4, 8, 31, 0}, {1 << 40, 8, 64, 0}, {1 << 61, 8, 64, 0}, {1<<64 - 1, 1, 64, 0}} {
		r := NewReader(append(binary.AppendUvarint(nil, c.n), make([]byte, c.bytes)...), "", ErrSnapshot)
		if n := r.Count(0, c.size); n != c.want || r.bad != (c.want == 0) {
			t.Errorf("%d of %d bytes each in %d: %d, bad %v", c.n, c.size, c.bytes, n, r.bad)
		}
	}
}

// TestBlobsAreGuarded: no blob is longer than the bytes behind its length, which is there.
func TestBlobsAreGuarded(t *testing.T) {
	for b, want := range map[string]string{"\x02ab": "ab", "\x00": "", "\x03ab": "?", "": "?", "\x80": "?"} {
		r := NewReader([]byte(b), "", ErrSnapshot)
		if blob := r.Blob(nil); r.bad != (want == "?") || !r.bad && (string(blob) != want || r.Err() != nil) {
			t.Errorf("%q: %q, bad %v, %v", b, blob, r.bad, r.Err())
		}
	}
}

// TestNothingIsReadAfterAFault: what lies behind a version that is not known is 0.
func TestNothingIsReadAfterAFault(t *testing.T) {
	r, v, n := NewReader([]byte{3, 7, 7, 7}, "", ErrSnapshot), byte(1), int64(1)
	r.Version(1, 2, "")
	r.Byte(&v)
	r.Ints(&n)
	if count := r.Count(0, 1); v != 0 || n != 0 || count != 0 || !errors.Is(r.Err(), ErrNewer) {
		t.Errorf("it reads %d, %d and %d: %v", v, n, count, r.Err())
	}
	r = NewReader(binary.AppendUvarint(nil, 1<<63), "", ErrSnapshot)
	if r.Ints(&n); n != 0 || !errors.Is(r.Err(), ErrSnapshot) {
		t.Errorf("a number above all: %d, %v", n, r.Err())
	}
}

// TestShortMatrixIsNotAllocated: a regression whose matrix is cut off is refused before there
// is room for it, d²/2 floats for d that are there.
func TestShortMatrixIsNotAllocated(t *testing.T) {
	const d = 1500
	matrix := uint64(8 * packedLen(d))
	x := &Input{Actions: named("a")}
	for i := range d - 1 {
		x.Features = append(x.Features, num(fmt.Sprint(i), 1))
	}
	l := newLinear(LinearOptions{MaxFeatures: d, MaxActions: 1})
	l.Update(x, 0, 1)
	whole, err := l.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	f := fading{}
	for name, read := range map[string]func() bool{
		"linear": func() bool { return l.UnmarshalBinary(whole[:len(whole)-int(matrix)+8*d]) == nil },
		"auto": func() bool {
			r := NewReader(append(binary.AppendUvarint(nil, d), make([]byte, 3*8*d)...), "", ErrSnapshot)
			return f.code(&r)
		},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		ok := read()
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; ok || took > matrix/2 {
			t.Errorf("%s: read %v, and allocated %d bytes for a matrix of %d that is not there", name, ok, took, matrix)
		}
	}
}

// TestSteeredShareHasAFloor: however long the world stands still, a steered share keeps a
// thousandth of α, so that the core that forgets can come back.
func TestSteeredShareHasAFloor(t *testing.T) {
	o := newAggregate(AggregateOptions{Steered: true})
	for range 2000 {
		o.share([wideMember + 1]float64{0, 1, 0}, 0, 0) // the core that forgets is always wrong
	}
	// q = e^-½·q + what it is given, α/1000/N: so it stands at that over 1 − e^-½.
	want := aggregateShare / 1000 / float64(o.members) / (1 - math.Exp(-.5))
	if w := o.AppendWeights(nil)[1]; math.Abs(w/want-1) > .01 {
		t.Errorf("weight of the core that forgets: %.4g, want %.4g", w, want)
	}
	for range 40 {
		o.share([wideMember + 1]float64{1, 0, 1}, 0, 0)
	}
	if w := o.AppendWeights(nil)[1]; w < .9 {
		t.Errorf("weight of the core that forgets is %.3g after 40 examples of a world that moved", w)
	}
}
