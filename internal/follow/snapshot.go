package follow

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"hindsight/internal/join"
	"hindsight/pkg/codec"
	"hindsight/pkg/oracle"
	"hindsight/pkg/stream"
)

// Snapshot is the learner, and all that is needed to go on from there when the feedback before it is gone.
type Snapshot struct {
	Through int64   // feedbacks learned
	Rounds  []int64 // per partition: the highest round whose feedback was seen
	Rec     codec.Epoch
	Files   map[string][]byte
	Bytes   []byte // all of the above, and the learner
	learner []byte // the end of Bytes

	Era          int64 // of the feedback log then
	FeedbackFrom int64 // offset from which a restart reads feedback

	Offset int64 // of its first record; 0 where it has not been read from the log
	Time   int64 // log time of its last record
}

// mostSnapshot is more than a snapshot has: the memory of a learner is bounded.
const mostSnapshot = 2 << 30

// keepSnapshots is how many complete snapshots stay in the log.
const keepSnapshots = 8

// leftBehind counts bytes of snapshots that went through memory, and frees what that left behind whenever it is much.
// The collector would wait for it until all that it finds, a snapshot and the learner, has doubled.
type leftBehind int

const muchLeft = 64 << 20

// FreeSnapshot frees what a snapshot of n bytes left behind in memory, if that is much.
func FreeSnapshot(n int) { new(leftBehind).add(n) }

func (l *leftBehind) add(n int) {
	if *l += leftBehind(n); *l >= muchLeft {
		runtime.GC()
		*l = 0
	}
}

// code writes what comes before the learner's bytes, or reads it: version, through, rounds, epoch record, the files in
// its order.
func (s *Snapshot) code(c *oracle.Coder) (err error) {
	version := uint64(codec.Version)
	if c.Uint(&version); version > codec.Newest {
		return fmt.Errorf("snapshot: %w: version %d, and this one reads versions up to %d", codec.ErrVersion, version,
			codec.Newest)
	}
	c.Ints(&s.Through)
	if n := c.Count(len(s.Rounds), 1); c.Reading() {
		s.Rounds = make([]int64, n)
	}
	for i := range s.Rounds {
		c.Ints(&s.Rounds[i])
	}
	if !c.Reading() {
		c.Blob(codec.AppendEpoch(nil, &s.Rec))
	} else if s.Rec, err = codec.ParseEpoch(c.Blob(nil)); err != nil {
		return err
	}
	for _, f := range s.Rec.Files {
		if b := c.Blob(s.Files[f.Name]); c.Reading() {
			s.Files[f.Name] = bytes.Clone(b) // they stay, and the learner's bytes do not
		}
	}
	return nil
}

// encode fills in the state's bytes. The learner's may be as large as all other memory of the process: nothing of them
// is copied.
func (s *Snapshot) encode(appendLearner func([]byte) ([]byte, error)) error {
	c := oracle.NewWriter(nil)
	if err := s.code(&c); err != nil {
		return err
	}
	room := len(c.Bytes()) + binary.MaxVarintLen64
	b, err := appendLearner(make([]byte, room))
	if err != nil {
		return err
	}
	s.learner = b[room:]
	head := binary.AppendUvarint(c.Bytes(), uint64(len(s.learner)))
	s.Bytes = b[room-len(head):]
	copy(s.Bytes, head)
	return nil
}

func parseSnapshot(b []byte) (s Snapshot, err error) {
	s.Bytes, s.Files = b, map[string][]byte{}
	c := oracle.NewReader(b, "snapshot: ", codec.ErrCorrupt)
	if err = s.code(&c); err != nil {
		return s, err
	}
	if s.learner = c.Blob(nil); !c.Must(true, "the bytes end too early") {
		err = c.Err()
	}
	return s, err
}

// chunks cuts a snapshot into records of size bytes.
func chunks(s *Snapshot, nonce string, size int) []codec.Snapshot {
	b := s.Bytes
	parts := max(1, (len(b)+size-1)/size)
	sum := s.SHA256()
	out := make([]codec.Snapshot, parts)
	for i := range out {
		out[i] = codec.Snapshot{V: codec.Version, Epoch: s.Rec.Epoch, LearnedThrough: s.Through,
			FeedbackFrom: s.FeedbackFrom,
			Nonce:        nonce, Part: i, Parts: parts, SHA256: sum, Bytes: b[i*size : min(len(b), (i+1)*size)],
			Era: s.Era}
	}
	return out
}

