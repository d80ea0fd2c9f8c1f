package loop

import (
	"crypto/sha256"
	"fmt"
	"unsafe"

	"hindsight/pkg/codec"
	"hindsight/pkg/learner"
)

// RequestSource is the source offset of a decision that was asked for by request.
const RequestSource int64 = -1

// Source says where a context came from.
type Source struct {
	Offset  int64 // in contexts[partition], or RequestSource
	Through int64 // next unread offset of contexts[partition]; ignored for requests
	Time    int64 // log time, ns; 0 unknown
	Reached int64 // of a request: the log time that the logs have reached, which decisions for a unit say

	// Parsed is the context of a caller that has no bytes of it. It is valid, its decision fits into a record, and its
	// id, which it must have, occurs once: ids are neither looked up nor remembered. The decision has no Context.
	Parsed *codec.Context
}

// Verdict is what Decide made of a context.
type Verdict uint8

// The verdicts of [Decider.Decide].
const (
	Decided   Verdict = iota + 1 // a new round: append it
	Duplicate                    // this id was decided before, from the same bytes
	Conflict                     // this id was decided before, from other bytes
	Invalid                      // the context breaks a rule; Err says which
)

// Result says what became of a context.
type Result struct {
	Verdict Verdict
	N       int64  // the round: the new one, or the one decided before
	ID      string // its id; aliases the context's bytes or the decider's memory
	Err     error  // for Invalid
	Outside int    // for Decided: values of features outside the range that the model states
	// for Decided: features that the model does not list, and keys that no context has: nobody reads them
	Unread int
}

// Decider decides the contexts of one partition. A decision is a function of the epoch, the replica's state, the
// context's bytes and the draw, and of nothing else; the draw is a function of the secret seed, the model's name, the
// partition, N and the round's id. In a model with sticky units it is also one of the log time and of the first draw of
// its unit.
type Decider struct {
	replica   *Replica
	seed      []byte
	name      string
	partition int

	next    int64 // N of the next decision
	through int64 // next unread offset of contexts
	ids     *table[idMemo]
	ring    []int32 // slots of ids in the order of their rounds
	oldest  int     // in ring, once it is full

	law    []float64
	hashed []byte
	base   []float64 // scratch of holdBack
	prices []float64
	minted []byte

	// Carried returns the bytes that the log has of a context, by which repeats are told; nil: those
	// that came. It is set before anything else is called.
	Carried func(raw []byte) []byte
	// Partitions is how many there are, by which units are told that belong to another; 0: it is not known. It is set
	// before anything else is called, as is Units, which callers that read decisions themselves may share.
	Partitions int
	Units      *Units
	Judges     bool // it decides again what the log has, and who set Units tells them of that
	// the first epoch of the learner at work, for a caller whose replica does not know it; 0: that does
	Since int64
}

type idMemo struct {
	n       int64
	content uint64 // hash of the context's bytes
}

// memo returns what is remembered of a round with a context.
func (d *Decider) memo(n int64, raw []byte) idMemo {
	if d.Carried != nil {
		raw = d.Carried(raw)
	}
	return idMemo{n: n, content: hashContent(d.ids.seed, raw)}
}

// DefaultDedup is how many rounds' ids a decider remembers unless it is told otherwise.
const DefaultDedup = 100_000

// NewDecider returns a decider for one partition that has decided nothing. dedup ≥
// 1 is the number of rounds whose ids it remembers.
func NewDecider(replica *Replica, seed []byte, name string, partition, dedup int) *Decider {
	return &Decider{
		replica: replica, seed: seed, name: name, partition: partition, next: 1,
		ids: newTable[idMemo](TableSeed(seed)), ring: make([]int32, 0, dedup), Units: NewUnits(TableSeed(seed)),
	}
}

// Next returns the N of the next decision.
func (d *Decider) Next() int64 { return d.next }

// ContextsThrough returns the next unread offset of contexts.
func (d *Decider) ContextsThrough() int64 { return d.through }

// Expect makes room for so many decisions that Remember is about to tell of.
func (d *Decider) Expect(n int) { d.ids.reserve(min(n, cap(d.ring))) }

// Remember tells a new decider of a decision in the log's tail, in order.
func (d *Decider) Remember(dec *codec.Decision) {
	d.remember(dec.ID, d.memo(dec.N, dec.Context))
	d.Units.Remember(dec)
	d.next = dec.N + 1
	d.through = dec.ContextsThrough
}

// Resume tells a new decider of a position that lies behind all that it
// remembers: the next N is at least next, contexts were read through the offset.
func (d *Decider) Resume(next, contextsThrough int64) {
	d.next = max(d.next, next)
	d.through = max(d.through, contextsThrough)
}

// Pass notes that contexts before the offset were dealt with without a decision.
func (d *Decider) Pass(contextsThrough int64) { d.through = contextsThrough }

// Find returns the round that has an id, and whether one of those that are remembered has it.
func (d *Decider) Find(id string) (n int64, ok bool) {
	s := d.ids.get(id)
	if s < 0 {
		return 0, false
	}
	return d.ids.value(s).n, true
}

