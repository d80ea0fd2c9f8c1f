package judge

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hindsight/internal/logs"
	"hindsight/internal/loop"
	"hindsight/internal/model"
	"hindsight/internal/ope"
	"hindsight/internal/replay"
)

// TestPolicyJournalKeeps: what a log says of a policy is found again, with the flags that the log raises; nothing is
// without a journal, and nothing of a learner that does not say what it is made of.
func TestPolicyJournalKeeps(t *testing.T) {
	o := judged(t, targetLog(t))
	opt := o.Options()
	opt.Bootstrap = 0
	kept := func(spec string) *ope.Evaluation {
		t.Helper()
		e, err := o.Kept(spec, opt)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	if kept("uniform") != nil {
		t.Error("found without a journal")
	}
	o.KeepIn(openJournal(t, filepath.Join(t.TempDir(), "runs.jsonl")))
	for spec, found := range map[string]bool{"uniform": true, "learner:uniform": false} {
		if kept(spec) != nil {
			t.Errorf("%s: found before it was judged", spec)
		}
		made, err := o.Evaluate(spec, opt)
		if err != nil {
			t.Fatal(err)
		}
		if got := kept(spec); (got != nil) != found || found && asJSON(t, got) != asJSON(t, made) {
			t.Errorf("%s: %+v", spec, got)
		}
		if last := made.Flags[len(made.Flags)-1]; !strings.HasPrefix(last, "1 rows without an outcome are left out") {
			t.Errorf("%s: flags %q", spec, made.Flags)
		}
	}
	anonymous := o.learner
	o.learner = func(kind, spec string) (*Progressive, error) {
		p, err := anonymous(kind, spec)
		p.MadeOf("digest")
		return p, err
	}
	if _, err := o.Evaluate("learner:greedy", opt); err != nil || kept("learner:greedy") == nil {
		t.Errorf("a learner that says what it is made of is not found: %v", err)
	}
	if _, err := o.Kept("always:w", opt); err == nil {
		t.Error("a policy that there is not is looked for")
	}
	one, err := model.Parse("m.yaml", []byte("{name: m, version: 1, actions: [a, b]}"))
	if err != nil {
		t.Fatal(err)
	}
	if a, b := ModelDigest(one, nil), ModelDigest(one, map[string][]byte{"f": {1}}); len(a) != 64 || a == b {
		t.Errorf("models have the digests %s and %s", a, b)
	}
}

// TestPolicyJournalKey: whatever a judgement depends on changes its key; what is the same
// does not.
func TestPolicyJournalKey(t *testing.T) {
	dir := t.TempDir()
	j := openJournal(t, filepath.Join(dir, "runs.jsonl"))
	table := filepath.Join(dir, "table.csv")
	key := func(text, spec, probs string, change func(*ope.Options)) string {
		if err := os.WriteFile(table, []byte(probs), 0o600); err != nil {
			t.Fatal(err)
		}
		log := parseLog(t, text, logs.Mapping{Action: "a", Reward: "r", Propensity: "p", Features: []string{"x"}})
		o, err := NewOffPolicy(log, nil)
		if err != nil {
			t.Fatal(err)
		}
		o.KeepIn(j)
		made, err := o.target(spec)
		if err != nil {
			t.Fatal(err)
		}
		opt := o.Options()
		change(&opt)
		return o.key(spec, made, opt)
	}
	const log = "a,r,p,x\nu,1,0.5,1\nv,0,0.25,2\nu,,0.5,3\n"
	const half, other = "u,v\n.5,.5\n.5,.5\n.5,.5\n", "u,v\n.4,.6\n.5,.5\n.5,.5\n"
	same := func(*ope.Options) {}
	saved := "table:" + table
	if one, again := key(log, saved, half, same), key(log, saved, half, same); one != again {
		t.Fatal("equal judgements have different keys")
	}
	seen := map[string]string{}
	for name, k := range map[string]string{
		"nothing":     key(log, saved, half, same),
		"table":       key(log, saved, other, same),
		"policy":      key(log, "uniform", half, same),
		"mixed":       key(log, "eps:0.1,"+saved, half, same),
		"mixed table": key(log, "eps:0.1,"+saved, other, same),
		"lambda":      key(log, saved, half, func(o *ope.Options) { o.Lambda = 5 }),
		"folds":       key(log, saved, half, func(o *ope.Options) { o.Model.Folds = 2 }),
		"bootstrap":   key(log, saved, half, func(o *ope.Options) { o.Bootstrap = 7 }),
		"seed":        key(log, saved, half, func(o *ope.Options) { o.Seed = 9 }),
		"reward":      key(strings.Replace(log, "v,0,", "v,0.5,", 1), saved, half, same),
		"propensity":  key(strings.Replace(log, "0.25", "0.125", 1), saved, half, same),
		"context":     key(strings.Replace(log, ",2\n", ",4\n", 1), saved, half, same),
		"outcome":     key(strings.Replace(log, "u,,", "u,0,", 1), saved, half, same),
	} {
		if was, ok := seen[k]; ok {
			t.Errorf("%s and %s have the same key", name, was)
		}
		seen[k] = name
	}
	m := logs.Mapping{Action: "a", Reward: "r", Propensity: "p", Features: []string{"x"}}
	whole, tail := parseLog(t, log, m), replay.Tail(parseLog(t, strings.Replace(log, "x\n", "x\nu,1,0.5,1\n", 1), m), 1)
	if whole.Digest() != tail.Digest() || judged(t, whole).digest() == judged(t, tail).digest() {
		t.Error("rows of other places, by which tables go, have the same digest")
	}
}

// TestFrozen: a learner that was trained elsewhere is judged by what it does, and learns nothing.
func TestFrozen(t *testing.T) {
	log := targetLog(t)
	o := judged(t, log)
	for _, kind := range []string{"greedy", "uniform"} {
		l, err := model.ParseLearner(kind)
		if err != nil {
			t.Fatal(err)
		}
		m, files := replay.ModelFor(log, "m", l, loop.Window{Rounds: 200})
		built, err := m.Build(files)
		if err != nil {
			t.Fatal(err)
		}
		o.learner = func(string, string) (*Progressive, error) {
			return NewFrozen(loop.Epoch{Number: 1, Rules: m.Rules(), Learner: built}, "m", nil, log), nil
		}
		e, err := o.Evaluate("snapshot", o.Options())
		if err != nil || built.Learned() != 0 {
			t.Fatalf("%s: %v, %d rounds learned", kind, err, built.Learned())
		}
		if same, err := o.Evaluate("uniform", o.Options()); err != nil || kind == "uniform" &&
			math.Abs(float64(e.Estimates.Get("dr").Value-same.Estimates.Get("dr").Value)) > 1e-12 {
			t.Errorf("%v: %v, %v", err, e.Estimates.Get("dr"), same.Estimates.Get("dr"))
		}
	}
	// A model whose contexts list no actions plays its own, which the log must know; one that does not list those of
	// the contexts decides nothing.
	for file, want := range map[string]string{"{name: m, version: 1, actions: [x, y, z, q]}": `model plays "q"`,
		"{name: m, version: 1, actions: [x, q]}": "actions"} {
		m, err := model.Parse("m", []byte(file))
		if err != nil {
			t.Fatal(err)
		}
		built, err := m.Build(nil)
		if err != nil {
			t.Fatal(err)
		}
		o.learner = func(kind, _ string) (*Progressive, error) {
			ep := loop.Epoch{Number: 1, Rules: m.Rules(), Learner: built}
			if kind == "snapshot" {
				return NewFrozen(ep, "m", nil, log), nil
			}
			return NewProgressive(ep, "m", nil, log), nil
		}
		spec := "model:m"
		if want == "actions" {
			spec = "snapshot"
		}
		if e, err := o.Evaluate(spec, o.Options()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is judged: %v, %+v", file, err, e)
		}
	}
}
