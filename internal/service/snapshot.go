package service

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// state is what a snapshot holds: the learner, and all that is needed to go on from
// there when the feedback before it is gone.
type state struct {
	through int64   // feedbacks learned
	era     int64   // of the feedback log then; in the records, not in bytes
	rounds  []int64 // per partition: the highest round whose feedback was seen
	rec     codec.Epoch
	files   map[string][]byte
	learner []byte // the end of bytes
	bytes   []byte
}

// mostSnapshot is more than a snapshot has: the memory of a learner is bounded.
const mostSnapshot = 2 << 30

// keepSnapshots is how many complete snapshots stay in the log.
const keepSnapshots = 8

// leftBehind counts bytes of snapshots that went through memory, and frees what that left
// behind whenever it is much. The collector would wait for it until all that it finds, a
// snapshot and the learner, has doubled.
type leftBehind int

const muchLeft = 64 << 20

func (l *leftBehind) add(n int) {
	if *l += leftBehind(n); *l >= muchLeft {
		runtime.GC()
		*l = 0
	}
}

func appendBlob(dst, b []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(b)))
	return append(dst, b...)
}

func cutBlob(b []byte) (blob, rest []byte, err error) {
	n, k := binary.Uvarint(b)
	if k <= 0 || n > uint64(len(b)-k) {
		return nil, nil, fmt.Errorf("snapshot: %w", codec.ErrCorrupt)
	}
	return b[k : k+int(n)], b[k+int(n):], nil
}

// encode fills in the state's bytes: version, through, rounds, epoch record, the files in its
// order, the learner. That one may be as large as all other memory of the process: nothing of
// it is copied.
func (s *state) encode(appendLearner func([]byte) ([]byte, error)) error {
	head := binary.AppendUvarint(nil, codec.Version)
	head = binary.AppendUvarint(head, uint64(s.through))
	head = binary.AppendUvarint(head, uint64(len(s.rounds)))
	for _, n := range s.rounds {
		head = binary.AppendUvarint(head, uint64(n))
	}
	head = appendBlob(head, codec.AppendEpoch(nil, &s.rec))
	for _, f := range s.rec.Files {
		head = appendBlob(head, s.files[f.Name])
	}
	room := len(head) + binary.MaxVarintLen64
	b, err := appendLearner(make([]byte, room))
	if err != nil {
		return err
	}
	s.learner = b[room:]
	head = binary.AppendUvarint(head, uint64(len(s.learner)))
	s.bytes = b[room-len(head):]
	copy(s.bytes, head)
	return nil
}

func parseState(b []byte) (s state, err error) {
	var head [3]uint64
	for i := range head {
		v, k := binary.Uvarint(b)
		if k <= 0 {
			return s, fmt.Errorf("snapshot: %w", codec.ErrCorrupt)
		}
		head[i], b = v, b[k:]
	}
	if head[0] > codec.Newest {
		return s, fmt.Errorf("snapshot: %w: version %d, and this one reads versions up to %d", codec.ErrVersion, head[0], codec.Newest)
	}
	if s.through = int64(head[1]); head[2] > uint64(len(b)) {
		return s, fmt.Errorf("snapshot: %w", codec.ErrCorrupt)
	}
	for range head[2] {
		v, k := binary.Uvarint(b)
		if k <= 0 {
			return s, fmt.Errorf("snapshot: %w", codec.ErrCorrupt)
		}
		s.rounds, b = append(s.rounds, int64(v)), b[k:]
	}
	var blob []byte
	if blob, b, err = cutBlob(b); err != nil {
		return s, err
	}
	if s.rec, err = codec.ParseEpoch(blob); err != nil {
		return s, err
	}
	s.files = map[string][]byte{}
	for _, f := range s.rec.Files {
		if blob, b, err = cutBlob(b); err != nil {
			return s, err
		}
		s.files[f.Name] = bytes.Clone(blob) // they stay, and the learner's bytes do not
	}
	s.learner, _, err = cutBlob(b)
	return s, err
}

// chunks cuts a snapshot into records of size bytes.
func chunks(s *state, feedbackFrom int64, nonce string, size int) []codec.Snapshot {
	b := s.bytes
	parts := max(1, (len(b)+size-1)/size)
	sum := hexSum(b)
	out := make([]codec.Snapshot, parts)
	for i := range out {
		out[i] = codec.Snapshot{V: codec.Version, Epoch: s.rec.Epoch, LearnedThrough: s.through, FeedbackFrom: feedbackFrom,
			Nonce: nonce, Part: i, Parts: parts, SHA256: sum, Bytes: b[i*size : min(len(b), (i+1)*size)], Era: s.era}
	}
	return out
}

// stored is a complete snapshot of the log.
type stored struct {
	state        state
	bytes        []byte
	offset       int64 // of its first chunk
	time         int64 // log time of its last
	feedbackFrom int64
}

// errBadSnapshot reports a snapshot whose bytes do not have their SHA-256.
var errBadSnapshot = errors.New("damaged snapshot")

// readSnapshots calls f for each complete snapshot kept, in the order in which they
// were completed; err tells of a damaged or void one. Snapshots without all their
// chunks are passed over.
// The last mark says which are void.
func readSnapshots(ctx context.Context, log stream.Log, topic string, last *codec.FeedbackMark, f func(s *stored, err error) error) error {
	_, end, err := log.Bounds(ctx, topic, 0)
	if err != nil {
		return err
	}
	type partial struct {
		bytes  []byte
		next   int
		offset int64
	}
	open := map[string]*partial{}
	var left leftBehind
	return scan(ctx, log, topic, 0, stream.Earliest, end, func(r *stream.Record) error {
		if r.Type != "" {
			return nil
		}
		c, err := codec.ParseSnapshot(r.Value)
		if err != nil {
			return f(&stored{offset: r.Offset}, err)
		}
		key := fmt.Sprint(c.Epoch, "/", c.LearnedThrough, "/", c.Nonce)
		p := open[key]
		if c.Part == 0 {
			parts := max(0, min(c.Parts, mostSnapshot/(len(c.Bytes)+1)))
			p = &partial{offset: r.Offset, bytes: make([]byte, 0, parts*len(c.Bytes))}
			open[key] = p
		}
		if p == nil || c.Part != p.next {
			delete(open, key)
			return nil
		}
		p.bytes = append(p.bytes, c.Bytes...)
		left.add(len(c.Bytes))
		if p.next++; p.next < c.Parts {
			return nil
		}
		delete(open, key)
		s := &stored{bytes: p.bytes, offset: p.offset, time: r.Time, feedbackFrom: c.FeedbackFrom}
		if got := hexSum(p.bytes); got != c.SHA256 {
			return f(s, fmt.Errorf("after feedback %d: %w: SHA-256 is %s, its record says %s", c.LearnedThrough, errBadSnapshot, got, c.SHA256))
		}
		s.state, err = parseState(p.bytes)
		s.state.era = c.Era
		if err == nil && (slices.Contains(last.Void, codec.SnapshotRef{SHA256: c.SHA256}) || last.Voids(c.Era, c.LearnedThrough) ||
			c.Era < last.Era && !knows(last, c.Epoch)) {
			err = errVoid
		}
		return f(s, err)
	})
}