// Decide decides one context and fills dst, whose slices it reuses and whose strings and bytes alias raw and the
// decider's own memory until its next call. id is used when the context itself carries none (a CloudEvents header); if
// that is empty too, one is minted ([AppendMinted]): such a context is never a repeat. dst is only meaningful for
// Decided. The replica must have an epoch.
func (d *Decider) Decide(dst *codec.Decision, raw []byte, id string, src Source) Result {
	if src.Parsed != nil {
		return d.decideParsed(dst, src)
	}
	r := d.replica
	if err := r.reader.parse(raw); err != nil {
		return Result{Verdict: Invalid, Err: err}
	}
	if err := d.checkUnit(r.reader.ctx); err != nil {
		return Result{Verdict: Invalid, Err: err}
	}
	if r.reader.ctx.ID != "" {
		id = r.reader.ctx.ID
	}
	id, s := d.identify(id, src.Offset)
	if err := r.reader.fits(raw, id); err != nil {
		return Result{Verdict: Invalid, ID: id, Err: err}
	}
	memo := d.memo(d.next, raw)
	if s >= 0 {
		was := *d.ids.value(s)
		if was.content == memo.content {
			return Result{Verdict: Duplicate, N: was.n, ID: id}
		}
		return Result{Verdict: Conflict, N: was.n, ID: id}
	}
	d.decide(dst, raw, id, src)
	d.remember(id, memo)
	d.next++
	return Result{Verdict: Decided, N: memo.n, ID: id, Outside: r.reader.outside, Unread: r.reader.unread()}
}

func (d *Decider) decideParsed(dst *codec.Decision, src Source) Result {
	rd := d.replica.reader
	rd.ctx = src.Parsed
	if err := rd.accept(); err != nil {
		return Result{Verdict: Invalid, ID: src.Parsed.ID, Err: err}
	}
	d.decide(dst, nil, src.Parsed.ID, src)
	d.next++
	return Result{Verdict: Decided, N: dst.N, ID: src.Parsed.ID}
}

func (d *Decider) decide(dst *codec.Decision, raw []byte, id string, src Source) {
	r := d.replica
	if src.Offset != RequestSource {
		d.through = src.Through
	}
	in := &r.reader.in
	dst.Unit, dst.First = d.unitOf(), codec.RoundRef{}
	if src.Offset == RequestSource && dst.Unit != "" {
		src.Time = src.Reached
	}
	switch {
	case r.reader.ctx.Assigned.Action != "":
		d.repeat(dst, &r.reader.said)
	case !d.sticks(dst, in, src.Time):
		dst.Gamma = d.decideLaw(dst, in, id)
		dst.Action = learner.Draw(d.law, learner.Uniform(d.seed, d.name, d.partition, d.next, id))
	}
	dst.Partition, dst.N, dst.ID, dst.Epoch = d.partition, d.next, id, r.epoch.Number
	dst.LearnedThrough, dst.Learned = r.through, r.epoch.Learner.Learned()
	dst.ContextsThrough, dst.Source, dst.Time, dst.Era = d.through, src.Offset, src.Time, r.era
	dst.Actions = dst.Actions[:0]
	for i := range in.Actions {
		dst.Actions = append(dst.Actions, in.Actions[i].Name)
	}
	dst.Propensities = append(dst.Propensities[:0], d.law...)
	dst.Context = raw
	if !d.Judges {
		d.Units.Remember(dst)
	}
	if dst.Unit != "" {
		d.Units.forget(r.epoch.Rules.Sticky)
	}
}

// identify returns the id of a context, minted if id is empty, and its slot in the memory,
// -1 if it is free. A minted id, which aliases the decider's memory, is minted anew if it is taken.
func (d *Decider) identify(id string, offset int64) (string, int32) {
	if id != "" {
		return id, d.ids.get(id)
	}
	s := int32(0)
	for try := 0; try < Mints && s >= 0; try++ {
		d.minted = AppendMinted(d.minted[:0], d.seed, d.name, d.partition, d.next, offset, try)
		id = unsafe.String(unsafe.SliceData(d.minted), len(d.minted))
		s = d.ids.get(id)
	}
	return id, s
}

// remember notes the id of a new round and forgets the oldest beyond the limit.
func (d *Decider) remember(id string, memo idMemo) {
	if s := d.ids.get(id); s >= 0 { // only a log with a broken promise holds one id twice
		*d.ids.value(s) = memo
		return
	}
	if len(d.ring) < cap(d.ring) {
		d.ring = append(d.ring, d.ids.put(id, memo))
		return
	}
	d.ids.del(d.ring[d.oldest])
	d.ring[d.oldest] = d.ids.put(id, memo)
	d.oldest = (d.oldest + 1) % len(d.ring)
}

// SeedHash returns what an epoch record says of the secret seed.
func SeedHash(seed []byte) string { return fmt.Sprintf("%x", sha256.Sum256(seed)) }
