package door

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"hindsight/internal/follow"
	"hindsight/internal/loop"
	"hindsight/internal/service"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// flagSetting is a world of a flag with three variants whose rounds wait for an hour, and its clock.
func flagSetting() (setting, *atomic.Int64) {
	now := new(atomic.Int64)
	now.Store(time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC).UnixNano())
	return setting{partitions: 4, now: func() time.Time { return time.Unix(0, now.Load()) },
		model: "actions: [a, b, c]\nwindow: 1h\n"}, now
}

func (w *world) flag(body string) (f flagAnswer) {
	w.t.Helper()
	got := w.call("POST", "/ofrep/v1/evaluate/flags/shop", body)
	if err := json.Unmarshal(got.body, &f); err != nil || got.status != 200 {
		w.t.Fatalf("%s: %d %s", body, got.status, got.body)
	}
	return f
}

// rounds returns the decisions in the log.
func (w *world) rounds(partitions int) (out []codec.Decision) {
	w.t.Helper()
	for p := range partitions {
		for _, b := range w.recordsOf("shop.decisions", p) {
			var d codec.Decision
			if err := codec.ParseDecision(&d, bytes.Clone(b)); err != nil {
				w.t.Fatal(err)
			}
			out = append(out, d)
		}
	}
	return out
}

// TestFlag holds that an evaluation is a decision, recorded for its targeting key until the period is over, whatever
// else the evaluation context says, and after a restart.
func TestFlag(t *testing.T) {
	s, now := flagSetting()
	s.log = newLog()
	w := open(t, s)
	first := w.flag(
		`{"context":{"targetingKey":"user-17","hour":14,"plan":"free","vip":true,"tags":["x"],"none":null}}`)
	all := w.rounds(s.partitions)
	if len(all) != 1 {
		t.Fatalf("%d decisions", len(all))
	}
	d := &all[0]
	name := d.Actions[d.Action]
	want := flagAnswer{"shop", name, "SPLIT", name, flagMetadata{d.ID, d.Propensities[d.Action], d.Epoch}}
	if first != want {
		t.Errorf("%+v of %+v", first, d)
	}
	const features = `"features":{"hour":14,"none":null,"plan":"free","vip":true},"attributes":{"tags":["x"]}`
	if got := string(d.Context); got != `{"id":"`+d.ID+`",`+features+`}` ||
		!strings.HasPrefix(d.ID, "user-17@2026-05-04T") {
		t.Errorf("the context is %s", got)
	}
	again := func(w *world) {
		t.Helper()
		if got := w.flag(`{"context":{"targetingKey":"user-17","hour":15}}`); got != first {
			t.Errorf("%+v, then %+v", first, got)
		}
	}
	again(w)
	w.stop()
	w = open(t, s)
	again(w)
	if n := len(w.rounds(s.partitions)); n != 1 {
		t.Errorf("%d decisions after repeats", n)
	}
	now.Add(int64(time.Hour))
	if got := w.flag(`{"context":{"targetingKey":"user-17"}}`); got.Metadata.ID == first.Metadata.ID {
		t.Errorf("a period later: %+v", got)
	}
	w.flag(`{"context":{"targetingKey":"user-18"}}`)
	if n := len(w.rounds(s.partitions)); n != 3 {
		t.Errorf("%d decisions", n)
	}
}

// TestFlagPeriods holds that every time is in one period of a key, as long as the window, and that keys change apart.
func TestFlagPeriods(t *testing.T) {
	var at time.Time
	d := &Door{now: func() time.Time { return at }, o: Options{Definition: func() *follow.Definition {
		return &follow.Definition{Rules: &loop.Rules{Window: loop.Window{Nanos: int64(time.Hour)}}}
	}}}
	changes := map[int]bool{}
	for _, key := range []string{"a", "b", "c"} {
		var seen []string
		for minute := range 180 {
			at = time.Date(2026, 5, 4, 0, minute, 0, 0, time.UTC)
			if id := d.roundOf(key, 0); len(seen) == 0 || seen[len(seen)-1] != id {
				if len(seen) > 0 {
					changes[minute%60] = true
					if d.roundOf(key, 1) != seen[len(seen)-1] {
						t.Errorf("the period before %s is not %s", id, seen[len(seen)-1])
					}
				}
				seen = append(seen, id)
			}
		}
		if len(seen) != 4 {
			t.Errorf("%v in three hours", seen)
		}
	}
	if len(changes) != 3 {
		t.Errorf("periods begin in the minutes %v", changes)
	}
}

// TestFlagValues holds that a flag is a boolean or a number where all actions are named so.
func TestFlagValues(t *testing.T) {
	for _, c := range []struct{ action, other, want string }{
		{"true", "false", `true`},
		{"1", "2.50", `1`},
		{"-1e3", "0", `-1e3`},
		{"1", "true", `"1"`},
		{"1", "many", `"1"`},
		{"0x10", "1", `"0x10"`},
		{"1 ", "2", `"1 "`},
		{"blue", "red", `"blue"`},
	} {
		got, err := json.Marshal(valueOf(c.action, map[string]float64{c.action: 0.5, c.other: 0.5}))
		if err != nil || string(got) != c.want {
			t.Errorf("%s of %s, %s: %s %v", c.action, c.action, c.other, got, err)
		}
	}
}

