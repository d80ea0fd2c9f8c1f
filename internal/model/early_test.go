package model

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"hindsight/internal/loop"
	"hindsight/pkg/learner"
)

// drawHurry gives a model the key early where it may have it.
func drawHurry(t *rapid.T, m *Model) {
	m.Hurry = &Hurry{}
	if rapid.Bool().Draw(t, "silence") {
		v := m.Range.Min + rapid.Float64Range(0, 1).Draw(t, "value")*(m.Range.Max-m.Range.Min)
		m.Hurry.Silence = &v
	}
	switch rapid.IntRange(0, 2).Draw(t, "after") {
	case 0:
		m.Hurry.After.Rounds = rapid.Int64Range(1, maxWindowRounds).Draw(t, "rounds")
	case 1:
		m.Hurry.After.Nanos = rapid.Int64Range(1, maxWindowNanos).Draw(t, "nanos")
	}
	bad := false
	if m.hurryProblems(func(string, string, ...any) { bad = true }); bad {
		m.Hurry = nil
	}
}

func TestEarly(t *testing.T) {
	for _, text := range []string{"window: 50 rounds\nearly: {after: 5m}", "window: 5m\nearly: {after: 50}"} {
		if m := mustParse(t, "missing: impute\n"+text); m.Hurry == nil {
			t.Errorf("%s: nothing is early", text)
		}
	}
	const base = "reward: {min: 0, max: 4}\nmissing: impute\nwindow: 1h\n"
	for text, want := range map[string]loop.Provisional{
		"early: median":                    {Silence: 1},
		"early: {after: 5m}":               {After: loop.Window{Nanos: 5 * 60 * 1e9}, Silence: 1},
		"early: {after: 30, silence: 3}":   {After: loop.Window{Rounds: 30}, Silence: .25},
		"early: {silence: 0}":              {Silence: 1},
		"early: median\norder: fifo":       {Silence: 1},
		"early: median\ndefault_loss: 0.5": {Silence: .5},
		"early: median\noracle: linear":    {Silence: 1},
		"early: median\noracle: diagonal":  {Silence: 1},
	} {
		m, err := Parse("m.yaml", []byte(base+text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if r := m.Rules(); r.Provisional == nil || *r.Provisional != want || r.Early {
			t.Errorf("%s: the rule is %+v, want %+v", text, r.Provisional, want)
		}
		l, err := m.Build(nil)
		if err != nil {
			t.Fatal(err)
		}
		plain := *m
		plain.Hurry = nil
		if twice, once := m.Memory(), plain.Memory(); twice != 2*once {
			t.Errorf("%s: it may take %d bytes, without early %d", text, twice, once)
		}
		if l.(*learner.DAFA).Provisional() != 0 {
			t.Error("a new learner has provisional rounds")
		}
		of, err := plain.Build(nil)
		if err != nil {
			t.Fatal(err)
		}
		fast, err := l.AppendBinary(nil)
		slow, wrong := of.AppendBinary(nil)
		if err != nil || wrong != nil || len(fast) < len(slow) || fast[1] == slow[1] {
			t.Errorf("%s: it has a state of %d bytes, without early %d", text, len(fast), len(slow))
		}
	}
	for text, want := range map[string]string{
		"early: soon":                                `expected none, or median, or some of after, silence, found "soon"`,
		"early: {after: 1x}":                         `early.after: median, or: "1x" is no window`,
		"early: {before: 1m}":                        `unknown key "before"`,
		"early: {after: 1h}":                         "after: 1h is not before the window of 1h ends",
		"early: {silence: 5}":                        "silence: out of the model's range: 5 is not in [0, 4]",
		"early: median\nlearner: greedy":             "learner: greedy does not learn what is provisional",
		"early: median\noracle: shared":              "oracle: shared cannot take back what it learned",
		"early: median\norder: early\nmissing: skip": "missing: skip learns nothing of it",
		"early: median\noutcomes: sum":               "the first outcome of a round must be its last word",
		"early: median\nactivation: required":        "the first outcome of a round must be its last word",
		"early: median\norder: arrival\noracle: {kind: hedge, class: c.jsonl}": "what is final is learned in order",
	} {
		b := base
		for line := range strings.Lines(base) {
			if key, _, _ := strings.Cut(line, ":"); strings.Contains(text, "\n"+key+":") {
				b = strings.Replace(b, line, "", 1)
			}
		}
		if _, err := Parse("m.yaml", []byte(b+text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v\nwant %s", text, err, want)
		}
	}
	named := "outcomes: {quality: {}}\nreward: quality\nearly: median"
	if _, err := Parse("m.yaml", []byte(named)); err == nil || !strings.Contains(err.Error(), "it is for models with "+
		"one loss") {
		t.Errorf("named outcomes: %v", err)
	}
}
