package model

import (
	"strings"
	"testing"

	"hindsight/pkg/oracle"
)

const mixedText = `{"hindsight_class":1,"kind":"mixed","features":["age"],"actions":["red","green"]}
{"prior":1,"linear":[[0.5,0.25],[-1,1]]}
{"prior":2,"logistic":[[0,0.75],[0,2]]}
{"prior":1,"trees":[{"splits":[[0,14.5,-1,-2]],"leaves":[[0.2,0.8],[0.6,0.1]]},{"splits":[],"leaves":[[1,0]]}]}
`

func TestMixedFile(t *testing.T) {
	c, err := ParseClass("f.jsonl", []byte(mixedText))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(c.Append(nil)); got != mixedText {
		t.Errorf("written again:\n%s", got)
	}
	class, err := c.Class()
	if err != nil {
		t.Fatal(err)
	}
	x := &oracle.Input{Vector: []float64{20}, Actions: []oracle.Action{{Name: "green"}}}
	got := make([]float64, 3)
	if class.Eval(got, x, 0); got[0] != 0 || got[1] != oracle.Sigmoid(2) || got[2] != .05 {
		t.Errorf("%v", got)
	}
}

// TestMixedFileRefuses: what is wrong, and in which line.
func TestMixedFileRefuses(t *testing.T) {
	head, _, _ := strings.Cut(mixedText, "\n")
	for line, want := range map[string]string{
		`{"w":[[0,0],[0,0]]}`: "linear, logistic or trees",
		`{"prior":1}`:         "linear, logistic or trees",
		`{"linear":[[0,0],[0,0]],"trees":[{"leaves":[[0,0]]}]}`: "linear, logistic or trees, and nothing else",
		`{"linear":[[0,0]]}`:     "1 rows for 2 actions",
		`{"logistic":[[0],[0]]}`: "1 numbers where 2",
		`{"trees":[]}`:           "exactly one",
		`{"trees":[{"splits":[[0.5,1,-1,-1]],"leaves":[[0,0]]}]}`:   "all but at whole",
		`{"trees":[{"splits":[[0,1,-1,-9]],"leaves":[[0,0]]}]}`:     "no later split and no leaf",
		`{"trees":[{"splits":[[0,1,0,-1]],"leaves":[[0,0]]}]}`:      "no later split and no leaf",
		`{"trees":[{"splits":[[3,1,-1,-1]],"leaves":[[0,0]]}]}`:     "there are 1 columns",
		`{"trees":[{"splits":[[0,1,-1,-1e300]],"leaves":[[0,0]]}]}`: "all but at whole",
		`{"trees":[{"leaves":[[0,0]],"depth":3}]}`:                  "unknown field",
		`{"trees":[{"leaves":[[0]]}]}`:                              "1 numbers where 2",
	} {
		_, err := ParseClass("f.jsonl", []byte(head+"\n"+line+"\n"))
		if err == nil || !strings.HasPrefix(err.Error(), "f.jsonl:2: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v, want %s", line, err, want)
		}
	}
	c := &ClassFile{Kind: MixedClass, Features: []string{"age"}, Actions: []string{"a"}}
	for used, fits := range map[int]bool{maxClassNumbers - 2: true, maxClassNumbers - 1: false} { // and two more
		two := Function{Mixed: oracle.MixedFunction{Linear: [][]float64{{0, 0}}}}
		if err := c.add(two, &classSize{numbers: used}); (err == nil) != fits {
			t.Errorf("%d numbers and two: %v", used, err)
		}
	}
	_, err := ParseClass("f.jsonl", []byte(linearText+`{"trees":[{"leaves":[[0,0]]}]}`))
	if err == nil || !strings.Contains(err.Error(), "a function of a linear class has w, and nothing else") {
		t.Errorf("trees in a linear class: %v", err)
	}
}
