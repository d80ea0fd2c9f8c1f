package service

import (
	"bytes"

	"hindsight/internal/front"
	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// slots answers a request whose context has slots: each becomes a request of its own, one after the other, since the
// draws before say which actions are left. The rounds of a retry have the same ids and contexts, so that it gets the
// draws that were made, and makes those that were not.
type slots struct {
	d       *Decider
	m       stream.Message
	json    bool
	rules   *loop.Rules
	c       codec.Context
	drawn   []string
	replies [][]byte
}

// requestSlots begins to answer a request whose context can be read.
func (d *Decider) requestSlots(m stream.Message) {
	if d.gate != nil {
		d.gate.Release() // the requests of its slots are in admission
	}
	s := &slots{d: d, m: m, json: !codec.IsMap(m.Data), rules: d.at.definition.Load().Rules}
	s.m.Data = bytes.Clone(m.Data) // its client may leave before the last slot
	err := codec.ParseContext(&s.c, s.m.Data)
	if s.c.ID == "" {
		s.c.ID = front.RequestID(&m)
	}
	if err == nil {
		err = s.rules.CheckSlots(&s.c)
	}
	if err != nil {
		front.Refuser(&m, d.cfg.Metrics, "decide")(front.CodeOf(err), front.WhyOf(err), s.c.ID)
		return
	}
	d.spawn(s.next)
}

// next asks for the next slot, or answers when there is none. It runs without the decider's lock.
func (s *slots) next() {
	if len(s.drawn) == len(s.c.Slots) {
		s.m.Respond(codec.AppendSlotsReply(nil, s.c.ID, s.c.Slots, s.replies, s.json))
		return
	}
	one, m := s.rules.SlotContext(&s.c, len(s.drawn), s.drawn), s.m
	m.Respond = s.take
	if m.Data = codec.AppendContext(nil, &one); s.json {
		m.Data = codec.AppendContextJSON(nil, &one)
	}
	if s.d.cfg.front == nil {
		s.d.Request(m)
		return
	}
	s.d.cfg.front.Decide(m) // by its own id, which another process may own
}

// take takes the reply of a slot. One that says no action is an error, and is the reply of all.
func (s *slots) take(reply []byte, headers ...stream.Header) error {
	var round codec.Round
	reply = bytes.Clone(reply)
	if err := codec.ParseRound(&round, reply); err != nil || round.Action == "" {
		return s.m.Respond(reply, headers...)
	}
	s.drawn, s.replies = append(s.drawn, round.Action), append(s.replies, reply)
	s.d.spawn(s.next)
	return nil
}
