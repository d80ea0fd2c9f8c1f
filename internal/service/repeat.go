package service

import (
	"context"
	"maps"
	"slices"
	"sync"

	"hindsight/internal/front"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// maxRecent bounds the bytes of the decisions that a process keeps for repeats of their
// requests, and those of the repeats that wait for older ones. Partitions have equal shares.
const maxRecent = 16 << 20

func (c *SystemConfig) recentShare() int { return maxRecent / max(1, c.Partitions) }

// recent knows where the last decisions lie in the log, and has the bytes of as many of
// them as it may hold, in a ring. It is safe for concurrent use.
type recent struct {
	mu      sync.Mutex
	rounds  []recentRound // round n is at n modulo their number
	ring    []byte        // byte i of all that was written is at i modulo most
	most    int
	written int
}

type recentRound struct {
	n      int64
	offset int64 // -1: not acknowledged
	at     int   // the record's bytes were written from here on; -1: they did not fit
	size   int
}

func (r *recent) init(rounds, most int) { r.rounds, r.most = make([]recentRound, rounds), most }

func (r *recent) at(n int64) *recentRound { return &r.rounds[n%int64(len(r.rounds))] }

// put adds the next round, whose record has these bytes. They overwrite the oldest.
func (r *recent) put(n int64, value []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.at(n)
	if *e = (recentRound{n, -1, -1, len(value)}); len(value) > r.most {
		return
	}
	e.at = r.written
	r.written += len(value)
	if more := min(r.written, r.most) - len(r.ring); more > 0 {
		r.ring = append(r.ring, make([]byte, more)...)
	}
	from := e.at % r.most
	copy(r.ring, value[copy(r.ring[from:], value):])
}

// stored notes where a round's record lies.
func (r *recent) stored(n, offset int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.at(n); e.n == n {
		e.offset = offset
	}
}

// get returns a copy of the record of a round that is in the log, or where it lies.
func (r *recent) get(n int64) (value []byte, offset int64, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.at(n)
	if e.n != n {
		return nil, -1, false
	}
	if e.at >= 0 && r.written-e.at <= r.most {
		from := e.at % r.most
		value = append(value, r.ring[from:min(from+e.size, len(r.ring))]...)
		value = append(value, r.ring[:e.size-len(value)]...)
	}
	return value, e.offset, value != nil || e.offset >= 0
}

// repeat is a request whose round was decided before. With an id, which was minted for that
// round, it was if it is the same request but for the id.
type repeat struct {
	n  int64
	m  stream.Message
	id string
}

// repeat answers a repeat when its decision is in the log.
func (d *Decider) repeat(r *repeat) {
	if d.flight.join(r.n, func(stored bool) { d.answerAgain(r, stored) }) {
		return
	}
	if !d.answerAgain(r, d.Err() == nil) && d.gate != nil {
		d.gate.Release()
	}
}

// answerAgain answers a repeat, and reports false if the decision is to be read back first.
func (d *Decider) answerAgain(r *repeat, stored bool) bool {
	value, offset, ok := d.recent.get(r.n)
	if ok = ok && stored; ok && value == nil && d.readBack(r, offset) {
		return false
	}
	if !ok {
		value = nil
	}
	d.sendAgain(r, value)
	return true
}

// sendAgain sends a decision, marked duplicate. Without the bytes of its record it refuses.
func (d *Decider) sendAgain(r *repeat, value []byte) {
	var dec codec.Decision
	json, refuse := !codec.IsMap(r.m.Data), front.Refuser(&r.m, d.cfg.Metrics, "decide")
	if value == nil || codec.ParseDecision(&dec, value) != nil || dec.N != r.n {
		refuse(503, "the recorded decision cannot be read now: retry with the same id", "")
		return
	}
	if r.id != "" && !sameButForID(dec.Context, r.m.Data) {
		refuse(409, d.usedIn(r.n), r.id)
		return
	}
	d.m.Repeated.Inc()
	r.m.Respond(reply(&dec, "", true, json))
}

// readBacks are the repeats of older decisions, which one goroutine reads back one after
// the other: however many clients ask again, the log has one more to answer.
type readBacks struct {
	room front.Room

	mu      sync.Mutex
	waiting map[int64][]*repeat // by the offsets of their decisions
	busy    bool
}

// readBack answers a repeat when its decision is read back. It reports false if too many wait for theirs.
func (d *Decider) readBack(r *repeat, offset int64) bool {
	b := &d.old
	if !b.room.Take(front.HeldBytes(&r.m), d.cfg.recentShare()) {
		return false
	}
	b.mu.Lock()
	if b.waiting == nil {
		b.waiting = map[int64][]*repeat{}
	}
	b.waiting[offset] = append(b.waiting[offset], r)
	busy := b.busy
	b.busy = true
	b.mu.Unlock()
	if !busy {
		d.spawn(d.readAllBack)
	}
	return true
}

// readAllBack works until no repeat waits.
func (d *Decider) readAllBack() {
	b := &d.old
	for {
		b.mu.Lock()
		waiting := b.waiting
		b.waiting, b.busy = nil, len(waiting) > 0
		b.mu.Unlock()
		if len(waiting) == 0 {
			return
		}
		d.readEachBack(waiting)
	}
}

// readEachBack reads one record for all who wait for it.
func (d *Decider) readEachBack(waiting map[int64][]*repeat) {
	ctx, cancel := context.WithTimeout(context.Background(), front.MaxPatience)
	defer cancel()
	for _, offset := range slices.Sorted(maps.Keys(waiting)) {
		value, err := stream.Get(ctx, d.cfg.Log, d.topics.Decisions, d.cfg.Partition, offset)
		if err != nil {
			value = nil
		}
		for _, r := range waiting[offset] {
			d.old.room.Give(front.HeldBytes(&r.m))
			d.sendAgain(r, value)
		}
	}
}
