package delay

import (
	"crypto/sha256"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hindsight/internal/grammar"
	"hindsight/internal/logs"
	"hindsight/internal/random"
	"hindsight/internal/scan"
)

// TestAdversariesByHand: the delays that are no law, round by round.
func TestAdversariesByHand(t *testing.T) {
	losses := []float64{0, 0.5, 0.999, 1}
	for spec, want := range map[string][]int64{
		"none": {0, 0, 0, 0}, "constant:7": {7, 7, 7, 7}, "constant:7+constant:5": {12, 12, 12, 12},
		"burst:3": {2, 1, 0, 2, 1, 0, 2}, "burst:1": {0, 0}, "head:3,5": {5, 0, 0, 5, 0, 0, 5, 0},
		"hold:2,5,8": {0, 0, 5, 4, 3, 0, 0}, "hold:1,4,3": {0, 1, 0, 0, 0}, "hold:0,1,1": {0, 0},
		"starve-best:7": {0, 7, 0, 0, 7, 0, 0, 7}, "loss:2,10": {2, 6, 10, 10, 2, 6}, "loss:10,2": {10, 6, 2, 2},
		"never-bad:1": {0, 0, 0, Never, 0, 0, 0, Never}, "never-bad:0": {0, 0, 0, 0}, "never:1": {Never, Never},
		"never:0": {0, 0}, "lognormal:20,0": {20, 20, 20}, "constant:1+never:1": {Never, Never},
	} {
		d := delays(t, spec, 3)
		for i, want := range want {
			p := &Play{Round: i, Action: i % 3, Loss: losses[i%4], Truth: []float64{0.5, 0.2, 0.3}}
			if got := d.Delay(p); got != want {
				t.Errorf("%s: round %d waits for %d, want %d", spec, i, got, want)
			}
		}
	}
	d := delays(t, "starve-best:7", 3)
	if got := d.Delay(&Play{}); got != 0 {
		t.Errorf("where the best action is not known it waits for %d", got)
	}
	if _, err := Parse("starve-best:7", Options{Unknown: true}); err == nil {
		t.Error("the best action of this data is not known")
	}
	seen, d := [5]int{}, delays(t, "reorder:3", 3)
	for i := range 300 {
		seen[d.Delay(&Play{Round: i})]++
	}
	if seen[0] < 70 || seen[1] < 70 || seen[2] < 70 || seen[3] > 0 {
		t.Errorf("places of reorder:3: %d", seen)
	}
	z, d := random.New(3, "delay 0"), delays(t, "lognormal:1000,0.5", 3)
	for i := range 20 {
		want := 1000 * math.Exp(z.Normal(uint64(i), 0)/2)
		if got := d.Delay(&Play{Round: i}); math.Abs(float64(got)-want) > 0.51 {
			t.Errorf("lognormal: round %d waits for %d, want %v", i, got, want)
		}
	}
}

// TestDelayBounds: the largest and the smallest parameters of laws, and those beyond.
func TestDelayBounds(t *testing.T) {
	for spec, ok := range map[string]bool{"exp:1e9": true, "exp:1.1e9": false, "exp:1e-9": true, "exp:1e-10": false,
		"lognormal:1e9,20": true, "lognormal:1e9,20.5": false, "lognormal:1.1e9,2": false, "lognormal:2,0": true,
		"lognormal:2,-0.5": false, "pareto:100,1e9": true, "pareto:100.5,1": false, "pareto:1,1.1e9": false,
		"never:0": true, "never:1": true, "never:-0.5": false, "never:1.5": false, "never-bad:1": true,
		"never-bad:1.5": false, "never-bad:-.5": false, "burst:0": false, "burst:1": true, "head:0,1": false,
		"head:1,0": true, "reorder:0": false, "reorder:1": true, "constant:0": true} {
		if _, err := Parse(spec, Options{}); (err == nil) != ok {
			t.Errorf("%s: %v", spec, err)
		}
	}
	for x, want := range map[float64]int64{0: 0, 0.49: 0, 0.5: 1, 1.49: 1, grammar.MaxCount: grammar.MaxCount,
		grammar.MaxCount - 1: grammar.MaxCount - 1, math.Inf(1): grammar.MaxCount, math.NaN(): grammar.MaxCount} {
		if got := whole(x); got != want {
			t.Errorf("whole(%v) = %d", x, got)
		}
	}
}

