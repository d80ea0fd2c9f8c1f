package judge

import (
	"fmt"
	"strings"
	"testing"

	"hindsight/internal/dataset"
	"hindsight/internal/logs"
	"hindsight/internal/loop"
)

// intervalLog is a log of so many rows in CSV. Half of the outcomes take ten times as long; where late says so they
// are zeroes, and where gaps says so every fifth row has none.
func intervalLog(t *testing.T, constant, late, gaps bool) *OffPolicy {
	t.Helper()
	var b strings.Builder
	b.WriteString("a,r,p,at,seen\n")
	for i := range 600 {
		r, p, seen := fmt.Sprint(i/2%2), .5, 1_600_000_001+i
		if !constant && i%7 == 0 {
			p = .25
		}
		if late && i/2%2 == 0 || !late && i%3 == 0 {
			seen += 10
		}
		known := fmt.Sprint(seen)
		if i%5 == 0 && gaps {
			r, known = "", ""
		}
		fmt.Fprintf(&b, "%s,%s,%v,%d,%s\n", string("xy"[i%2]), r, p, 1_600_000_000+i, known)
	}
	log, err := readLog("t.csv", strings.NewReader(b.String()), logOptions{Options: logs.Options{
		Mapping: logs.Mapping{Action: "a", Reward: "r", Propensity: "p", Time: "at", OutcomeTime: "seen"}}})
	if err != nil {
		t.Fatal(err)
	}
	return judged(t, log)
}

// TestChooseInterval: each row of the table of docs/off-policy.md that a file can be of.
func TestChooseInterval(t *testing.T) {
	for _, c := range []struct {
		constant, late, gaps bool
		want, why            string
	}{
		{true, false, false, NormalInterval, "the log played each action with one probability, and a file is " +
			"looked at once; every row has an outcome"},
		{true, false, true, NormalInterval, "the 120 rows without an outcome are taken as missing at random"},
		{true, true, false, NormalInterval, "every row has an outcome"},
		{true, true, true, WorstInterval, "a mean loss of 1.00, the others one of 0"},
		{false, false, true, AnyTimeInterval, "the log does not say that the policy that made it was fixed; the " +
			"120 rows"},
		{false, true, true, WorstInterval, "the log does not say that the policy that made it was fixed; " +
			"outcomes that"},
	} {
		o := intervalLog(t, c.constant, c.late, c.gaps)
		if got := o.Settings(o.Options()).Interval; got.Right != c.want || !strings.Contains(got.Why, c.why) {
			t.Errorf("%+v: %+v", c, got)
		}
	}
	if got := judged(t, targetLog(t)).interval; !strings.Contains(got.Why, "cannot be tested without the times") {
		t.Errorf("%+v", got)
	}
	o := intervalLog(t, true, false, false)
	o.sample.Unit, o.sample.Units = make([]int32, o.sample.Len()), 1000
	for right, want := range map[string]string{NormalInterval: "; rows of one unit may depend on each other, and",
		AnyTimeInterval: "; it is of what these rows were worth", WorstInterval: "; it is of what these rows were"} {
		if got := o.byUnit(right); !strings.HasPrefix(got, want) || !strings.Contains(got, "each of 1,000 units") {
			t.Errorf("%s: %q", right, got)
		}
	}
	for _, c := range []struct {
		constant bool
		intake   *dataset.Intake
		why      string
	}{
		{true, nil, "one probability, and a file is looked at once; every"},
		{true, &dataset.Intake{Account: logs.Account{Format: logs.Topics}}, "one probability, and the log of a live " +
			"system can be looked at again and again; every"},
		{false, nil, "the log does not say that the policy that made it was fixed; every"},
		{false, &dataset.Intake{Learned: 1, Account: logs.Account{Events: 600}}, "1 of its 600 decisions are of a " +
			"learner that learned from it; every"},
	} {
		o := intervalLog(t, c.constant, false, false)
		o.log.Intake = c.intake
		normal := strings.Contains(c.why, "at once")
		if got := o.chooseInterval(); !strings.Contains(got.Why, c.why) || (got.Right == NormalInterval) != normal {
			t.Errorf("%+v: %+v", c.intake, got)
		}
	}
}

// TestLateLosses: losses of outcomes that took longer than the mean are on the scale of the rewards, reversed.
func TestLateLosses(t *testing.T) {
	log, err := readLog("t.csv", strings.NewReader("a,r,p,at,seen\nx,2,.5,100,101\ny,8,.5,100,110\nx,3,.5,100,102\n"),
		logOptions{Options: logs.Options{
			Mapping: logs.Mapping{Action: "a", Reward: "r", Propensity: "p", Time: "at", OutcomeTime: "seen"},
			Range:   loop.Range{Min: 2, Max: 6, Clip: true}}})
	if err != nil {
		t.Fatal(err)
	}
	l := judged(t, log).lateLosses()
	if l.Late.N != 1 || l.Late.Mean() != 0 || l.OnTime.N != 2 || l.OnTime.Mean() != .875 {
		t.Errorf("late %v of %d, in time %v of %d", l.Late.Mean(), l.Late.N, l.OnTime.Mean(), l.OnTime.N)
	}
}

// TestMissingRows: rows without an outcome make the worst interval wider, wherever they lie, and no other.
func TestMissingRows(t *testing.T) {
	o := intervalLog(t, true, false, true)
	e, err := o.Evaluate("always:x", o.Options())
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for i := range o.sample.Len() + 1 {
		n += o.missing(i)
	}
	if n != 120 || o.missing(0) != 1 || o.missing(1) != 0 {
		t.Errorf("%d rows are missing, %d of them first", n, o.missing(0))
	}
	a := e.AnyTime
	if !(a.Worst.Low < a.Low && a.Low < .5 && .5 < a.High && a.High < a.Worst.High) {
		t.Errorf("%+v", a)
	}
}
