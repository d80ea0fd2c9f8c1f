package oracle

import "testing"

// fuzzOracle restores arbitrary bytes and uses whatever comes of it, in each version of what
// is computed.
func fuzzOracle(f *testing.F, fresh func(version int) Regressor) {
	x := &Input{Features: []Feature{num("x", 1), text("c", "u"), flagged("b", 1)}, Vector: []float64{2},
		Actions: named("a", "b")}
	for version := 1; version <= Newest; version++ {
		r := fresh(version)
		for i := range 5 {
			b, err := r.AppendBinary(nil)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(version == 1, b)
			r.Update(x, i%2, 1)
			x.Features = append([]Feature{num("later", 1)}, x.Features[i%2:]...)
		}
	}
	f.Add(true, []byte{})
	f.Fuzz(func(t *testing.T, old bool, b []byte) {
		fresh := func() Regressor {
			if old {
				return fresh(1)
			}
			return fresh(Newest)
		}
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
	fuzzOracle(f, func(version int) Regressor {
		return newLinear(LinearOptions{Beta: 0.5, MaxFeatures: 8, MaxActions: 3, Version: version})
	})
}

func FuzzHedgeUnmarshal(f *testing.F) {
	fuzzOracle(f, func(int) Regressor { return newHedge(table{{0, 1}, {1, 0}, {0.5, 0.5}}, HedgeOptions{}) })
}

func FuzzAggregateUnmarshal(f *testing.F) {
	fuzzOracle(f, func(version int) Regressor {
		return newAggregate(AggregateOptions{Beta: 0.5, MaxFeatures: 6, MaxActions: 3, Fourier: 2, Version: version})
	})
}

func FuzzAggregateOfTermsUnmarshal(f *testing.F) {
	fuzzOracle(f, func(version int) Regressor {
		return newAggregate(AggregateOptions{Beta: 0.5, MaxFeatures: 6, MaxActions: 3, Fourier: 2, Version: version,
			Places: 4})
	})
}

func FuzzDiagonalUnmarshal(f *testing.F) {
	fuzzOracle(f, func(version int) Regressor {
		d, err := NewDiagonal(DiagonalOptions{Beta: 0.5, Places: 4, MaxFeatures: 6, MaxActions: 3, Version: version})
		if err != nil {
			f.Fatal(err)
		}
		return d
	})
}
