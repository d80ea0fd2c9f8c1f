package replay

import (
	"bytes"
	"math"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"hindsight/internal/model"
	"hindsight/internal/world"
	"hindsight/pkg/codec"
	"hindsight/pkg/oracle"
)

func sigmoid(t testing.TB) *Rounds {
	t.Helper()
	return OfWorld(world.NewSigmoid(11, 3000, world.SigmoidOptions{Functions: 20}))
}

// TestSigmoidIsRealizable holds that the truth is what the first function of the
// class file says of the context, up to the order of a sum.
func TestSigmoidIsRealizable(t *testing.T) {
	e := sigmoid(t)
	file, err := model.ParseClass("class", e.Class.Append(nil))
	if err != nil {
		t.Fatal(err)
	}
	class, err := file.Class()
	if err != nil {
		t.Fatal(err)
	}
	if class.Size() != 20 || len(e.Actions) != 5 || e.Columns != 6 || e.Len() != 3000 {
		t.Fatalf("%d functions, %d actions, %d columns, %d rounds", class.Size(), len(e.Actions), e.Columns, e.Len())
	}
	var c codec.Context
	truth, f := make([]float64, 5), make([]float64, 20)
	for round := range 200 {
		e.Context(&c, round)
		if err := c.Validate(); err != nil {
			t.Fatal(err)
		}
		var x oracle.Input
		for _, v := range c.Features {
			if math.Abs(v.Value) >= 1 {
				t.Fatalf("x = %v", v.Value)
			}
			x.Features = append(x.Features, oracle.Feature{Name: v.Name, Kind: oracle.FeatureKind(v.Kind),
				Value: v.Value})
		}
		for _, a := range c.Actions {
			x.Actions = append(x.Actions, oracle.Action{Name: a.Name})
		}
		if e.Truth(truth, round); !e.Known {
			t.Fatal("the truth is not known")
		}
		for a := range truth {
			if class.Eval(f, &x, a); math.Abs(f[0]-truth[a]) > 1e-14 {
				t.Fatalf("round %d, action %d: truth %v, the class says %v", round, a, truth[a], f[0])
			}
		}
	}
}

// TestSigmoidLosses holds that losses have the means that the truth says, and
// that actions are drawn apart.
func TestSigmoidLosses(t *testing.T) {
	e := sigmoid(t)
	truth := make([]float64, 5)
	z, both, n := 0.0, 0.0, 0.0
	for round := range e.Len() {
		e.Truth(truth, round)
		centred := make([]float64, 5)
		for a, p := range truth {
			loss := e.Loss(round, a)
			if loss != 0 && loss != 1 || loss != e.Loss(round, a) {
				t.Fatalf("loss %v", loss)
			}
			centred[a] = (loss - p) / math.Sqrt(p*(1-p)+1e-12)
			z += centred[a]
			n++
		}
		both += centred[0] * centred[1]
	}
	if limit := 4 * math.Sqrt(n); math.Abs(z) > limit {
		t.Errorf("Σ of standardised losses is %v, over %v", z, limit)
	}
	if limit := 4 * math.Sqrt(n/5); math.Abs(both) > limit {
		t.Errorf("losses of two actions are correlated: %v, over %v", both, limit)
	}
}

func TestSeeds(t *testing.T) {
	a, b, c := world.NewSigmoid(1, 10, world.SigmoidOptions{}), world.NewSigmoid(1, 10, world.SigmoidOptions{}),
		world.NewSigmoid(2, 10, world.SigmoidOptions{})
	for i := range 10 {
		f, g := make([]float64, 5), make([]float64, 5)
		a.Truth(f, i)
		b.Truth(g, i)
		var x, y codec.Context
		a.Context(&x, i)
		b.Context(&y, i)
		if !reflect.DeepEqual(f, g) || !reflect.DeepEqual(x, y) || a.Loss(i, 0) != b.Loss(i, 0) ||
			!bytes.Equal(a.Class.Append(nil), b.Class.Append(nil)) {
			t.Error("the same seed gives another environment")
		}
	}
	if string(a.Class.Append(nil)) == string(c.Class.Append(nil)) || a.Loss(0, 0) == c.Loss(0, 0) &&
		a.Loss(1, 0) == c.Loss(1, 0) && a.Loss(2, 0) == c.Loss(2, 0) && a.Loss(3, 0) == c.Loss(3, 0) {
		t.Error("another seed gives the same class or contexts")
	}
}

