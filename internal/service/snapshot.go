package service

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// state is what a snapshot holds: the learner, and all that is needed to go on from
// there when the feedback before it is gone.
type state struct {
	through int64   // feedbacks learned
	rounds  []int64 // per partition: the highest round whose feedback was seen
	rec     codec.Epoch
	files   map[string][]byte
	learner []byte
}

// keepSnapshots is how many complete snapshots stay in the log.
const keepSnapshots = 8

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

// append appends the state's bytes: version, through, rounds, epoch record, the
// files in its order, the learner.
func (s *state) append(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, codec.Version)
	dst = binary.AppendUvarint(dst, uint64(s.through))
	dst = binary.AppendUvarint(dst, uint64(len(s.rounds)))
	for _, n := range s.rounds {
		dst = binary.AppendUvarint(dst, uint64(n))
	}
	dst = appendBlob(dst, codec.AppendEpoch(nil, &s.rec))
	for _, f := range s.rec.Files {
		dst = appendBlob(dst, s.files[f.Name])
	}
	return appendBlob(dst, s.learner)
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
		if s.files[f.Name], b, err = cutBlob(b); err != nil {
			return s, err
		}
	}
	s.learner, _, err = cutBlob(b)
	return s, err
}

// chunks cuts a snapshot into records of size bytes.
func chunks(b []byte, s *state, feedbackFrom int64, nonce string, size int) []codec.Snapshot {
	parts := max(1, (len(b)+size-1)/size)
	sum := hexSum(b)
	out := make([]codec.Snapshot, parts)
	for i := range out {
		out[i] = codec.Snapshot{V: codec.Version, Epoch: s.rec.Epoch, LearnedThrough: s.through, FeedbackFrom: feedbackFrom,
			Nonce: nonce, Part: i, Parts: parts, SHA256: sum, Bytes: b[i*size : min(len(b), (i+1)*size)]}
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
// void names those that are void.
func readSnapshots(ctx context.Context, log stream.Log, topic string, void []codec.SnapshotRef, f func(s *stored, err error) error) error {
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
			p = &partial{offset: r.Offset}
			open[key] = p
		}
		if p == nil || c.Part != p.next {
			delete(open, key)
			return nil
		}
		p.bytes = append(p.bytes, c.Bytes...)
		if p.next++; p.next < c.Parts {
			return nil
		}
		delete(open, key)
		s := &stored{bytes: p.bytes, offset: p.offset, time: r.Time, feedbackFrom: c.FeedbackFrom}
		if got := hexSum(p.bytes); got != c.SHA256 {
			return f(s, fmt.Errorf("after feedback %d: %w: SHA-256 is %s, its record says %s", c.LearnedThrough, errBadSnapshot, got, c.SHA256))
		}
		s.state, err = parseState(p.bytes)
		if err == nil && slices.Contains(void, codec.SnapshotRef{SHA256: c.SHA256}) {
			err = errVoid
		}
		return f(s, err)
	})
}