// TestFlags holds that the evaluation of all flags has an ETag, and that who knows it gets no answer again.
func TestFlags(t *testing.T) {
	s, now := flagSetting()
	w := open(t, s)
	const asked = `{"context":{"targetingKey":"user-17"}}`
	got := w.call("POST", "/ofrep/v1/evaluate/flags", asked)
	var all struct{ Flags []flagAnswer }
	if err := json.Unmarshal(got.body, &all); err != nil || got.status != 200 || len(all.Flags) != 1 ||
		all.Flags[0] != w.flag(asked) {
		t.Errorf("%d %s", got.status, got.body)
	}
	tag := got.header.Get("ETag")
	for _, known := range []string{tag, "W/" + tag, `"other", ` + tag, "*"} {
		if got := w.call("POST", "/ofrep/v1/evaluate/flags", asked, "If-None-Match: "+known); got.status != 304 ||
			len(got.body) > 0 || got.header.Get("ETag") != tag {
			t.Errorf("%s: %d %s", known, got.status, got.body)
		}
	}
	now.Add(int64(time.Hour))
	if got := w.call("POST", "/ofrep/v1/evaluate/flags", asked, "If-None-Match: "+tag); got.status != 200 {
		t.Errorf("a period later: %d", got.status)
	}
}

// TestFlagErrors holds that errors have the shape and the codes of OFREP.
func TestFlagErrors(t *testing.T) {
	s, _ := flagSetting()
	w := open(t, s)
	const one, all, track = "/ofrep/v1/evaluate/flags/shop", "/ofrep/v1/evaluate/flags", "/ofrep/v1/track/shop"
	long := strings.Repeat("x", 256)
	for _, c := range []struct {
		path, body string
		status     int
		code       string
		says       string
	}{
		{"/ofrep/v1/evaluate/flags/other", `{"context":{"targetingKey":"u"}}`, 404, flagNotFound, "serves the " +
			"flag shop"},
		{"/ofrep/v1/track/other", `{"context":{"targetingKey":"u"}}`, 404, flagNotFound, "serves the flag shop"},
		{one, `{"context":{}}`, 400, keyMissing, "context.targetingKey"},
		{one, `{}`, 400, keyMissing, "context.targetingKey"},
		{one, `{"context":{"targetingKey":""}}`, 400, keyMissing, "context.targetingKey"},
		{one, `{"context":{"targetingKey":7}}`, 400, invalidContext, "not text"},
		{one, `{"context":{"targetingKey":"` + long + `"}}`, 400, invalidContext, "id"},
		{one, `{"context":{"targetingKey":"u","x":1e999}}`, 400, invalidContext, "x"},
		{one, `{"context":7}`, 400, parseError, "not a request of OFREP"},
		{one, `{`, 400, parseError, "unexpected end"},
		{one, strings.Repeat("[", 100_000), 400, parseError, "depth"},
		{one, `{"x":"` + strings.Repeat("x", 1<<20) + `"}`, 413, generalError, "too large"},
		{all, `{"context":{}}`, 400, keyMissing, "context.targetingKey"},
		{track, `{"context":{"targetingKey":"u"}}`, 400, parseError, "details.value is missing"},
		{track, `{"details":{"value":1}}`, 400, keyMissing, "context.targetingKey"},
		{track, `{"context":{"targetingKey":"u"},"details":{"value":"x","id":"r"}}`, 400, invalidContext, "reward"},
		{track, `{"context":{"targetingKey":"u"},"details":{"value":1}}`, 404, generalError, "evaluate first"},
	} {
		got := w.call("POST", c.path, c.body)
		var f flagFailure
		err := json.Unmarshal(got.body, &f)
		key := c.path[strings.LastIndex(c.path, "/")+1:]
		if key == "flags" {
			key = ""
		}
		if err != nil || got.status != c.status || f.ErrorCode != c.code || !strings.Contains(f.ErrorDetails, c.says) ||
			f.Key != key || got.header.Get("Content-Type") != typeJSON {
			t.Errorf("%s %.60s: %v %d %v %s", c.path, c.body, err, got.status, got.header, got.body)
		}
	}
	if got := w.call("POST", one, `{}`, "Content-Type: text/plain"); got.status != 415 {
		t.Errorf("text: %d %s", got.status, got.body)
	}
	for _, got := range []reply{w.call("POST", one, `{}`, "Host: example.org"), w.call("GET", one, ""),
		w.call("GET", "/ofrep/v1/configuration", "")} {
		var f flagFailure
		if err := json.Unmarshal(got.body, &f); err != nil || got.status < 403 || f.ErrorCode != generalError {
			t.Errorf("before a flag is read: %d %s", got.status, got.body)
		}
	}
	if n := len(w.rounds(s.partitions)); n != 0 {
		t.Errorf("%d decisions", n)
	}
}

