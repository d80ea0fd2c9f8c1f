package service

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// slotsOf asks for a decision whose slots are decided elsewhere, and returns the reply and its headers.
func (r *rig) slotsOf(data []byte) (reply []byte, headers []stream.Header) {
	done := make(chan struct{})
	r.d.Request(stream.Message{Data: data, Respond: func(b []byte, h ...stream.Header) error {
		reply, headers = bytes.Clone(b), slices.Clone(h)
		close(done)
		return nil
	}})
	<-done
	return reply, headers
}

// slotsReply is the reply to a context with slots.
type slotsReply struct {
	ID    string
	Slots map[string]struct {
		ID, Action   string
		Propensity   float64
		Propensities map[string]float64
		Duplicate    bool
	}
}

// TestSlots holds that each slot is a round, whose law is over the actions that the slots before have left; that a
// retry gets the same draws, also of a process that began later, and makes those that were not made; and that what is
// wrong is said before anything is decided.
func TestSlots(t *testing.T) {
	r := newRig(t, nil)
	r.must(r.settle())
	const context = `{"id":"e","features":{"x":1},"actions":["a","b","c"],"slots":["hero",{"name":"side",` +
		`"features":{"size":2}},"top"]}`
	ask := func(text string) (reply slotsReply, raw string) {
		t.Helper()
		b, _ := r.slotsOf([]byte(text))
		if err := json.Unmarshal(b, &reply); err != nil {
			t.Fatalf("%v: %s", err, b)
		}
		return reply, string(b)
	}
	first, raw := ask(strings.Replace(context, `,"top"`, "", 1)) // a retry brings one slot more
	if first.ID != "e" || len(first.Slots) != 2 || r.d.heart.Next() != 3 {
		t.Fatalf("%s after %d rounds", raw, r.d.heart.Next()-1)
	}
	all, raw := ask(context)
	taken := map[string]bool{}
	for i, slot := range []string{"hero", "side", "top"} {
		s := all.Slots[slot]
		if s.ID != "e:"+slot || len(s.Propensities) != 3-i || s.Propensities[s.Action] != s.Propensity ||
			taken[s.Action] || s.Duplicate != (i < 2) || i < 2 && s.Action != first.Slots[slot].Action {
			t.Errorf("slot %s: %s", slot, raw)
		}
		taken[s.Action] = true
	}
	r.d.Close()
	r.d, _ = OpenDecider(t.Context(), r.dc)
	if again, raw := ask(context); r.d.heart.Next() != 4 || again.Slots["top"].Action != all.Slots["top"].Action {
		t.Errorf("after a restart %s", raw)
	}
	for text, want := range map[string]string{
		strings.Replace(context, `"x":1`, `"x":2`, 1):       `409`,
		strings.Replace(context, `"size":2`, `"size":3`, 1): `409`,
		strings.Replace(context, `"id":"e",`, ``, 1):        `400`,
		strings.Replace(context, `"e"`, `"f"`, 1)[:20]:      `400`,
	} {
		_, headers := r.slotsOf([]byte(text))
		if len(headers) < 2 || headers[1].Value != want {
			t.Errorf("%s: %v", text, headers)
		}
	}
	if r.d.heart.Next() != 4 {
		t.Errorf("%d rounds", r.d.heart.Next()-1)
	}
	if _, raw := ask(`{"id":"u","actions":["a","b"],"slots":["hero"],"unit":"u"}`); !strings.Contains(raw,
		`"unread":"unit"`) {
		t.Errorf("a unit that the model does not read: %s", raw)
	}
}

// TestSlotsPacked holds that a request in MessagePack gets a reply in it, and that outcomes join the rounds of slots.
func TestSlotsPacked(t *testing.T) {
	r := newRig(t, func(r *rig) {
		r.rules.Slots = []loop.SlotRule{{Name: "hero", Actions: []string{"b"}}, {Name: "side"}}
	})
	r.must(r.settle())
	c := codec.Context{ID: "e", Actions: []codec.Action{{Name: "a"}, {Name: "b"}},
		Slots: []codec.Slot{{Name: "hero"}, {Name: "side"}}}
	reply, _ := r.slotsOf(codec.AppendContext(nil, &c))
	for _, want := range []string{"\x82\xa2id\xa1e\xa5slots\x82\xa4hero", "\xa6action\xa1b", "\xa4side",
		"\xa6action\xa1a"} {
		if !bytes.Contains(reply, []byte(want)) {
			t.Errorf("%q has no %q", reply, want)
		}
	}
	r.put(r.topics.Outcomes, `{"id":"e:hero","loss":0.25}`)
	r.put(r.topics.Outcomes, `{"id":"e:side","loss":0.75}`)
	r.must(r.settle())
	if n := r.d.Replica().LearnedThrough(); n != 2 {
		t.Errorf("%d rounds are learned", n)
	}
}
