package ope

import (
	"encoding/json"
	"flag"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"hindsight/internal/testkit/golden"
	"hindsight/pkg/oracle"
)

var update = flag.Bool("update", false, "write what testdata/judgements.golden should say")

// TestGoldenJudgements: all that a judgement says, to nine digits, in a golden file. A block of the file is == drawn,
// what the log has, its number of rows, and the judgement.
func TestGoldenJudgements(t *testing.T) {
	number := regexp.MustCompile(`-?\d+\.\d+(e-?\d+)?`)
	golden.Blocks(t, *update, "testdata/judgements.golden", func(words []string, rows string) string {
		n, err := strconv.Atoi(rows[:len(rows)-1])
		if err != nil {
			t.Fatal(err)
		}
		s, policy, o := drawn(n, words[1:])
		e, err := Evaluate(s, "drawn", policy, o)
		if err != nil {
			return err.Error() + "\n"
		}
		out, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.NewReplacer("},", "},\n", "],", "],\n").Replace(string(out))
		return number.ReplaceAllStringFunc(lines, func(text string) string {
			x, err := strconv.ParseFloat(text, 64)
			if err != nil {
				t.Fatal(err)
			}
			return strconv.FormatFloat(x, 'g', 9, 64)
		}) + "\n"
	})
}

// drawn is a log of rewards in [−1, 2] of three actions, that has some of what a log may have.
func drawn(n int, has []string) (s *Sample, policy Policy, o Options) {
	rng := rand.New(rand.NewPCG(8, uint64(n)))
	s, o = &Sample{Actions: 3}, Defaults()
	o.Bootstrap, o.Range, o.MinRows = 20, Range{-1, 2}, 10
	var laws [][3]float64
	var x []float64
	for range n {
		a, at := rng.IntN(3), float64(2*rng.Float64())-1
		s.Action, s.Propensity = append(s.Action, int32(a)), append(s.Propensity, .1+float64(.3*rng.Float64()))
		s.Reward = append(s.Reward, min(2, .5+float64(float64(a-1)*at)+float64(.5*rng.Float64())))
		first := rng.Float64()
		laws, x = append(laws, [3]float64{first, 1 - first}), append(x, at)
	}
	policy = func(dst []float64, t int) { copy(dst, laws[t][:]) }
	with := func(what string) bool { return slices.Contains(has, what) }
	if with("events") {
		for range n {
			s.Events = append(s.Events, float64(1+rng.IntN(4)))
		}
	}
	if with("units") {
		s.Units = 7
		for range n {
			s.Unit = append(s.Unit, int32(rng.IntN(s.Units)))
		}
	}
	if with("missing") {
		s.Missing = func(t int) int { return t % 3 % 2 }
	}
	if with("features") {
		s.Context = func(in *oracle.Input, t int) []int32 {
			in.Features = []oracle.Feature{{Name: "x", Kind: oracle.Number, Value: x[t]}}
			in.Actions = make([]oracle.Action, 3)
			return []int32{2, 1, 0}
		}
	}
	if with("chosen") {
		o.Lambda = 0
	}
	if with("low") {
		o.Lambda = 2.5
	}
	if with("logged") {
		policy = nil
	}
	return s, policy, o
}