// TestFlagLater holds that who asks too often is told when to come again.
func TestFlagLater(t *testing.T) {
	s, _ := flagSetting()
	s.clientRate = 1
	w := open(t, s)
	for range 1000 {
		got := w.call("POST", "/ofrep/v1/evaluate/flags/shop", `{"context":{"targetingKey":"u"}}`)
		if got.status == 200 {
			continue
		}
		var f flagFailure
		if err := json.Unmarshal(got.body, &f); err != nil || got.status != 429 || f.ErrorCode != generalError ||
			got.header.Get("Retry-After") != "1" {
			t.Errorf("%v %d %s", err, got.status, got.body)
		}
		return
	}
	t.Error("nothing was refused")
}

// TestTrack holds that a tracking call stores a reward of the last round of a targeting key, or of the round that it
// names.
func TestTrack(t *testing.T) {
	s, now := flagSetting()
	file, keys := keyFile(t, "web decide", "till outcome")
	s.flags = []string{"--keys", file}
	w := open(t, s)
	call := func(key, path, body string) reply { return w.call("POST", path, body, "X-API-Key: "+keys[key]) }
	first := call("web", "/ofrep/v1/evaluate/flags/shop", `{"context":{"targetingKey":"user-17"}}`)
	var f flagAnswer
	if err := json.Unmarshal(first.body, &f); err != nil {
		t.Fatal(err)
	}
	outcomes := func() (out []codec.Outcome) {
		for p := range s.partitions {
			for _, b := range w.recordsOf("shop.outcomes", p) {
				var o codec.Outcome
				if err := codec.ParseOutcome(&o, bytes.Clone(b)); err != nil {
					t.Fatal(err)
				}
				out = append(out, o)
			}
		}
		return out
	}
	now.Add(int64(time.Hour) - 1) // in the next period, whose round does not exist
	for i, body := range []string{`{"context":{"targetingKey":"user-17"},"details":{"value":0.5,"outcome_id":"o"}}`,
		`{"details":{"value":0.5,"outcome_id":"o","id":"` + f.Metadata.ID + `"}}`} {
		got := call("till", "/ofrep/v1/track/shop", body)
		all := outcomes()
		want := codec.Outcome{ID: f.Metadata.ID, Kind: codec.Reward, Value: 0.5, OutcomeID: "o"}
		if got.status != 202 || string(got.body) != `{"id":"`+f.Metadata.ID+`","stored":true}` || len(all) != i+1 ||
			!reflect.DeepEqual(all[i], want) {
			t.Errorf("%d %s; stored %+v", got.status, got.body, all)
		}
	}
	var failure flagFailure
	if got := call("web", "/ofrep/v1/track/shop", `{}`); got.status != http.StatusForbidden ||
		json.Unmarshal(got.body, &failure) != nil || failure.Key != "shop" || failure.ErrorCode != generalError {
		t.Errorf("a key without the role: %d %s", got.status, got.body)
	}
	now.Add(int64(2 * time.Hour))
	if got := call("till", "/ofrep/v1/track/shop", `{"context":{"targetingKey":"user-17"},"details":{"value":1}}`); got.
		status != 404 {
		t.Errorf("long after: %d %s", got.status, got.body)
	}
	for code, n := range w.refused("decide") {
		if n > 0 {
			t.Errorf("looking for a round is a refusal: %v with %s", n, code)
		}
	}
}

// TestFlagForwarded holds that a repeat and a tracking call find their round in another process.
func TestFlagForwarded(t *testing.T) {
	log := newLog()
	var both []*world
	for p := range 2 {
		s, _ := flagSetting()
		s.log, s.bus, s.partitions = log, log.(stream.Bus), 2
		s.change = func(c *service.SystemConfig) {
			if c.Owned, c.BusApart = []int{p}, false; p > 0 {
				c.Source = nil // the joiner is the other process
			}
		}
		both = append(both, open(t, s))
	}
	a, b := both[0], both[1]
	for i := range 10 {
		key := fmt.Sprintf(`"targetingKey":"user-%d"`, i)
		first, again := a.flag(`{"context":{`+key+`,"hour":7}}`), b.flag(`{"context":{`+key+`,"hour":8}}`)
		if first != again {
			t.Errorf("%+v, then %+v", first, again)
		}
		got := b.call("POST", "/ofrep/v1/track/shop", `{"context":{`+key+`},"details":{"value":1}}`)
		if got.status != 202 || !strings.Contains(string(got.body), first.Metadata.ID) {
			t.Errorf("%d %s", got.status, got.body)
		}
	}
	if n := len(a.rounds(2)); n != 10 {
		t.Errorf("%d decisions", n)
	}
}
