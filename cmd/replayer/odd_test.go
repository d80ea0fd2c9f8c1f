package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hindsight/internal/report"
)

// What cannot be replayed says where and why, and what to do.
func TestOddData(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"pretty.json", "{\"id\":\"a\",\n\"action\":\"red\"}\n", "jq -c . FILE"},
		{"cut.json", `{"_label_cost":-1.0,`, "cut.json:1:21: expected a text"},
		{"named.csv", "at,item\n1,red\n", "name its columns by --action-column, --reward-column or --loss-column, " +
			"--features and others: there are at, item"},
		{"semicolons.csv", "label;n_x\na;0,5\n", "0,5"},
		{"wide.csv", "\xff\xfel\x00", "iconv -f UTF-16"},
	} {
		path := filepath.Join(t.TempDir(), c.name)
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := execute(t.Context(), "backtest", "--data", path); got.code != 1 || !strings.Contains(got.stderr,
			c.want) || !strings.Contains(got.stderr, c.name) {
			t.Errorf("%s: exit code %d: %s", c.name, got.code, got.stderr)
		}
	}
}

// The files of a folder are checked as they are read: below it, hidden ones left out.
func TestInputsOfFolder(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a.json", ".hidden", "sub/b.json"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := report.ReadInput("data", dir)
	if err != nil || len(got) != 2 || got[0].Name != "a.json" || got[1].Name != "sub/b.json" {
		t.Errorf("%+v, %v", got, err)
	}
}
