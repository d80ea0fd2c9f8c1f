package replay

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"hindsight/internal/dataset"
	"hindsight/internal/logs"
	"hindsight/internal/scan"
	"hindsight/pkg/codec"
)

// repeated is a log whose events a and b come again, as they were and otherwise, before
// events that follow and before their outcomes.
func repeated() []logs.Record {
	event := func(id, action string, reward float64) logs.Record {
		r := logs.Record{Kind: logs.Event, ID: id, Time: scan.NoTime, OutcomeTime: scan.NoTime, Weight: 1,
			Features: []codec.Feature{{Name: "of." + id, Kind: codec.Number, Value: 1}},
			Actions:  []codec.Action{{Name: "x"}, {Name: "y"}}, Action: action, Propensity: .5}
		if action == "y" {
			r.Chosen = 1
		}
		if !math.IsNaN(reward) {
			r.Outcome, r.Value = codec.Reward, reward
		}
		return r
	}
	outcome := func(id string, reward float64) logs.Record {
		return logs.Record{Kind: logs.Outcome, ID: id, OutcomeTime: scan.NoTime, Outcome: codec.Reward, Value: reward}
	}
	none := math.NaN()
	return []logs.Record{
		event("a", "x", none), event("a", "x", none), event("b", "y", none), event("a", "y", .875),
		outcome("a", .25), // belongs to the first event; once it was that behind the repeats
		event("c", "y", none), event("d", "x", .5), outcome("c", .75), event("b", "x", none),
		outcome("b", .125), // its repeat is the last event of the log; once this was a panic
		outcome("b", .375), event("d", "y", none), outcome("d", 1),
	}
}

// written returns records in a format.
func written(t testing.TB, format string, records []logs.Record) string {
	t.Helper()
	var text strings.Builder
	w, err := logs.NewWriter(&text, format)
	if err != nil {
		t.Fatal(err)
	}
	for i := range records {
		if err := w.Write(&records[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// TestRepeatedEvents: of events with the same id the first counts, and every outcome of that
// id belongs to it, in each format that has outcomes apart from events.
func TestRepeatedEvents(t *testing.T) {
	for _, format := range logs.WriteFormats() {
		t.Run(format, func(t *testing.T) {
			b := readEvents(t, written(t, format, repeated()), dataset.Options{}, logs.Options{Format: format})
			var got []string
			for i := range b.Len() {
				got = append(got, fmt.Sprint(b.table.ID(i), " ", b.Actions[b.table.Action[i]], " ", b.table.Value[i]))
			}
			if got, want := strings.Join(got, ", "), "a x 0.25, b y 0.125, c y 0.75, d x 0.5"; got != want {
				t.Errorf("rows %s, want %s", got, want)
			}
			if in := b.Intake; in.Events != 4 || in.Duplicates != 4 || in.Dangling != 5 || in.Joined != 3 ||
				in.Extra != 2 {
				t.Errorf("%+v", in)
			}
		})
	}
}

// TestRepeatedRows: of rows of a table with the same id the first counts; lines of Vowpal
// Wabbit's text have no id, so that none is a repeat.
func TestRepeatedRows(t *testing.T) {
	b, err := readLog("log.csv", strings.NewReader("id,who,paid\na,x,0.25\nb,y,0.5\na,x,0.25\na,y,1\nc,y,0.75\n"),
		logOptions{Options: logs.Options{Mapping: logs.Mapping{ID: "id", Action: "who", Reward: "paid"}},
			Account: true})
	if err != nil {
		t.Fatal(err)
	}
	if b.Len() != 3 || fmt.Sprint(b.table.Value) != "[0.25 0.5 0.75]" || b.Intake.Duplicates != 2 {
		t.Errorf("%v, %+v", b.table.Value, b.Intake)
	}
	for format, text := range map[string]string{
		logs.CB:    "1:1:0.5 'a | x\n1:1:0.5 'a | x\n",
		logs.CBADF: "shared 'a | s\n0:1:0.5 | x\n | y\n\nshared 'a | s\n0:1:0.5 | x\n | y\n",
	} {
		if b := readEvents(t, text, dataset.Options{}, logs.Options{Format: format}); b.Len() != 2 ||
			b.Intake.Duplicates != 0 {
			t.Errorf("%s: %+v", format, b.Intake)
		}
	}
}

// TestUnactivatedEventHasNoNumber: an event that the reader does not hand on is none that an
// outcome can be given to.
func TestUnactivatedEventHasNoNumber(t *testing.T) {
	const text = `{"id":"a","action":"x","propensity":1,"inactive":true}` + "\n" +
		`{"id":"b","action":"x","propensity":1}`
	r, err := logs.Open(logs.Stdin, logs.Options{Stdin: strings.NewReader(text)})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var rec logs.Record
	if err := r.Next(&rec); err != nil || rec.ID != "b" {
		t.Fatalf("%v, %+v", err, rec)
	}
	if n, ok := r.EventOf("a"); ok {
		t.Errorf("the event that was not handed on is number %d", n)
	}
	if n, ok := r.EventOf("b"); n != 0 || !ok {
		t.Errorf("b is number %d, %v", n, ok)
	}
}
