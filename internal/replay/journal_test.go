package replay

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hindsight/internal/delay"
	"hindsight/internal/loop"
	"hindsight/internal/model"
	"hindsight/internal/world"
)

// journalTrial is a short trial over an environment.
func journalTrial(t *testing.T, env *Rounds, learner, delays string) *Trial {
	t.Helper()
	l, err := model.ParseLearner(learner)
	if err != nil {
		t.Fatal(err)
	}
	d, err := delay.Parse(delays, env.DelayOptions(1))
	if err != nil {
		t.Fatal(err)
	}
	m, files := ModelFor(env, "replay", l, loop.Window{Rounds: 20})
	return &Trial{Rounds: env, Delays: d, Model: m, Files: files, Label: learner, Seed: 1}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func openJournal(t *testing.T, path string) *Journal {
	t.Helper()
	j, err := OpenJournal(path, "v1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

// TestJournal: what was kept comes back to the byte after the file is opened anew, with
// a line that a crash cut off.
func TestJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.jsonl")
	trials := []*Trial{
		journalTrial(t, OfWorld(world.NewSigmoid(1, 200, world.SigmoidOptions{})), "dafa", "exp:5"),
		journalTrial(t, worldLog(t, 1, 300), "egreedy:0.1", "never:0.2"),
		journalTrial(t, timedLog(t), "uniform", "none"),
	}
	j := openJournal(t, path)
	var want []string
	for _, tr := range trials[:2] {
		r, err := tr.Run(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := j.Keep(tr, r); err != nil {
			t.Fatal(err)
		}
		want = append(want, asJSON(t, r))
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, cut := range []string{"", `{"hind`, `{"hindsight_run":1,"key":"00","result":{"environ`} {
		if err := os.WriteFile(path, append(whole[:len(whole):len(whole)], cut...), 0o644); err != nil {
			t.Fatal(err)
		}
		j = openJournal(t, path)
		for i, tr := range trials {
			got, err := j.Result(tr)
			if err != nil {
				t.Fatal(err)
			}
			if i == 2 {
				if got != nil {
					t.Errorf("a run that was not made came back: %+v", got)
				}
				continue
			}
			if got == nil || asJSON(t, got) != want[i] {
				t.Errorf("cut %q: run %d came back as %+v, want %s", cut, i, got, want[i])
			}
		}
		if now, err := os.ReadFile(path); err != nil || string(now) != string(whole) {
			t.Errorf("cut %q: the line stayed (%v)", cut, err)
		}
	}
}

// TestJournalKey: whatever a result depends on changes the key; what is the same does not.
func TestJournalKey(t *testing.T) {
	dir := t.TempDir()
	j := openJournal(t, filepath.Join(dir, "runs.jsonl"))
	base := func() *Trial {
		return journalTrial(t, OfWorld(world.NewSigmoid(1, 50, world.SigmoidOptions{})), "dafa", "exp:5")
	}
	if one, other := j.key(base()), j.key(base()); one != other {
		t.Fatal("equal trials have different keys")
	}
	recorded := func(text string) *delay.Delays {
		file := filepath.Join(dir, "d.txt")
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		d, err := delay.Parse("recorded:"+file, delay.Options{Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	seen := map[string]string{}
	for name, change := range map[string]func(tr *Trial){
		"nothing":       func(*Trial) {},
		"label":         func(tr *Trial) { tr.Label = "x" },
		"seed":          func(tr *Trial) { tr.Seed = 2 },
		"order":         func(tr *Trial) { tr.Order = 1 },
		"model":         func(tr *Trial) { tr.Model.Window.Rounds = 21 },
		"files":         func(tr *Trial) { tr.Files["class.jsonl"] = append(tr.Files["class.jsonl"], '\n') },
		"delays":        func(tr *Trial) { tr.Delays = delay.Sequence(make([]int64, 50)).Delays() },
		"delays of a 0": func(tr *Trial) { tr.Delays = recorded("0\n") },
		"delays of a 1": func(tr *Trial) { tr.Delays = recorded("1\n") },
		"many delays":   func(tr *Trial) { tr.Delays = recorded(strings.Repeat("0\n", 700)) },
		"other delays":  func(tr *Trial) { tr.Delays = recorded("1\n" + strings.Repeat("0\n", 699)) },
		"contexts":      func(tr *Trial) { tr.Contexts = true },
		"length":        func(tr *Trial) { tr.Rounds = OfWorld(world.NewSigmoid(1, 51, world.SigmoidOptions{})) },
		"data":          func(tr *Trial) { tr.Rounds = OfWorld(world.NewSigmoid(2, 50, world.SigmoidOptions{})) },
		"rewards":       func(tr *Trial) { tr.Rounds = twistedWorld(t, "rewards:.9,.1") },
		"log":           func(tr *Trial) { tr.Rounds = worldLog(t, 1, 50) },
		"name": func(tr *Trial) {
			named := *tr.Rounds
			named.Name += "x"
			tr.Rounds = &named
		},
		"propensities": func(tr *Trial) {
			tr.Rounds = worldLog(t, 1, 50)
			tr.Rounds.Log.Props[49] /= 2
		},
		"other log": func(tr *Trial) { tr.Rounds = worldLog(t, 2, 50) },
	} {
		tr := base()
		change(tr)
		key := j.key(tr)
		if other, ok := seen[key]; ok {
			t.Errorf("%s and %s have the same key", name, other)
		}
		seen[key] = name
	}
	later, err := OpenJournal(filepath.Join(dir, "other.jsonl"), "v2")
	if err != nil {
		t.Fatal(err)
	}
	defer later.Close()
	if _, ok := seen[later.key(base())]; ok {
		t.Error("another build has the same key")
	}
}

func twistedWorld(t *testing.T, spec string) *Rounds {
	t.Helper()
	env, err := Twist(OfWorld(world.NewSigmoid(1, 50, world.SigmoidOptions{})), spec, 1)
	if err != nil {
		t.Fatal(err)
	}
	return env
}

// TestJournalDamaged: a result that is kept and is none is named with the file.
func TestJournalDamaged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.jsonl")
	j := openJournal(t, path)
	if err := errors.Join(j.Write("whole", 7), j.Write("other", "x")); err != nil {
		t.Fatal(err)
	}
	for _, j := range []*Journal{j, openJournal(t, path)} {
		if v, err := Kept[int](j, "whole"); err != nil || *v != 7 {
			t.Errorf("%v, %v", v, err)
		}
		if v, err := Kept[int](j, "other"); !errors.Is(err, ErrDamaged) || !strings.HasPrefix(err.Error(), path) {
			t.Errorf("%v, %v", v, err)
		}
		if v, err := Kept[int](j, "none"); err != nil || v != nil {
			t.Errorf("%v, %v", v, err)
		}
		if err := j.Write("bad", math.NaN()); err == nil {
			t.Error("what has no JSON is written")
		}
	}
	if _, err := OpenJournal(t.TempDir(), "v1"); err == nil {
		t.Error("a folder is a journal")
	}
}

// TestJournalRefuses: a file that is something else stays as it is.
func TestJournalRefuses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	for _, text := range []string{"a,b\n1,2\n", "{}\n", "important", `{"hindsight_run":2,"key":"","result":{}}` + "\n",
		`{"hindsight_run":1}` + "\nx\n"} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := OpenJournal(path, "v1")
		if err == nil || !strings.Contains(err.Error(), "name another file") {
			t.Errorf("%q: %v", text, err)
		}
		if now, _ := os.ReadFile(path); string(now) != text {
			t.Errorf("%q became %q", text, now)
		}
	}
}
