package service

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"hindsight/internal/loop"
	"hindsight/pkg/stream"
)

// ask asks the decider of a rig and returns what it answers at once: a repeat is answered
// later.
func (r *rig) ask(data string) string {
	answer := make(chan string, 1)
	r.d.Request(stream.Message{Data: []byte(data), Respond: func(data []byte, _ ...stream.Header) error {
		answer <- string(data)
		return nil
	}})
	select {
	case a := <-answer:
		return a
	default:
		return ""
	}
}

// What nobody reads of contexts is counted, and named now and then without its values.
func TestUnreadIsTold(t *testing.T) {
	var log bytes.Buffer
	r := newRig(t, func(r *rig) {
		r.rules.Features = []loop.FeatureRule{{Name: "hour", Kind: loop.NumberFeature}}
		r.dc.Logger = slog.New(slog.NewTextHandler(&log, nil))
	})
	r.must(r.settle())
	counted := func() float64 { return scrape(t, r.reg)[`hindsight_unread_features_total{partition="0"}`] }
	lines := func() int { return strings.Count(log.String(), "level=WARN") }
	if got := r.ask(`{"id":"good","features":{"hour":3},"actions":["a"]}`); strings.Contains(got, "unread") {
		t.Errorf("answered %s", got)
	}
	if counted() != 0 || lines() != 0 {
		t.Fatalf("of a context that is read: %v, %s", counted(), &log)
	}
	typo := func(i int) string {
		return fmt.Sprintf(`{"id":"r%d","features":{"huor":"%s"},"acions":["%[2]s"],"actions":["a"]}`, i, plantedText)
	}
	if got := r.ask(typo(0)); !strings.Contains(got, `"unread":"acions, huor"`) {
		t.Errorf("answered %s", got)
	}
	r.ask(typo(0)) // a repeat, which is not decided
	r.ask(strings.Replace(typo(0), `["a"]`, `[]`, 1))
	if counted() != 2 || lines() != 1 || !strings.Contains(log.String(), `names="acions, huor" id=r0 untold=0`) {
		t.Fatalf("%v, %s", counted(), &log)
	}
	for i := range 5 {
		r.ask(typo(1 + i))
	}
	if counted() != 12 || lines() != 1 {
		t.Fatalf("%v, %s", counted(), &log)
	}
	r.d.unread.told = time.Now().Add(-unreadEvery)
	r.ask(typo(6))
	if counted() != 14 || lines() != 2 || !strings.Contains(log.String(), `id=r6 untold=10`) ||
		strings.Contains(log.String(), plantedText) {
		t.Fatalf("%v, %s", counted(), &log)
	}
}

// Values outside the range that the model states for their feature are counted, and the features
// named now and then, without the values.
func TestOutsideIsTold(t *testing.T) {
	var log bytes.Buffer
	r := newRig(t, func(r *rig) {
		r.rules.Features = []loop.FeatureRule{{Name: "hour", Kind: loop.NumberFeature, Bounded: true, Hi: 23},
			{Name: "price", Kind: loop.NumberFeature},
			{Name: "speed", Kind: loop.NumberFeature, Bounded: true, Lo: -1, Hi: 1}}
		r.dc.Logger = slog.New(slog.NewTextHandler(&log, nil))
	})
	r.must(r.settle())
	told := func(want float64, lines int) {
		t.Helper()
		if n := scrape(t, r.reg)[`hindsight_outside_feature_values_total{partition="0"}`]; n != want ||
			strings.Count(log.String(), "level=WARN") != lines {
			t.Fatalf("%v, %s", n, &log)
		}
	}
	r.ask(`{"id":"in","features":{"hour":23,"price":1e9,"speed":-1},"actions":["a"]}`)
	told(0, 0)
	out := `{"id":"out","features":{"hour":3600777,"price":1e9,"speed":-1.5},"actions":["a"]}`
	r.ask(out)
	r.ask(out) // a repeat, which is not decided
	told(2, 1)
	for i := range 4 {
		r.ask(fmt.Sprintf(`{"id":"r%d","features":{"hour":24},"actions":["a"]}`, i))
	}
	told(6, 1)
	r.d.outside.told = time.Now().Add(-unreadEvery)
	r.ask(`{"id":"last","features":{"speed":2},"actions":["a"]}`)
	told(7, 2)
	for _, want := range []string{`names="hour, speed" id=out untold=0`, `names=speed id=last untold=4`} {
		if !strings.Contains(log.String(), want) || strings.Contains(log.String(), "3600777") {
			t.Errorf("%s is not told: %s", want, &log)
		}
	}
}

// Whoever sends what is no event is answered in JSON; who sends MessagePack in that.
func TestErrorsCanBeRead(t *testing.T) {
	r := newRig(t, nil)
	r.must(r.settle())
	outcomes, err := r.front(silentBus{}).ServeOutcomes(t.Context(), r.log)
	r.must(err)
	t.Cleanup(outcomes.Close)
	for in, want := range map[string]string{
		"": "{", "hello": "{", "[]": "{", "\xc1": "{", `{"features":1}`: "{", "\xef\xbb\xbf": "{",
		"\x81\xa8features\x01": "\x81", "\x81": "\x81",
	} {
		var stored string
		r.ask(in)
		outcomes.Store(stream.Message{Data: []byte(in), Respond: func(data []byte, _ ...stream.Header) error {
			stored = string(data)
			return nil
		}})
		for _, got := range []string{r.ask(in), stored} {
			if !strings.HasPrefix(got, want) || !strings.Contains(got, "400") && want == "{" {
				t.Errorf("%q: answered %q", in, got)
			}
		}
	}
}

type silentBus struct{ stream.Bus }

func (silentBus) Serve(string, string, func(stream.Message)) (func(), error) { return func() {}, nil }
