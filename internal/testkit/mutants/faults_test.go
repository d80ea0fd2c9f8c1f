package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"
)

// TestFaultsApply: the faults that are written by hand can be planted, and those that do nothing are made by the rules:
// code that changes takes them along.
func TestFaultsApply(t *testing.T) {
	t.Chdir("../../..")
	byHand, err := readPlanted("internal/testkit/mutants/planted.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range byHand {
		if f.to == 0 {
			t.Errorf("%s: %s: its text is not there, or twice", f.file, f.name)
		}
	}
	if _, err := readEquivalent(equivalent); err != nil {
		t.Error(err)
	}
}

// TestEquivalentIsOnePlace: an entry means one of several faults that look the same, in its file and function alone;
// one that means none is told.
func TestEquivalentIsOnePlace(t *testing.T) {
	t.Chdir(t.TempDir())
	source := "package p\n\nfunc a() int { return 1 }\n\nfunc (*p) b() {\n\tc(\n\t\t1,\n\t\t1, 1)\n}\n\n" +
		"type p int\n\nfunc i() float64 { return math.Inf(1) }\n"
	for _, dir := range []string{"x", "y"} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(dir+"/f.go", []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all, err := faults("./x", nil)
	if err != nil || len(all) != 5 {
		t.Fatal(all, err)
	}
	names := map[string]bool{}
	for _, f := range all {
		names[f.entry()] = true
		same, err := readEquivalent("# why\n" + f.entry() + "\n")
		if err != nil {
			t.Error(err)
		}
		for dir, want := range map[string]int{"./x": 4, "y": 5} {
			if left, err := faults(dir, same); err != nil || len(left) != want {
				t.Errorf("%s: %d are left of %s: %v", f.entry(), len(left), dir, err)
			}
		}
	}
	if len(names) != len(all) || !names["x/f.go p.b: 1 becomes (1 + 1) in 1, 1) (2)"] {
		t.Errorf("%v", names)
	}
	for _, wrong := range []string{"x/f.go a: 1 becomes 2", "x/f.go a: 1 becomes (1 + 1)", "f.go a: x",
		all[1].entry() + "\n" + all[1].entry(), "x/f.go p.b: 1 becomes (1 + 1) in 1, 1) (3)"} {
		if _, err := readEquivalent(wrong); err == nil {
			t.Error(wrong)
		}
	}
}

// TestNotPlanted: a fault that is written by hand and does not compile, or apply, is alive and told as such; one made
// by rule is not counted.
func TestNotPlanted(t *testing.T) {
	t.Chdir("../../..")
	const file = "internal/testkit/daily/turn.go"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	r := &runner{dir: t.TempDir(), limit: time.Minute, out: &out}
	byHand := fault{file: file, to: len(text), with: "package daily\n\nfunc f() { nothing() }\n", name: "broken",
		tests: "./internal/testkit/daily", run: "none"}
	byRule, elsewhere := byHand, byHand
	byRule.name, elsewhere.to = "", 0
	for _, f := range []*fault{&byHand, &byRule, &elsewhere} {
		if err := r.plant(f); err != nil {
			t.Fatal(err)
		}
	}
	got := out.String()
	if r.planted != 2 || r.alive != 2 || !strings.Contains(got, "ALIVE (does not compile) "+file+": broken (none)") ||
		!strings.Contains(got, "ALIVE (does not apply") {
		t.Errorf("%d planted, %d alive: %s", r.planted, r.alive, got)
	}
}
