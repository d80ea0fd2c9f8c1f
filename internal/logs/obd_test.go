package logs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	obdText = `,timestamp,item_id,position,click,propensity_score,user_feature_0,user-item_affinity_0,` +
		`user-item_affinity_1,user-item_affinity_2
0,2019-11-24 00:00:01.5+00:00,2,3,0,0.25,cef3390ed2,0.0,1.0,0.0
1,2019-11-24 00:00:01.0+00:00,0,1,1,0.5,0000000a00,0.0,0.0,0.0
`
	itemText = `,item_id,item_feature_0,item_feature_1
0,1,-0.5,aa
1,0,0.25,bb
2,2,1,aa
`
)

func TestItemErrors(t *testing.T) {
	for text, want := range map[string]string{
		"item_id,item_feature_0\n0,1\n2,1\n": "i.csv:1: column item_id: there are 2 items, but the item 1 " +
			"is missing",
		"item_id,item_feature_0\n0,1\n0,1\n":         `i.csv:3: column item_id: the id "0" is that of line 2, too`,
		"item_id,item_feature_0\n0,1\nx,1\n":         `i.csv:3: column item_id: "x" is not an item`,
		"item_id\n0\n":                               `i.csv:1: no column begins with "item_feature_"`,
		"item_id,item_feature_0\n0,\"1\n":            "i.csv:2: not CSV",
		"item_id,item_feature_0,item_feature_0\n0,1": "i.csv:1: column item_feature_0: the feature is there twice",
	} {
		path := filepath.Join(t.TempDir(), "i.csv")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readItems(path); err == nil || !strings.HasPrefix(err.Error(), filepath.Dir(path)+"/"+want) {
			t.Errorf("%q:\ngot  %v\nwant %s…", text, err, want)
		}
	}
}

// TestFindOpenBandit looks for the files of a folder.
func TestFindOpenBandit(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	if _, _, err := findOpenBandit(dir); err == nil || !strings.Contains(err.Error(), "holds no CSV file") ||
		isOpenBanditLog(dir) {
		t.Errorf("an empty folder: %v", err)
	}
	write("item_context.csv", itemText)
	men := write("men.csv", obdText)
	for _, path := range []string{dir, men} {
		r, err := Open(path, Options{})
		if err != nil || len(r.Schema().Items) != 3 || !isOpenBanditLog(path) {
			t.Errorf("%s: %v", path, err)
		}
	}
	write("women.csv", obdText)
	if _, _, err := findOpenBandit(dir); err == nil || !strings.Contains(err.Error(), "holds men.csv, women.csv: name "+
		"one of them") {
		t.Errorf("two logs: %v", err)
	}
	if isOpenBanditLog(write("other.csv", "label,n_x\na,1\n")) || isOpenBanditLog(filepath.Join(dir, "none")) {
		t.Error("something else is taken for Open Bandit data")
	}
}
