package logs

import (
	"bufio"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
		var bad *LineError
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
	case !(r.Propensity >= 0 && r.Propensity <= 1), !(r.Weight >= 1), r.Propensities != nil && len(r.Propensities) != len(r.Actions):
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
	fuzzFormat(f, Dsjson, "\ufeff{}", "{\"c\":{\"_multi\":[]},\"a\":[1]}", `{"_outcomes":[],"c":{"_slots":[]}}`, `{"c":{"_text":"a b"},"a":[1],"p":[1],"_label_cost":1}`)
}