// SHA256 returns the hash of the snapshot's bytes, in hexadecimal.
func (s *Snapshot) SHA256() string { return hexSum(s.Bytes) }

// errBadSnapshot reports a snapshot whose bytes do not have their SHA-256.
var errBadSnapshot = errors.New("damaged snapshot")

// ErrVoid reports a snapshot whose feedback was lost and may have been given anew, otherwise.
var ErrVoid = errors.New("the feedback log had lost its tail behind it")

// ReadSnapshots calls f for each complete snapshot kept that is not void; err tells of a damaged one,
// of which only the offset is known.
func ReadSnapshots(ctx context.Context, log stream.Log, topics join.Topics,
	f func(s *Snapshot, err error) error,
) error {
	_, m, err := join.LastMark(ctx, log, topics.Feedback)
	if err != nil {
		return err
	}
	return readSnapshots(ctx, log, topics.Snapshots, m, func(s *Snapshot, err error) error {
		if errors.Is(err, ErrVoid) {
			return nil
		}
		return f(s, err)
	})
}

// readSnapshots calls f for each complete snapshot kept, in the order in which they
// were completed; err tells of a damaged or void one. Snapshots without all their
// chunks are passed over. The last mark says which are void; it may be nil.
func readSnapshots(ctx context.Context, log stream.Log, topic string, last *codec.FeedbackMark,
	f func(s *Snapshot, err error) error,
) error {
	_, end, err := log.Bounds(ctx, topic, 0)
	if err != nil {
		return err
	}
	if last == nil {
		last = new(codec.FeedbackMark)
	}
	type partial struct {
		bytes  []byte
		next   int
		offset int64
	}
	open := map[string]*partial{}
	var left leftBehind
	return stream.Scan(ctx, log, topic, 0, stream.Earliest, end, func(r *stream.Record) error {
		if r.Type != "" {
			return nil
		}
		c, err := codec.ParseSnapshot(r.Value)
		if err != nil {
			return f(&Snapshot{Offset: r.Offset}, err)
		}
		key := fmt.Sprint(c.Epoch, "/", c.LearnedThrough, "/", c.Nonce)
		p := open[key]
		if c.Part == 0 {
			parts := max(0, min(c.Parts, mostSnapshot/(len(c.Bytes)+1)))
			p = &partial{offset: r.Offset, bytes: make([]byte, 0, parts*len(c.Bytes))}
			open[key] = p
		}
		if p == nil || c.Part != p.next { // of one whose first part is gone, or a part that came twice
			return nil
		}
		p.bytes = append(p.bytes, c.Bytes...)
		left.add(len(c.Bytes))
		if p.next++; p.next < c.Parts {
			return nil
		}
		delete(open, key)
		if got := hexSum(p.bytes); got != c.SHA256 {
			return f(&Snapshot{Offset: p.offset}, fmt.Errorf("after feedback %d: %w: SHA-256 is %s, its record says %s",
				c.LearnedThrough, errBadSnapshot, got, c.SHA256))
		}
		s, err := parseSnapshot(p.bytes)
		if err == nil && (s.Through != c.LearnedThrough || s.Rec.Epoch != c.Epoch) {
			return f(&Snapshot{Offset: p.offset}, fmt.Errorf("%w: of feedback %d in epoch %d, its record says %d in %d",
				errBadSnapshot, s.Through, s.Rec.Epoch, c.LearnedThrough, c.Epoch))
		}
		s.Era, s.FeedbackFrom, s.Offset, s.Time = c.Era, c.FeedbackFrom, p.offset, r.Time
		void := slices.Contains(last.Void, codec.SnapshotRef{SHA256: c.SHA256}) || last.Voids(c.Era,
			c.LearnedThrough) || c.Era < last.Era && !knows(last, c.Epoch)
		if err == nil && void {
			err = ErrVoid
		}
		return f(&s, err)
	})
}
