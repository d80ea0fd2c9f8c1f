package judge

import (
	"fmt"
	"strings"
	"testing"

	"hindsight/internal/dataset"
	"hindsight/internal/logs"
	"hindsight/pkg/codec"
	"hindsight/pkg/oracle"
)

// TestTextsNarrow: what a round is worth follows from how long its prompt is, and no prompt comes twice. The reward
// model sees that in the statistics of the text, and not in the text as a category.
func TestTextsNarrow(t *testing.T) {
	var log strings.Builder
	for i := range 600 {
		x := uint32(i+1) * 2654435761
		words, a := 1+int(x>>8%40), x>>30%2
		fmt.Fprintf(&log,
			`{"features":{"prompt":"%s %d"},"actions":["x","y"],"action":"%s","propensity":0.5,"reward":%v}`+"\n",
			strings.Repeat("so ", words), i, []string{"x", "y"}[a], .5+(float64(a)-.5)*float64(words-20)/25)
	}
	width := func(long func(string) bool) float64 {
		o, err := NewOffPolicy(readEvents(t, log.String(), dataset.Options{Long: long}, logs.Options{Long: long}), nil)
		if err != nil {
			t.Fatal(err)
		}
		e, err := o.Evaluate("always:x", o.Options())
		if err != nil {
			t.Fatal(err)
		}
		dr := e.Estimates.Get("dr")
		if !(dr.Low < .5 && dr.High > .45) {
			t.Errorf("%v to %v: the truth is about .48", dr.Low, dr.High)
		}
		return float64(dr.High - dr.Low)
	}
	category, words := width(nil), width(func(name string) bool { return name == "prompt" })
	if words > .8*category {
		t.Errorf("the interval is %v wide, and %v if the text is a category", words, category)
	}
}

// TestVectorsNarrowNothing: the reward model sees no vectors, which have no columns of their own.
func TestVectorsNarrowNothing(t *testing.T) {
	x := texts{log: targetLog(t).Log}
	got := x.append(nil, []codec.Feature{codec.VectorOf("v", []float64{1}), {Name: "n", Kind: codec.Number, Value: 3}})
	if len(got) != 1 || got[0] != (oracle.Feature{Name: "n", Kind: oracle.Number, Value: 3}) {
		t.Errorf("%+v", got)
	}
}
