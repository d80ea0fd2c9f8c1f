package replay

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"hindsight/internal/logs"
	"hindsight/internal/scan"
	"hindsight/pkg/codec"
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

func readOBD(t testing.TB, text string) *Rounds {
	t.Helper()
	b, err := readOpenBandit(t, text, "")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// readOpenBandit reads impressions, beside which a file of items lies if there is a text of it.
func readOpenBandit(t testing.TB, text, items string) (*Rounds, error) {
	if items == "" {
		return readLog("men.csv", strings.NewReader(text), logOptions{Options: logs.Options{Format: logs.OpenBandit}})
	}
	path := filepath.Join(t.TempDir(), "men.csv")
	for name, text := range map[string]string{path: text, filepath.Join(filepath.Dir(path),
		"item_context.csv"): items} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return openLog(path, logs.Options{Format: logs.OpenBandit})
}

func TestOpenBandit(t *testing.T) {
	b, err := readOpenBandit(t, obdText, itemText)
	if err != nil {
		t.Fatal(err)
	}
	v := b
	if got := b.Actions; !reflect.DeepEqual(got, []string{"0", "1", "2"}) || b.Len() != 2 || !b.Timed() ||
		!b.HasPropensities() || b.RecordsDelays() {
		t.Fatalf("actions %v, %d rows", got, b.Len())
	}
	if v.table.Action[0] != 2 || v.table.Action[1] != 0 || v.table.Props[0] != .25 || v.table.Props[1] != .5 ||
		b.Loss(0, 2) != 1 || b.Loss(1, 0) != 0 {
		t.Errorf("actions %d %d, propensities %v %v", v.table.Action[0], v.table.Action[1], v.table.Props[0],
			v.table.Props[1])
	}
	if v.Time(0) != v.Time(1) {
		t.Errorf("a time that goes back: %d after %d", v.Time(1), v.Time(0))
	}
	var c codec.Context
	b.Context(&c, 0)
	want := []codec.Feature{{Name: "position", Kind: codec.Text, Text: "3"},
		{Name: "user_feature_0", Kind: codec.Text, Text: "cef3390ed2"},
		{Name: "user-item_affinity_0", Kind: codec.Number}, {Name: "user-item_affinity_1", Kind: codec.Number,
			Value: 1},
		{Name: "user-item_affinity_2", Kind: codec.Number}}
	if !reflect.DeepEqual(c.Features, want) {
		t.Errorf("features %v, want %v", c.Features, want)
	}
	if got := c.Actions[1].Features; !reflect.DeepEqual(got,
		[]codec.Feature{{Name: "item_feature_0", Kind: codec.Number, Value: -.5},
			{Name: "item_feature_1", Kind: codec.Text, Text: "aa"}}) {
		t.Errorf("features of item 1: %v", got)
	}
	if got := readOBD(t, "item_id,click,action_prob\n10,0,1\n9,1,1\n").Actions; len(got) != 11 || got[10] != "10" {
		t.Errorf("items without a list: %v", got)
	}
}

func TestOpenBanditErrors(t *testing.T) {
	const header = "item_id,click,propensity_score,timestamp,user_feature_0\n"
	for text, want := range map[string]string{
		"": "men.csv:1: the file is empty",
		"item_id,click\n": "men.csv:1: not Open Bandit data: the columns item_id, click and propensity_score or " +
			"action_prob must be there; there are item_id, click", header: "men.csv:2: there are no rows",
		header + "0,1,.5\n": "men.csv:2: 3 cells, but the header has 5 columns",
		header + "0,1,.5,2020-01-01 00:00:00,a\n-1,1,.5,2020-01-01 " +
			"00:00:00,a\n": `men.csv:3: column item_id: "-1" is not an item: expected a whole number from 0 to`,
		header + "01,1,.5,2020-01-01 00:00:00,a\n":  `men.csv:2: column item_id: "01" is not an item`,
		header + "1.0,1,.5,2020-01-01 00:00:00,a\n": `men.csv:2: column item_id: "1.0" is not an item`,
		header + "0,1,0,2020-01-01 00:00:00,a\n": "men.csv:2: column propensity_score: the action " +
			"was played with propensity 0: that cannot be",
		header + "0,1,,2020-01-01 00:00:00,a\n": "men.csv:2: column propensity_score: the " +
			"propensity of the action is missing",
		header + "0,1,1.5,2020-01-01 00:00:00,a\n": "men.csv:2: column propensity_score: the " +
			"propensity 1.5 is not in (0, 1]",
		header + "0,1,nan,2020-01-01 00:00:00,a\n": "men.csv:2: column propensity_score: the " +
			"propensity NaN is not in (0, 1]",
		header + "0,1,x,2020-01-01 " +
			"00:00:00,a\n": `men.csv:2: column propensity_score: "x" is not a number`,
		header + "0,2,.5,2020-01-01 00:00:00,a\n": "men.csv:2: column click: 2 is not in [0, 1]",
		header + "0,1,.5,noon,a\n": `men.csv:2: column timestamp: "noon": expected ` +
			`a time`,
		"item_id,click,propensity_score,user-item_affinity_0\n1,0,1,0\n": `men.csv:2: column item_id: "1" is not an item: ` +
			`there are 1, numbered 0 to 0`,
	} {
		_, err := readOpenBandit(t, text, "")
		var at *scan.LineError
		if err == nil || !strings.HasPrefix(err.Error(), want) || !errors.As(err, &at) {
			t.Errorf("%q:\ngot  %v\nwant %s…", text, err, want)
		}
	}
}

func FuzzReadOpenBandit(f *testing.F) {
	f.Add(obdText, itemText)
	f.Add("item_id,click,action_prob\n3,,1e-300\n", "item_id,item_feature_0\n0,\n")
	f.Fuzz(func(t *testing.T, text, itemsText string) {
		b, err := readOpenBandit(t, text, itemsText)
		checkPlace(t, err)
		if err != nil {
			return
		}
		var c codec.Context
		v := b
		for i := range b.Len() {
			b.Context(&c, i)
			c.ID = "r"
			if err := c.Validate(); err != nil && len(c.Actions) <= codec.MaxActions {
				t.Fatalf("%q row %d: %v", text, i, err)
			}
			if p := v.table.Props[i]; !(p > 0 && p <= 1) || int(v.table.Action[i]) >= len(b.Actions) {
				t.Fatalf("%q row %d: action %d, propensity %v", text, i, v.table.Action[i], p)
			}
			if l := b.Loss(i, int(v.table.Action[i])); !math.IsNaN(l) && !(l >= 0 && l <= 1) {
				t.Fatalf("%q row %d: loss %v", text, i, l)
			}
		}
	})
}

// checkPlace reports an error without a place, but of what is no text.
func checkPlace(t *testing.T, err error) {
	t.Helper()
	var at *scan.LineError
	if err != nil && !strings.Contains(err.Error(), ": this is ") && (!errors.As(err, &at) || at.Line < 1) {
		t.Fatalf("no place in %v", err)
	}
}
