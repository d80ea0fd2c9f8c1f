package replay

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"hindsight/internal/dataset"
	"hindsight/internal/delay"
	"hindsight/internal/loop"
	"hindsight/internal/model"
	"hindsight/pkg/codec"
)

// someRows is a labelled CSV of n rows with a number, a category, and cells without one.
func someRows(t *testing.T, n int) *Rounds {
	t.Helper()
	var text strings.Builder
	text.WriteString("label,n_x,c_y,n_long_enough_for_a_name\n")
	for i := range n {
		fmt.Fprintf(&text, "%c,%s,%s,%d\n", 'a'+i*i%3, []string{"", "-0.5", "1e3", "3"}[i%4], []string{"u", "",
			"v"}[i%3], i%7)
	}
	m, err := readLabelled("t.csv", strings.NewReader(text.String()))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestContextsOfALabelledCSVAreThoseOfItsRows(t *testing.T) {
	m := someRows(t, 40)
	numbers, err := readLabelled("t.csv", strings.NewReader("label,n_x,n_y\na,1,2\na,3,4\nb,,5\na,6,\nb,7,8\nb,9,10\n"))
	if err != nil {
		t.Fatal(err)
	}
	for name, env := range map[string]*Rounds{
		"rows": m, "numbers": numbers, "order": Order(m, 1, 5), "head": Order(Head(m, 30), 2, 5),
		"twisted": Order(twisted(t, twisted(t, m, "permute:.5"), "rewards:.6,.3"), 1, 7),
	} {
		reader := env.Reader()
		for i := range env.Len() {
			var c codec.Context
			env.Context(&c, i)
			c.ID, c.Actions = dataset.RoundID(i), nil
			want := codec.AppendContext(nil, &c)
			if got := reader.Bytes(i); !bytes.Equal(got, want) || !bytes.Equal(env.Reader().Bytes(i), want) {
				t.Fatalf("%s: context %d is %q, not %q", name, i, got, want)
			}
		}
	}
}

// A backtest forgets rounds whose outcome was given, which changes no fate.
func TestWhatABacktestForgetsHasNoEffect(t *testing.T) {
	env := someRows(t, 400)
	for _, spec := range []string{"none", "constant:30", "exp:40", "burst:90", "head:100,150", "never:0.1",
		"reorder:50"} {
		for _, window := range []int64{5, 60, 1000} {
			d, err := delay.Parse(spec, delay.Options{Seed: 1})
			if err != nil {
				t.Fatal(err)
			}
			play := func(forgets bool) *tracedRun {
				m, _ := ModelFor(env, "replay", model.Learner{Kind: model.DAFA}, loop.Window{Rounds: window})
				m.Oracle = model.Oracle{Kind: model.Linear, Lambda: model.Number{Value: 1}}
				l, err := m.Build(nil)
				if err != nil {
					t.Fatal(err)
				}
				b := newBacktest(loop.Epoch{Number: 1, Rules: m.Rules(), Learner: l}, "replay", SecretSeed(1), env, d)
				b.forgets = forgets
				r, err := traceOf(t.Context(), b)
				if err != nil {
					t.Fatal(err)
				}
				return r
			}
			got, want := play(true), play(false)
			if got.Fates != want.Fates || fmt.Sprint(got.Actions, got.Through) != fmt.Sprint(want.Actions,
				want.Through) {
				t.Errorf("%s, window %d: fates are %+v, not %+v", spec, window, got.Fates, want.Fates)
			}
			if want.Fates.Orphan > 0 || math.IsNaN(got.match.meanLoss()) {
				t.Errorf("%s: fates are %+v", spec, want.Fates)
			}
		}
	}
}
