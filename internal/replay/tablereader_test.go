package replay

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"hindsight/internal/logs"
	"hindsight/pkg/codec"
)

func tables(t testing.TB, text string) *logs.Tables {
	t.Helper()
	in, err := logs.OpenTables(logs.Stdin, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// readTable reads all events of a table.
func readTable(t testing.TB, r *TableReader) []logs.Record {
	t.Helper()
	defer r.Close()
	var out []logs.Record
	var rec logs.Record
	for {
		err := r.Next(&rec)
		if errors.Is(err, io.EOF) {
			if a := r.Account(); !a.Balanced() {
				t.Fatalf("unbalanced %+v", a)
			}
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, rec.Clone())
	}
}

// TestTableRecords: rows of a bandit log in CSV as events, one by one.
func TestTableRecords(t *testing.T) {
	const text = "id,at,back,who,paid,p,x,y\nq,2020-01-01T00:00:00Z,2020-01-01T00:00:05Z,b,7,0.5,1,2\nr,2020-01-01T00:00:01Z,,a,,0.25,u,\nq,2020-01-01T00:00:01Z,,a,,0.25,u,\nbroken\n"
	m := Mapping{ID: "id", Time: "at", OutcomeTime: "back", Action: "who", Reward: "paid", Propensity: "p", Features: []string{"x", "y:text"}}
	r, err := NewTableReader(tables(t, text), nil, LogOptions{Mapping: m, Ledger: logs.NewLedger("", nil, false)}, 10)
	if err != nil {
		t.Fatal(err)
	}
	all := readTable(t, r)
	if a := r.Account(); a.Read != 4 || a.Events != 2 || a.Duplicates != 1 || a.Malformed != 1 || a.Bytes != int64(len(text)) || len(all) != 2 {
		t.Fatalf("%+v", a)
	}
	q, second := all[0], all[1]
	at, _ := logs.ParseTime("2020-01-01T00:00:00Z")
	if q.ID != "q" || q.Line != 2 || q.Time != at || q.OutcomeTime != at+5e9 || q.Action != "b" || q.Value != 7 || q.Outcome != codec.Reward || q.Propensity != .5 || q.Actions != nil {
		t.Errorf("%+v", q)
	}
	want := []codec.Feature{{Name: "x", Kind: codec.Number, Value: 1}, {Name: "y", Kind: codec.Text, Text: "2"}}
	if !slices.Equal(q.Features, want) || second.Observed() || second.OutcomeTime != logs.NoTime || !slices.Equal(second.Features, []codec.Feature{{Name: "x", Kind: codec.Text, Text: "u"}}) {
		t.Errorf("%+v %+v", q.Features, second)
	}
}

// TestOpenBanditRecords: every row has all items, with their features.
func TestOpenBanditRecords(t *testing.T) {
	const text = ",timestamp,item_id,position,click,propensity_score,user_feature_0\n0,2019-11-24 00:00:01+00:00,1,3,1,0.5,ab\n1,2019-11-24 00:00:00+00:00,0,1,0,0.25,cd\n"
	items, err := ReadItems("items", strings.NewReader(",item_id,item_feature_0\n0,0,-0.5\n1,1,0.25\n"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := NewTableReader(tables(t, text), items, LogOptions{Ledger: logs.NewLedger("", nil, false)}, 10)
	if err != nil {
		t.Fatal(err)
	}
	all := readTable(t, r)
	if len(all) != 2 || all[0].Chosen != 1 || all[0].Action != "1" || all[0].Value != 1 || all[0].Actions[1].Features[0].Value != .25 || all[1].Chosen != 0 || len(all[1].Actions) != 2 || all[0].Features[0] != (codec.Feature{Name: "position", Kind: codec.Text, Text: "3"}) {
		t.Errorf("%+v", all)
	}
}

// Whatever the bytes are: rows with their classes, or an error, alike for a log that is
// kept and for one that streams.
func FuzzTable(f *testing.F) {
	f.Add("a,r,p,x\n1,0.5,0.5,2\n1,,1,u\n", true)
	f.Add("a,r,p,x\n\"1\n2\",0.5,0.5,2\n1,x\n\"", true)
	f.Add(",timestamp,item_id,position,click,propensity_score\n0,2019-11-24 00:00:01+00:00,1,3,1,0.5\n1,,0\n", false)
	f.Add("\ufeffa,r,p,x\r\n1,0.5,0,2\r\n", true)
	f.Fuzz(func(t *testing.T, text string, named bool) {
		o := LogOptions{Ledger: logs.NewLedger("", nil, false)}
		if named {
			o.Mapping = Mapping{Action: "a", Reward: "r", Propensity: "p", FeaturePrefix: "x", ID: "a"}
		}
		streamed, err := NewTableReader(tables(t, text), nil, o, 2)
		if err == nil {
			var rec logs.Record
			for err == nil {
				err = streamed.Next(&rec)
			}
			_ = streamed.Close()
			if a := streamed.Account(); !a.Balanced() {
				t.Fatalf("unbalanced %+v", a)
			}
		}
		o.Ledger = logs.NewLedger("", nil, false)
		var b *BanditLog
		if named {
			b, err = LogOfTables(tables(t, text), o)
		} else {
			b, err = OpenBanditOfTables(tables(t, text), nil, o)
		}
		if err == nil && (b.Len() == 0 || !b.intake.Balanced() || b.intake.Rows != int64(b.Len())) {
			t.Fatalf("%d rows, %+v", b.Len(), b.intake)
		}
		if m, err := MulticlassOfTables(tables(t, text), logs.NewLedger("", nil, false)); err == nil && (m.Len() == 0 || !m.intake.Balanced()) {
			t.Fatalf("%+v", m.intake)
		}
	})
}
