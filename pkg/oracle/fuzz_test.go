package oracle

import "testing"

// fuzzOracle restores arbitrary bytes and uses whatever comes of it.
func fuzzOracle(f *testing.F, fresh func() Regressor) {
	x := &Input{Features: []Feature{num("x", 1), text("c", "u"), flagged("b", 1)}, Vector: []float64{2}, Actions: named("a", "b")}
	r := fresh()
	for i := range 5 {
		b, err := r.AppendBinary(nil)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
		r.Update(x, i%2, 1)
	}
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		r := fresh()
		if err := r.UnmarshalBinary(b); err != nil {
			return
		}
		for range 3 {
			for _, v := range predictions(r, x) {
				if !(v >= 0 && v <= 1) {
					t.Fatalf("prediction %v", v)
				}
			}
			r.Update(x, 1, 0.5)
		}
		b, err := r.AppendBinary(nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := fresh().UnmarshalBinary(b); err != nil {
			t.Fatalf("own snapshot: %v", err)
		}
	})
}

func FuzzLinearUnmarshal(f *testing.F) {
	fuzzOracle(f, func() Regressor { return newLinear(LinearOptions{Beta: 0.5, MaxFeatures: 8, MaxActions: 3}) })
}

func FuzzHedgeUnmarshal(f *testing.F) {
	fuzzOracle(f, func() Regressor { return newHedge(table{{0, 1}, {1, 0}, {0.5, 0.5}}, HedgeOptions{}) })
}

func FuzzAggregateUnmarshal(f *testing.F) {
	fuzzOracle(f, func() Regressor {
		return newAggregate(AggregateOptions{Beta: 0.5, MaxFeatures: 6, MaxActions: 3, Fourier: 2})
	})
}
