package main

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"hindsight/internal/check"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// badContext is MessagePack that ends in the middle: a map of two entries, of which
// there is one.
const badContext = "\x82\xa2id\xa1m"

// put appends one record to partition p of a topic and returns when it is stored.
func put(t testing.TB, log stream.Log, topic string, p int, value string) {
	t.Helper()
	w, err := log.Writer(t.Context(), topic, p, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if _, err := w.Append(t.Context(), &stream.Record{Value: []byte(value)}); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// say sends a request and returns the code of the error reply, 0: none, and the reply.
func say(t testing.TB, bus stream.Bus, subject, data string) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	reply, headers, err := bus.Request(ctx, subject, []byte(data))
	if err != nil {
		t.Fatal(err)
	}
	return errorCode(headers), string(reply)
}

// rejectOf waits for the reject of the record of a topic with those bytes.
func rejectOf(t testing.TB, log stream.Log, topic, value string) (found codec.Reject) {
	t.Helper()
	eventually(t, fmt.Sprintf("a reject of %q", value), func() bool {
		scan(t, log, "shop.rejects", 0, func(r *stream.Record) error {
			rej, err := codec.ParseReject(r.Value)
			if err == nil && rej.Topic == topic && string(rej.Bytes) == value {
				found = rej
			}
			return err
		})
		return found.Reason != ""
	})
	return found
}

// fated waits for the feedback of the decision with an id.
func fated(t testing.TB, log stream.Log, id string) (found codec.Feedback) {
	t.Helper()
	eventually(t, "the feedback of "+id, func() bool {
		scan(t, log, "shop.feedback", 0, func(r *stream.Record) error {
			var f codec.Feedback
			err := codec.ParseFeedback(&f, r.Value)
			if f.ID == id {
				found = f
			}
			return err
		})
		return found.ID == id
	})
	return found
}

// TestBadRequests holds what a user is told of a request that is not right.
func TestBadRequests(t *testing.T) {
	dir := t.TempDir()
	p := start(t, decider(t, "--log", "embedded:"+dir, "--listen", "127.0.0.1:0", "--model", writeModel(t, dir, shop),
		"--admin", "none")).ready()
	user, err := dial(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer user.Close()
	for _, c := range []struct {
		name, verb, data string
		code             int
		says             string
	}{
		{"JSON that ends early", "decide", `{"actions":["x"`, 400, "context: "},
		{"no JSON", "decide", `{actions}`, 400, "context: "},
		{"MessagePack that ends early", "decide", badContext, 400, "context: "},
		{"an outcome that ends early", "outcome", `{"id":"a","loss":`, 400, "outcome: "},
		{"such an outcome in MessagePack", "outcome", badContext, 400, "outcome: "},
		{"a new id", "decide", `{"id":"a","actions":["x","y"]}`, 0, `"duplicate":false`},
		{"the same id and context", "decide", `{"id":"a","actions":["x","y"]}`, 0, `"duplicate":true`},
		{"the same id, another context", "decide", `{"id":"a","actions":["x"]}`, 409, "this id was used for another " +
			"context, in round 1 of partition 0"},
	} {
		if code, reply := say(t, user.Bus(), "shop."+c.verb, c.data); code != c.code ||
			!strings.Contains(reply, c.says) {
			t.Errorf("%s: code %d, %q; want %d, %q", c.name, code, reply, c.code, c.says)
		}
	}
	p.stop(patience)
	if r := audit(t, dir, "shop", nil, check.Options{Unfinished: true}, nil); r.Decisions != 1 {
		t.Errorf("%d decisions, want 1: %s", r.Decisions, figures(r))
	}
}

// TestBadRecords holds that each record of a topic that is not right ends in rejects,
// once, with its bytes and the reason.
func TestBadRecords(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := start(t, decider(t, "--log", "embedded:"+dir, "--listen", "127.0.0.1:0", "--model",
		writeModel(t, dir, strings.Replace(shop, "300ms", "2s", 1)), "--admin", "none")).ready()
	client, err := dial(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	log := client.Log()
	put(t, log, "shop.contexts", 0, `{"id":"old","actions":["x"]}`)
	if f := fated(t, log, "old"); f.Fate != codec.Skipped { // by now its window is over
		t.Errorf("%+v", f)
	}
	records := []struct {
		topic, value string
		reason, says string // reason "": it is no reject
	}{
		{"contexts", `{"id":"a","actions":["x"]}`, "", ""},
		{"outcomes", `{"id":"a","action":"other","loss":0.25}`, codec.ReasonMismatch, ""},
		{"outcomes", `{"id":"a","loss":0.5}`, "", ""},
		{"outcomes", `{"id":"a","loss":0.75}`, codec.ReasonDuplicate, ""},
		{"contexts", `{"id":"a","actions":["x"]} `, codec.ReasonDuplicateID, "the id was used by round 2 of " +
			"partition 0"},
		{"contexts", `{"id":"b","actions":["x"`, codec.ReasonMalformed, "context: "},
		{"contexts", badContext, codec.ReasonMalformed, "context: "},
		{"outcomes", `{"id":"old","loss":0.5}`, codec.ReasonLate, ""},
		{"outcomes", `{"id":"nobody","loss":0.5}`, codec.ReasonOrphan, ""},
		{"outcomes", `{"id":"a","loss":`, codec.ReasonMalformed, "outcome: "},
		{"outcomes", badContext, codec.ReasonMalformed, "outcome: "},
	}
	for _, c := range records { // at once: the window of a is open for all of them
		put(t, log, "shop."+c.topic, 0, c.value)
		if c.reason == "" && c.topic == "contexts" {
			eventually(t, "the decision of "+c.value, func() bool { return decided(t, log, "a") })
		}
	}
	for _, c := range records {
		if c.reason == "" {
			continue
		}
		if r := rejectOf(t, log, c.topic, c.value); r.Reason != c.reason || !strings.Contains(r.Detail, c.says) {
			t.Errorf("%s %q: reason %s, detail %q; want %s, %q", c.topic, c.value, r.Reason, r.Detail, c.reason, c.says)
		}
	}
	if f := fated(t, log, "a"); f.Fate != codec.Observed || f.Loss != 0.5 {
		t.Errorf("the outcome that was right: %+v", f)
	}
	client.Close()
	p.stop(patience)
	r := audit(t, dir, "shop", nil, check.Options{}, nil)
	if sum := r.Rejects["mismatch"] + r.Rejects["duplicate"] + r.Rejects["late"] + r.Rejects["orphan"] +
		r.Rejects["malformed"]; sum != 6 || r.Waiting+r.Unread != 0 {
		t.Error(figures(r))
	}
}

// decided reports whether there is a decision with an id.
func decided(t testing.TB, log stream.Log, id string) (found bool) {
	scan(t, log, "shop.decisions", 0, func(r *stream.Record) error {
		var d codec.Decision
		err := codec.ParseDecision(&d, r.Value)
		found = found || d.ID == id
		return err
	})
	return found
}

// TestSameIDInTwoPartitions puts the same context id into two partitions: both are
// decided, for neither knows of the other, and the joiner lets one count.
func TestSameIDInTwoPartitions(t *testing.T) {
	s := newShared(t, 2)
	d := s.decider().ready()
	s.answered()
	for p := range 2 {
		put(t, s.client.Log(), "shop.contexts", p, `{"id":"twin","actions":["x","y"]}`)
	}
	var all []codec.Feedback
	eventually(t, "two feedbacks", func() bool {
		all = all[:0]
		scan(t, s.client.Log(), "shop.feedback", 0, func(r *stream.Record) error {
			var f codec.Feedback
			err := codec.ParseFeedback(&f, r.Value)
			all = append(all, f)
			return err
		})
		return len(all) == 2
	})
	d.stop(patience)
	repeats := 0
	for _, f := range all {
		if f.ID != "twin" || f.Fate != codec.Skipped { // nobody reported an outcome
			t.Errorf("%+v", f)
		}
		if f.Reason == codec.ReasonDuplicateID {
			repeats++
		}
	}
	if repeats != 1 || all[0].Partition == all[1].Partition {
		t.Errorf("%d of the two are repeats, want 1: %+v", repeats, all)
	}
	(&users{s: s}).audit()
}

// TestBadModel holds that a key that is not known is found by line and column.
func TestBadModel(t *testing.T) {
	for text, says := range map[string]string{
		"name: shop\nwindows: 1m\n":                   "model.yaml:2:1: unknown key",
		"name: shop\n\nloss:\n  min: 0\n  maxx: 1\n":  "model.yaml:5:3: loss: unknown key",
		"name: shop\nname: shop\n":                    "model.yaml:2:1: ",
		"name: shop\nwindow: soon\n":                  "model.yaml:2:9: ",
		"{\"name\":\"shop\",\n \"windows\":\"1m\"}\n": "model.yaml:2:2: unknown key",
	} {
		dir := t.TempDir()
		got := finish(t, decider(t, "--log", "embedded:"+dir, "--admin", "none", "--model", writeModel(t, dir, text)))
		if got.code != 1 || !strings.Contains(got.stderr, says) {
			t.Errorf("%q: exit code %d, %q; want %q", text, got.code, got.stderr, says)
		}
	}
}