// TestContextReusesMemory holds that a used destination is filled as a new one.
func TestContextReusesMemory(t *testing.T) {
	m := read(t, "label,n_x,c_y\na,1,u\nb,,\n")
	for _, e := range []*Rounds{sigmoid(t), m} {
		dirty := codec.Context{ID: "x", Vector: []float64{1}, Features: make([]codec.Feature, 9),
			Actions: make([]codec.Action, 9)}
		dirty.Actions[0].Features = []codec.Feature{{Name: "old"}}
		for round := range 2 {
			var fresh codec.Context
			e.Context(&fresh, round)
			e.Context(&dirty, round)
			if len(dirty.Features) != len(fresh.Features) || !reflect.DeepEqual(dirty.Actions, fresh.Actions) ||
				dirty.ID != "" || dirty.Vector != nil {
				t.Errorf("%s: %+v, want %+v", e.Name, dirty, fresh)
			}
		}
		if allocs := testing.AllocsPerRun(100, func() { e.Context(&dirty, 1) }); allocs != 0 {
			t.Errorf("%s: %v allocations a context", e.Name, allocs)
		}
	}
}

func TestOrder(t *testing.T) {
	var text strings.Builder
	text.WriteString("label,n_row\n")
	for i := range 100 {
		text.WriteString([]string{"a", "b", "c"}[i%3] + "," + strconv.Itoa(i) + "\n")
	}
	m := read(t, text.String())
	if Order(m, 0, 5) != m {
		t.Error("order 0 is not the file's")
	}
	rows := func(e *Rounds) (out []int) {
		var c codec.Context
		truth := make([]float64, 3)
		for i := range e.Len() {
			e.Context(&c, i)
			row := int(c.Features[0].Value)
			e.Truth(truth, i)
			for a, v := range truth {
				if want := float64(min(1, (row-a+300)%3)); v != want || e.Loss(i, a) != want {
					t.Fatalf("row %d, action %d: truth %v, loss %v, want %v", row, a, v, e.Loss(i, a), want)
				}
			}
			out = append(out, row)
		}
		return out
	}
	one, again, two, other := rows(Order(m, 1, 5)), rows(Order(m, 1, 5)), rows(Order(m, 2, 5)), rows(Order(m, 1, 6))
	if !reflect.DeepEqual(one, again) || reflect.DeepEqual(one, two) || reflect.DeepEqual(one, other) {
		t.Errorf("orders: %v %v %v %v", one, again, two, other)
	}
	seen := map[int]bool{}
	for _, r := range one {
		seen[r] = true
	}
	if len(seen) != 100 {
		t.Errorf("order 1 has %d of 100 rows", len(seen))
	}
	if h := Head(m, 7); h.Len() != 7 || Head(m, 0).Len() != 100 || Head(m, 1000).Len() != 100 {
		t.Errorf("Head(7) has %d rounds", h.Len())
	}
}

// TestReference is a hand-worked example: two labels, so uniform errs half the time.
func TestReference(t *testing.T) {
	uniform, best, known := reference(read(t, "label\na\nb\na\n"))
	if uniform != 0.5 || best != 0 || !known {
		t.Errorf("uniform %v, best %v, known %v", uniform, best, known)
	}
	if r := lawRegret([]float64{0.5, 0.25, 0.25}, []float64{0.4, 0.2, 1}); math.Abs(r-0.3) > 1e-15 { // .2+.05+.25−.2
		t.Errorf("regret %v, want 0.3", r)
	}
	rapid.Check(t, func(t *rapid.T) {
		e := world.NewSigmoid(rapid.Uint64().Draw(t, "seed"), 50, world.SigmoidOptions{Functions: 2})
		uniform, best, known := reference(OfWorld(e))
		if !known || !(0 <= best && best < uniform && uniform <= 1) {
			t.Fatalf("uniform %v, best %v, known %v", uniform, best, known)
		}
	})
}