// TestRecordedByHand: what the times of a log say, with outcomes between decisions, at one, before their own and never.
func TestRecordedByHand(t *testing.T) {
	decided, came := []int64{0, 10, 20, 30, 40, 50}, []int64{5, 35, 20, scan.NoTime, 40, 3}
	if got, want := recorded(decided, came), []int64{0, 2, 0, Never, 0, 0}; !slices.Equal(got, want) {
		t.Errorf("delays %d, want %d", got, want)
	}
	var passed []int
	got := Describe(decided, came, func(t int) { passed = append(passed, t) })
	// waits 1, 3, 0, 3 until the end, 0, 0; the outcome of the last round came before those of the five others
	want := Recorded{Stats{D: 7, DMax: 3, SigmaMax: 2, Mean: 7. / 6, P50: 0, P90: 3, P99: 3}, 5}
	if *got != want {
		t.Errorf("%+v, want %+v", *got, want)
	}
	if want := []int{0, 1, 2, 3, 4, 5, 5, 4, 3, 2, 1, 0}; !slices.Equal(passed, want) {
		t.Errorf("rows %d were passed", passed)
	}
	d, err := Parse(Own, Options{Decided: decided, Came: came})
	if err != nil || !slices.Equal(d.Times, came) || d.Delay(&Play{Round: 7}) != 2 {
		t.Errorf("%+v, %v", d, err)
	}
	if _, err := Parse(Own, Options{}); err == nil || !strings.Contains(err.Error(), "no times of outcomes") {
		t.Errorf("of a log without times: %v", err)
	}
}

// TestRecordedFiles: a file of delays, and one of times, under the columns' usual names and others.
func TestRecordedFiles(t *testing.T) {
	const csv = "at,then\n100,105\n110,135\n120,\n130,130\n"
	for name, c := range map[string]struct {
		text, err string
		times     logs.Mapping
		want      []int64
	}{
		"delays":    {"3\n never \r\n0\n10", "", logs.Mapping{}, []int64{3, Never, 0, 10, 3}},
		"largest":   {"9223372036854775807\n", "", logs.Mapping{}, []int64{grammar.MaxCount}},
		"long line": {"3\n" + strings.Repeat("0", 1<<17), ": bufio.Scanner: token too long", logs.Mapping{}, nil},
		"one bad":   {"3\n-1\n", `:2: "-1" is not a delay`, logs.Mapping{}, nil},
		"no number": {"3\n4\nx\n", `:3: "x" is not a delay`, logs.Mapping{}, nil},
		"times": {strings.NewReplacer("at", "decision_ts", "then", "outcome_ts").Replace(csv), "", logs.Mapping{},
			[]int64{0, 2, Never, 0, 0}},
		"named":      {csv, "", logs.Mapping{Time: "at", OutcomeTime: "then"}, []int64{0, 2, Never, 0, 0}},
		"not named":  {csv, "decision_ts", logs.Mapping{}, nil},
		"no rows":    {"decision_ts,outcome_ts\n", "no rows", logs.Mapping{}, nil},
		"no columns": {"", "", logs.Mapping{}, nil},
		"a bad time": {"decision_ts,outcome_ts\n100,x\n", "outcome_ts", logs.Mapping{}, nil},
	} {
		file := filepath.Join(t.TempDir(), "delays")
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		d, err := Parse("recorded:"+file, Options{Times: c.times})
		if (err == nil) != (c.want != nil) || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v, want %q", name, err, c.err)
		}
		for i, want := range c.want {
			if got := d.Delay(&Play{Round: i}); got != want {
				t.Errorf("%s: round %d waits for %d, want %d", name, i, got, want)
			}
		}
	}
	for _, spec := range []string{"recorded:", "recorded:/nowhere/at/all"} {
		if _, err := Parse(spec, Options{}); err == nil {
			t.Errorf("%s: no error", spec)
		}
	}
}

// TestNearestRank: of a hundred delays 0 … 99 the quantiles are those that the nearest rank says, of two the first.
func TestNearestRank(t *testing.T) {
	for n, want := range map[int64]Stats{
		100: {D: 4950, DMax: 99, Mean: 49.5, P50: 49, P90: 89, P99: 98},
		2:   {D: 1, DMax: 1, Mean: 0.5, P50: 0, P90: 1, P99: 1},
		10:  {D: 45, DMax: 9, Mean: 4.5, P50: 4, P90: 8, P99: 9}, 0: {},
	} {
		var c delayCounts
		for d := range n {
			c.add(d)
		}
		if got := c.stats(); got != want {
			t.Errorf("%d delays: %+v, want %+v", n, got, want)
		}
	}
}

