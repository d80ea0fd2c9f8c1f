package latelosses

import (
	"fmt"
	"strings"
	"testing"

	"hindsight/internal/loop"
	"hindsight/internal/words"
	"hindsight/pkg/codec"
)

// TestLateOutcomesOfRejects: of the rejects only the losses that came late count, the
// first that fits of each round, and only where none was in time.
func TestLateOutcomesOfRejects(t *testing.T) {
	x := Outcomes{}
	add := func(id, reason string, o codec.Outcome) {
		o.ID = id
		x.AddReject(&codec.Reject{ID: id, Topic: "outcomes", Reason: reason, Bytes: codec.AppendOutcomeJSON(nil, &o)})
	}
	loss := func(v float64) codec.Outcome { return codec.Outcome{Kind: codec.Loss, Value: v} }
	add("a", codec.ReasonLate, codec.Outcome{Kind: codec.Withdrawn})
	add("a", codec.ReasonLate, loss(7))
	add("a", codec.ReasonLate, codec.Outcome{Kind: codec.Reward, Value: 0.25})
	add("a", codec.ReasonLate, loss(0))
	add("b", codec.ReasonDuplicate, loss(0))
	add("c", codec.ReasonLate, loss(0))
	x.AddReject(&codec.Reject{ID: "b", Topic: "outcomes", Reason: codec.ReasonLate, Bytes: []byte(`{"id":"b","lo`)})
	all := ByOutcome{}
	rules := &loop.Rules{Range: loop.Range{Max: 1}}
	for _, f := range []codec.Feedback{{ID: "a", Fate: codec.Imputed, Loss: 1}, {ID: "b", Fate: codec.Skipped},
		{ID: "c", Fate: codec.Observed, Loss: 0.5},
		{ID: "c", Fate: codec.Skipped, Reason: codec.ReasonDuplicateID}} {
		x.AddFeedback(all, &f, rules)
	}
	if l := all.Of(""); l.OnTime.N != 1 || l.OnTime.Mean() != 0.5 || l.Late.N != 1 || l.Late.Mean() != 0.75 {
		t.Errorf("%d of %v on time, %d of %v late", l.OnTime.N, l.OnTime.Mean(), l.Late.N, l.Late.Mean())
	}
}

// A log of rewards is told of rewards: the larger losses that came late are smaller rewards.
func TestWarningOfRewards(t *testing.T) {
	mean := func(x float64) *float64 { return &x }
	c := Comparison{OnTime: Figures{N: 10, Mean: mean(.25)}, Late: Figures{N: 10, Mean: mean(.75)}, Differ: true}
	for want, shown := range map[string]*words.Rewards{
		"the losses that came late differ (0.750 of 10, against 0.250 of 10 in time): leaving them out biases what is " +
			"learned, which takes losses to be lower": nil,
		"the rewards that came late differ (1.000 of 10, against 3.000 of 10 in time): leaving them out biases what is " +
			"learned, which takes rewards to be higher": {Min: 0, Max: 4},
	} {
		if got := c.Warning(shown); !strings.HasPrefix(got, want) {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
}

// TestLine: how the two are told, of no number, of one and of several.
func TestLine(t *testing.T) {
	of := func(losses ...float64) (m Moments) {
		for _, x := range losses {
			m.Add(x)
		}
		return m
	}
	for _, c := range []struct {
		late, inTime Moments
		shown        *words.Rewards
		want         string
	}{
		{of(), of(0, 1), nil, ""}, {of(.5), of(), nil, "0.500 of 1, against none in time"},
		{of(0, 1), of(.25, .25), nil, "0.500 ± 0.500 of 2, against 0.250 ± 0.000 of 2 in time"},
		{of(0, 1), of(.25), &words.Rewards{Min: 0, Max: 4}, "2.000 ± 2.000 of 2, against 3.000 of 1 in time"},
	} {
		l := Compare(&Losses{OnTime: c.inTime, Late: c.late})
		if got := strings.ReplaceAll(l.Line(c.shown), "\u00a0", " "); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
		if l.Differ || l.Warning(nil) != "" {
			t.Errorf("%s: they differ", c.want)
		}
	}
}

// TestWarningSaysWhere: of a round's own losses in the order of arrival bounds are void, of a named outcome not.
func TestWarningSaysWhere(t *testing.T) {
	l := &Losses{}
	for range 200 {
		l.OnTime.Add(0)
		l.Late.Add(1)
	}
	for _, c := range []struct {
		name    string
		arrival bool
	}{{"", false}, {"", true}, {"q", false}, {"q", true}} {
		got := Warning(ByOutcome{c.name: l}, c.arrival)
		if strings.Contains(got, Arrival) != (c.arrival && c.name == "") ||
			strings.HasPrefix(got, "outcome q, ") != (c.name == "q") || !strings.Contains(got, "to be lower than") {
			t.Errorf("%+v: %s", c, got)
		}
	}
	if got := Warning(ByOutcome{}, true); got != "" {
		t.Errorf("of nothing: %s", got)
	}
}

// TestAddLateOfRecord: a record that tells several outcomes counts each, a withdrawn one and one without rules not.
func TestAddLateOfRecord(t *testing.T) {
	named := &loop.Rules{Named: []loop.OutcomeRule{{Name: "a", Range: loop.Range{Max: 1}},
		{Name: "b", Range: loop.Range{Max: 1}}}}
	own := &loop.Rules{Range: loop.Range{Max: 1}}
	record := &codec.Outcome{Kind: codec.Loss, Value: 1, Values: []codec.Value{{Name: "a", X: 1}, {Name: "b", X: 0},
		{Name: "c", X: 1}, {Name: "a", Withdrawn: true}}}
	for want, rules := range map[string]*loop.Rules{"a 1 0, b 1 1, own 0": named, " 0 0,  0 0, own 1": own,
		" 0 0,  0 0, own 0": nil} {
		l := ByOutcome{}
		l.AddLate(1, rules, record)
		a, b := &l.Of("a").Late, &l.Of("b").Late
		got := fmt.Sprintf("a %d %.0f, b %d %.0f, own %d", a.N, a.Mean(), b.N, b.Mean(), l.Of("").Late.N)
		if rules != named {
			got = fmt.Sprintf(" %d 0,  %d 0, own %d", a.N, b.N, l.Of("").Late.N)
		}
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
