package logs

import (
	"bufio"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hindsight/internal/scan"
	"hindsight/pkg/codec"
)

func newTextInput(text string) *bufio.Reader {
	return bufio.NewReaderSize(strings.NewReader(text), 256)
}

// fuzzFormat reads whatever bytes come as a format: nothing may crash, every record has
// its class, and what is handed on keeps the rules of events.
func fuzzFormat(f *testing.F, format string, seeds ...string) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := Open(Stdin, Options{Format: format, Stdin: strings.NewReader(string(b)), Inactive: true})
		if err != nil {
			return
		}
		all, err := readAll(t, r)
		var bad *scan.LineError
		if errors.As(err, &bad) {
			t.Fatalf("a malformed record ended it: %v", err)
		}
		for i := range all {
			checkRecord(t, &all[i])
		}
	})
}

func checkRecord(t *testing.T, r *Record) {
	t.Helper()
	c := codec.Context{ID: r.ID, Features: r.Features, Actions: r.Actions}
	if err := c.Validate(); err != nil {
		t.Fatalf("%v: %+v", err, r)
	}
	if r.Kind == Outcome {
		if r.ID == "" {
			t.Fatalf("an outcome of nothing: %+v", r)
		}
		return
	}
	switch {
	case r.Actions == nil && r.Chosen != -1, r.Actions != nil && (r.Chosen < 0 || r.Actions[r.Chosen].Name != r.Action):
		t.Fatalf("action: %+v", r)
	case !(r.Propensity >= 0 && r.Propensity <= 1), !(r.Weight >= 1), r.Propensities != nil &&
		len(r.Propensities) != len(r.Actions):
		t.Fatalf("law: %+v", r)
	case r.Value != r.Value, r.Action == "":
		t.Fatalf("%+v", r)
	}
}

func FuzzDsjson(f *testing.F) {
	files, _ := filepath.Glob(filepath.Join(samples, "*"))
	for _, name := range files {
		if b, err := os.ReadFile(name); err == nil {
			for line := range strings.Lines(string(b)) {
				f.Add([]byte(line))
			}
		}
	}
	const twice = `{"EventId":"a","_label_cost":0,"a":[1],"p":[1],"c":{"_multi":[{}]}}` + "\n"
	fuzzFormat(f, Dsjson, twice+twice+`{"EventId":"a","RewardValue":0.5}`+"\n", "\ufeff{}",
		"{\"c\":{\"_multi\":[]},\"a\":[1]}", `{"_outcomes":[],"c":{"_slots":[]}}`,
		`{"c":{"_text":"a b"},"a":[1],"p":[1],"_label_cost":1}`)
}

func FuzzCB(f *testing.F) {
	fuzzFormat(f, CB, "1:1:0.5 | tuesday year:2 million\n2:0:0.5 't |a:2 x y:3 |b z\n| test", "1:1:0.5")
}

func FuzzCBADF(f *testing.F) {
	fuzzFormat(f, CBADF, "shared | s_1 s_2\n0:1.0:0.5 | a_1 b_1 c_1\n | a_2\n\n\n | b_1\n0:0.0:0.5 | b_2 c_2\n")
}

func FuzzJSONL(f *testing.F) {
	fuzzFormat(f, JSONL,
		`{"id":"a","features":{"x":1},"actions":["p",{"name":"q","features":{"y":true}}],"action":"q",`+
			`"propensities":{"p":0.25,"q":0.75},"reward":1,"weight":2,"baseline":["q"]}`,
		`{"id":"a","action":"p","propensity":1}`+"\n"+`{"id":"a","action":"q","propensity":1,"reward":1}`+"\n"+
			`{"id":"a","reward":0}`+"\n"+`{"id":"b","action":"p","propensity":1}`,
		"{\"id\":\"a\",\"features\":[1,2],\"actions\":[\"p\"]}\n{\"id\":\"a\",\"action\":\"p\",\"propensity\":1}\n{\"id\":\"a\",\"loss\":1}",
		`{"specversion":"1.0","type":"x","source":"/s","id":"e2","time":"2021-02-04T16:45:00Z","data":{"id":"e1",`+
			`"reward":1}}`)
}

func FuzzMsgpack(f *testing.F) {
	o := codec.Round{Context: codec.Context{ID: "a", Features: []codec.Feature{{Name: "x", Kind: codec.Number,
		Value: 1}},
		Actions: []codec.Action{{Name: "p"}}}, Action: "p", Propensity: 1, Time: 5, OutcomeTime: scan.NoTime}
	one := string(codec.AppendRound(nil, &o))
	outcome := codec.Round{Context: codec.Context{ID: "a"}, Kind: codec.Loss, Value: 1, Time: scan.NoTime,
		OutcomeTime: scan.NoTime}
	fuzzFormat(f, Msgpack, one+one+string(codec.AppendRound(nil, &outcome)), one+one, one[:len(one)-2], one+"\xc1")
}

// Whatever the content is: a format, or an error.
func FuzzDetect(f *testing.F) {
	f.Add([]byte("\x1f\x8b\x08\x00\x00\x00\x00\x00"))
	f.Add([]byte("\x28\xb5\x2f\xfd\x00\x00"))
	f.Add([]byte("PAR1"))
	fuzzFormat(f, "", "a,b\n1,2\n", "[CHECKPOINT]\n{\"c\":{}}")
}