// TestLastPart: which of the parts of a round comes last.
func TestLastPart(t *testing.T) {
	for _, c := range []struct {
		parts []Part
		timed bool
		last  int32
	}{
		{[]Part{{Delay: Never}, {Delay: 1}}, false, 1}, {[]Part{{Delay: 1}, {Delay: Never}, {Delay: 0}}, false, 0},
		{[]Part{{Delay: 1}, {Delay: 1}}, false, 1}, {[]Part{{Delay: 1}, {Delay: 0}}, false, 0},
		{[]Part{{Delay: 0}, {Delay: 1}}, true, 1}, {[]Part{{Delay: 0, Time: 9}, {Delay: 1, Time: 3}}, true, 1},
		{[]Part{{Delay: 1, Time: 9}, {Delay: 1, Time: 3}}, true, 0},
		{[]Part{{Delay: 1, Time: 3}, {Delay: 1, Time: 3}}, true, 1},
		// at the end of the run all that is left comes at once: in the order of times where there are some
		{[]Part{{Delay: 4, Time: 9}, {Delay: 5, Time: 3}}, true, 0},
		{[]Part{{Delay: 3, Time: 9}, {Delay: 5, Time: 3}}, true, 0},
		{[]Part{{Delay: 2, Time: 9}, {Delay: 3, Time: 3}}, true, 1},
		{[]Part{{Delay: 5}, {Delay: 4}}, false, 0}, {[]Part{{Delay: 3}, {Delay: 2}}, false, 0},
	} {
		s := NewSchedule(5, nil)
		s.Timed = c.timed
		s.Add(0, 0)
		s.Add(Never, 0)
		s.After(1)
		s.AddParts(c.parts, 4)
		for _, a := range s.Rest() {
			if a.Last != (a.Part == c.last) || a.Round != 2 || a.Action != 4 {
				t.Errorf("%+v: %+v", c, a)
			}
		}
	}
}

// TestWorstBounds: what can be searched, and what not, at each bound.
func TestWorstBounds(t *testing.T) {
	most := Budget{Rounds: 5, Max: 2}.Most() // 2 + 2 + 2 + 1 + 0
	for _, c := range []struct {
		w    Worst
		want string
	}{
		{Worst{Budget: Budget{5, 1, 2}, Batch: 1, Random: 1}, ""},
		{Worst{Budget: Budget{5, most, 2}, Batch: 1, Random: 1}, ""},
		{Worst{Budget: Budget{2, 1, 1}, Batch: 1, Random: 1}, ""},
		{Worst{Budget: Budget{1, 1, 1}, Batch: 1, Random: 1}, "1 rounds"},
		{Worst{Budget: Budget{5, 1, 0}, Batch: 1, Random: 1}, "a longest delay of 0"},
		{Worst{Budget: Budget{5, 0, 2}, Batch: 1, Random: 1}, "between 1 and 7"},
		{Worst{Budget: Budget{5, most + 1, 2}, Batch: 1, Random: 1}, "a total delay of 8"},
		{Worst{Budget: Budget{5, 1, 2}, Steps: -1, Batch: 1, Random: 1}, "must be positive"},
		{Worst{Budget: Budget{5, 1, 2}, Batch: 0, Random: 1}, "must be positive"},
		{Worst{Budget: Budget{5, 1, 2}, Batch: 1, Random: 0}, "must be positive"},
	} {
		err := c.w.Validate()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.w, err, c.want)
		}
	}
	w := Worst{Random: 3, Steps: 5, Batch: 7}
	if got := w.Candidates(); got != 3+4+5*7 {
		t.Errorf("%d candidates", got)
	}
	for spec, want := range map[string]Budget{"constant:3": {6, 3 + 3 + 3 + 2 + 1, 3}, "never:1": {6, 15, 5},
		"none": {6, 0, 0}} {
		if got := BudgetOf(delays(t, spec, 1), 6); got != want {
			t.Errorf("the budget of %s is %+v", spec, got)
		}
	}
}

// TestWorstIsPinned: the same search tries the same sequences, whose names and harms are in their order.
func TestWorstIsPinned(t *testing.T) {
	h := sha256.New()
	for seed := range uint64(6) {
		for _, b := range []Budget{{40, 100, 12}, {100, 99, 40}, {9, 20, 3}, {2, 1, 1}, {7, 21, 6}} {
			w := &Worst{Budget: b, Steps: 6, Batch: 5, Random: 3, Seed: seed, Harm: planted}
			f, err := w.Search(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintln(h, *f)
		}
	}
	if got := fmt.Sprintf("%x", h.Sum(nil))[:16]; got != "8b317b6402aee44a" {
		t.Errorf("%s, was 8b317b6402aee44a", got)
	}
}
