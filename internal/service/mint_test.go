package service

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"hindsight/internal/check"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// deafLog is a log that, while it is deaf, neither stores decisions nor says so.
type deafLog struct {
	stream.Log
	topic string
	deaf  bool
}

type deafAppender struct {
	stream.Appender
	log *deafLog
}

func (l *deafLog) Open(ctx context.Context, topic string, p int, o stream.OpenOptions) (stream.Appender,
	stream.Tail, error) {
	a, tail, err := l.Log.Open(ctx, topic, p, o)
	if err == nil && topic == l.topic {
		a = &deafAppender{a, l}
	}
	return a, tail, err
}

func (a *deafAppender) Append(ctx context.Context, r *stream.Record) (uint64, error) {
	if a.log.deaf {
		return 0, nil
	}
	return a.Appender.Append(ctx, r)
}

// minting is a rig whose decider answers requests.
type minting struct {
	*rig
	log     *deafLog
	replies []check.Reply
}

func newMinting(t *testing.T) *minting {
	m := &minting{}
	m.rig = newRig(t, func(r *rig) {
		m.log = &deafLog{Log: r.log, topic: r.topics.Decisions}
		r.dc.Log, r.jc.Seed = m.log, r.dc.Seed
	})
	m.must(m.settle())
	return m
}

// mintedAnswer is a decision or an error.
type mintedAnswer struct {
	ID        string `json:"id"`
	N         int64  `json:"n"`
	Duplicate bool   `json:"duplicate"`
	Error     *struct {
		Code int    `json:"code"`
		ID   string `json:"id"`
	} `json:"error"`
}

// ask asks for a decision on a context, with an id unless that is "".
func (m *minting) ask(id string, x int) *mintedAnswer {
	data := fmt.Sprintf(`{"features":{"x":%d},"actions":["a","b"]}`, x)
	if id != "" {
		data = fmt.Sprintf(`{"id":%q,`, id) + data[1:]
	}
	a := &mintedAnswer{}
	m.d.spawn = func(f func()) { f() }
	m.d.Request(stream.Message{Data: []byte(data), Respond: func(b []byte, _ ...stream.Header) error {
		*a = mintedAnswer{}
		if err := json.Unmarshal(b, a); err != nil {
			m.t.Errorf("%s: %v", b, err)
		} else if a.Error == nil {
			m.replies = append(m.replies, check.Reply{ID: id, Data: append([]byte(nil), b...)})
		}
		return nil
	}})
	return a
}

// decided asks n times without an id, each of which must be decided anew.
func (m *minting) decided(n int) {
	m.t.Helper()
	for range n {
		next := m.d.heart.Next()
		if a := m.ask("", 1); a.Error != nil || a.Duplicate || a.N != next || a.ID == "" {
			m.t.Fatalf("a request without an id: %+v, %+v; round %d was next", a, a.Error, next)
		}
	}
}

// reopen opens the decider again.
func (m *minting) reopen() {
	m.d.Close()
	var err error
	m.d, err = OpenDecider(m.t.Context(), m.dc)
	m.must(err)
	m.must(m.settle())
}

// audit checks the logs and what was answered.
func (m *minting) audit() {
	m.t.Helper()
	m.must(m.settle())
	r, err := check.Run(m.t.Context(), m.rig.log, "m", 1, check.Options{Seed: m.dc.Seed, Dedup: int64(m.dc.Dedup),
		Unfinished: true, Replies: m.replies})
	m.must(err)
	for _, v := range r.Violations {
		m.t.Error(v)
	}
	if rejects := r.Rejects["contexts/"+codec.ReasonDuplicateID]; rejects > 0 {
		m.t.Errorf("%d contexts were rejected", rejects)
	}
}

// TestMintedIDsClaimed: whoever uses ids ahead that are minted for others keeps nobody from
// being decided, by request or by topic.
func TestMintedIDsClaimed(t *testing.T) {
	m := newMinting(t)
	for _, id := range []string{"r-0-3", "r-0-4", "0-1", "0-3"} {
		if a := m.ask(id, 1); a.Error != nil {
			t.Fatalf("%s: %+v", id, a.Error)
		}
	}
	m.ask("r-0-7", 1)
	m.decided(5)
	for i := range 5 {
		m.put(m.topics.Contexts, `{"features":{"x":%d},"actions":["a","b"]}`, i)
	}
	m.must(m.settle())
	if next := m.d.heart.Next(); next != 16 {
		t.Errorf("round %d is next after 15 contexts", next)
	}
	m.reopen()
	m.decided(5)
	m.audit()
}

// TestMintedIDsLost loses decisions whose ids their clients were told, and lets some of them
// ask again: in other rounds than those that the ids are of. Whoever asks without an id is
// decided all the same.
func TestMintedIDsLost(t *testing.T) {
	m := newMinting(t)
	m.decided(5)
	for range 3 { // the ids of rounds that were minted anew are lost, too
		m.log.deaf = true
		var told []*mintedAnswer
		for range 24 {
			told = append(told, m.ask("", 1))
		}
		m.log.deaf = false
		m.reopen()
		for i, a := range told {
			if a.Error == nil || a.Error.Code != 503 || a.Error.ID == "" {
				t.Fatalf("a decision that was lost: %+v", a)
			}
			if i%5 == 2 {
				m.ask(a.Error.ID, 1)
			}
		}
		m.decided(12)
		m.reopen()
		m.decided(12)
	}
	m.audit()
}

// TestMintedIDRepeated: who asked without an id, and asks again with the id that was minted,
// gets the decision that was made; another context with that id does not.
func TestMintedIDRepeated(t *testing.T) {
	m := newMinting(t)
	first := m.ask("", 1)
	for range 2 {
		if a := m.ask(first.ID, 1); a.Error != nil || !a.Duplicate || a.N != first.N {
			t.Errorf("the same context with the id of the first: %+v, %+v", a, a.Error)
		}
		if a := m.ask(first.ID, 2); a.Error == nil || a.Error.Code != 409 || a.Error.ID != first.ID {
			t.Errorf("another context with that id: %+v", a)
		}
		m.reopen()
	}
	m.ask("own", 1)
	if a := m.ask("own", 2); a.Error == nil || a.Error.Code != 409 {
		t.Errorf("another context with an id of a client's own: %+v", a)
	}
	m.audit()
}
