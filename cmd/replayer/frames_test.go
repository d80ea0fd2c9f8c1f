package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// frames reads what the page says, and prints what it holds.
const frames = `
assert len(events) == 60 and events.action[0] in ("red", "blue"), events
first = {f["name"]: f for f in events.features[0]}
assert first["hour"]["number"] == 0 and first["plan"]["text"] in ("free", "pro"), first
assert events.value.notna().sum() == 55 and events.time.dt.year[0] == 2023, events
assert runs.learner[0] == "dafa" and runs["delays.raw.mean"][0] >= 0, runs
import glob
for name in glob.glob("out/*.csv"):
    pandas.read_csv(name)
print("frames are whole")
`

// TestDataFrames: the lines of the page open what convert and --csv write.
func TestDataFrames(t *testing.T) {
	python := os.Getenv("HINDSIGHT_PYTHON")
	if python == "" {
		python = "python3"
	}
	if out, err := exec.Command(python, "-c", "import pandas, pyarrow").CombinedOutput(); err != nil {
		t.Skipf("%s has no pandas with pyarrow (HINDSIGHT_PYTHON names another): %v %s", python, err, out)
	}
	page, err := os.ReadFile("../../docs/data-frames.md")
	if err != nil {
		t.Fatal(err)
	}
	_, code, ok := strings.Cut(string(page), "```python\n")
	code, _, _ = strings.Cut(code, "```")
	if !ok || strings.Count(code, "\n") != 3 {
		t.Fatalf("the page has other lines: %s", code)
	}
	dir, shop := t.TempDir(), writeShop(t, 60)
	convert := []string{"convert", shop, "--to", "parquet", "--out", filepath.Join(dir, "log.parquet")}
	for i, a := range shopArgs(shop) {
		if a == "--window" {
			break
		} else if i > 2 {
			convert = append(convert, a)
		}
	}
	for _, args := range [][]string{convert, shopArgs(shop, "--csv", filepath.Join(dir, "out"), "--sweep", "none")} {
		if got := execute(t.Context(), args...); got.code != 0 {
			t.Fatalf("%v: %s", args, got.stderr)
		}
	}
	cmd := exec.Command(python, "-c", code+frames)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "frames are whole") {
		t.Errorf("%v\n%s", err, out)
	}
}
