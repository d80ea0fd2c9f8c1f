package logs

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hindsight/internal/scan"
	"hindsight/pkg/codec"
)

// TestTableRecords: rows of a bandit log in CSV as events, one by one.
func TestTableRecords(t *testing.T) {
	const text = "id,at,back,who,paid,p,x,y\nq,2020-01-01T00:00:00Z,2020-01-01T00:00:05Z,b,7,0.5,1,2\nr,2020-01-01T00:00:01Z,,a,,0.25,u,\nq,2020-01-01T00:00:01Z,,a,,0.25,u,\nbroken\n"
	m := Mapping{ID: "id", Time: "at", OutcomeTime: "back", Action: "who", Reward: "paid", Propensity: "p",
		Features: []string{"x", "y:text"}}
	r, err := Open(Stdin, Options{Stdin: strings.NewReader(text), Mapping: m, Dedup: 10})
	if err != nil {
		t.Fatal(err)
	}
	all, err := readAll(t, r)
	if err != nil {
		t.Fatal(err)
	}
	if a := r.Account(); a.Read != 4 || a.Events != 2 || a.Duplicates != 1 || a.Malformed != 1 ||
		a.Bytes != int64(len(text)) || len(all) != 2 {
		t.Fatalf("%+v", a)
	}
	q, second := all[0], all[1]
	at, _ := scan.ParseTime("2020-01-01T00:00:00Z")
	if q.ID != "q" || q.Line != 2 || q.Time != at || q.OutcomeTime != at+5e9 || q.Action != "b" || q.Value != 7 ||
		q.Outcome != codec.Reward || q.Propensity != .5 || q.Actions != nil {
		t.Errorf("%+v", q)
	}
	want := []codec.Feature{{Name: "x", Kind: codec.Number, Value: 1}, {Name: "y", Kind: codec.Text, Text: "2"}}
	if !slices.Equal(q.Features, want) || second.observed() || second.OutcomeTime != scan.NoTime ||
		!slices.Equal(second.Features, []codec.Feature{{Name: "x", Kind: codec.Text, Text: "u"}}) {
		t.Errorf("%+v %+v", q.Features, second)
	}
}

// TestOtherHeader: a second file must have the header of the first.
func TestOtherHeader(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"1.csv": "label,n_x\na,1\n", "2.csv": "label,n_y\nb,1\n",
		"3.csv": "", "4.csv": "\"label", "5.csv": "label,n_x\nc,2\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r, err := Open(dir, Options{Labelled: true})
	if err != nil {
		t.Fatal(err)
	}
	all, err := readAll(t, r)
	if got := fmt.Sprint(err, r.Account().Errors()); !strings.Contains(got, "2.csv:1: the header differs from") ||
		!strings.Contains(got, "4.csv:1: not CSV") || len(all) != 3 || all[2].Action != "c" {
		t.Error(got, all)
	}
	for format, want := range map[string]string{Labelled: "for example: label,", OpenBandit: "names the columns"} {
		_, err := Open(Stdin, Options{Format: format, Stdin: strings.NewReader("")})
		if err == nil || !strings.Contains(err.Error(), "standard input:1: the file is empty") ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("an empty file of %s: %v", format, err)
		}
	}
}

// TestOpenBanditRecords: every row has all items, with their features.
func TestOpenBanditRecords(t *testing.T) {
	const text = ",timestamp,item_id,position,click,propensity_score,user_feature_0\n0,2019-11-24 " +
		"00:00:01+00:00,1,3,1,0.5,ab\n1,2019-11-24 00:00:00+00:00,0,1,0,0.25,cd\n"
	dir := t.TempDir()
	for name, text := range map[string]string{"men.csv": text,
		"item_context.csv": ",item_id,item_feature_0\n0,0,-0.5\n1,1,0.25\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	all, err := readAll(t, r)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 2 || all[0].Chosen != 1 || all[0].Action != "1" || all[0].Value != 1 ||
		all[0].Actions[1].Features[0].Value != .25 || all[1].Chosen != 0 || len(all[1].Actions) != 2 ||
		all[0].Features[0] != (codec.Feature{Name: "position", Kind: codec.Text, Text: "3"}) {
		t.Errorf("%+v", all)
	}
}

// Whatever the bytes are: rows with their classes, or an error, alike for columns that were
// surveyed and for cells of any type.
func FuzzTable(f *testing.F) {
	f.Add("a,r,p,x\n1,0.5,0.5,2\n1,,1,u\n", Bandit)
	f.Add("a,r,p,x\n\"1\n2\",0.5,0.5,2\n1,x\n\"", Bandit)
	f.Add(",timestamp,item_id,position,click,propensity_score\n0,2019-11-24 00:00:01+00:00,1,3,1,0.5\n1,,0\n",
		OpenBandit)
	f.Add("\ufeffa,r,p,x\r\n1,0.5,0,2\r\n", Bandit)
	f.Add("label,n_a,c_b\nx,1,u\ny,-0.5,\nx,word,v\n", Labelled)
	f.Fuzz(func(t *testing.T, text, format string) {
		o := Options{Format: format, Dedup: 2}
		if format == Bandit {
			o.Mapping = Mapping{Action: "a", Reward: "r", Propensity: "p", FeaturePrefix: "x", ID: "a"}
		}
		var events [2]int64
		for i := range events {
			o.Stdin, o.Typed = strings.NewReader(text), i == 1
			r, err := Open(Stdin, o)
			var rec Record
			for err == nil {
				err = r.Next(&rec)
			}
			if r == nil {
				continue
			}
			if a := r.Account(); !balanced(a) {
				t.Fatalf("unbalanced %+v", a)
			}
			events[i] = r.Account().Events
			_ = r.Close()
		}
		if events[0] != events[1] {
			t.Fatalf("%d events, and of surveyed columns %d", events[0], events[1])
		}
	})
}

// balanced reports whether every record has its class.
func balanced(a *Account) bool {
	skipped := int64(0)
	for _, n := range a.Reasons {
		skipped += n
	}
	return a.Read == a.Events+a.Duplicates+a.Dangling+a.Skipped+a.Malformed && skipped == a.Skipped
}
