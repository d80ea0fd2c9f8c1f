package codec

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/vmihailenco/msgpack/v5"
)

// AppendEpoch appends x as MessagePack, as all of these do, in this build's
// version whatever x.V says.
func AppendEpoch(dst []byte, x *Epoch) []byte {
	y := *x
	y.V = epochVersion(x)
	return appendRare(dst, &y)
}

// ParseEpoch parses an epoch. It refuses, as all of these do, a version later
// than [Newest], a missing, repeated or mistyped key, bytes before or behind, and
// bytes that do not have their checksum. The result shares no memory with b.
func ParseEpoch(b []byte) (x Epoch, err error) {
	err = parseRare("epoch", epochShape, b, &x)
	return x, err
}

// AppendClass appends one piece of a class file.
func AppendClass(dst []byte, x *Class) []byte {
	y := *x
	y.V = Version
	return appendRare(dst, &y)
}

// ParseClass parses one piece of a class file.
func ParseClass(b []byte) (x Class, err error) {
	err = parseRare("class", classShape, b, &x)
	return x, err
}

// AppendFeedbackMark appends a mark of the joiner.
func AppendFeedbackMark(dst []byte, x *FeedbackMark) []byte {
	y := x.pack()
	return appendRare(dst, &y)
}

// ParseFeedbackMark parses a mark of the joiner.
func ParseFeedbackMark(b []byte) (x FeedbackMark, err error) {
	if err = parseRare("feedback mark", feedbackMarkShape, b, &x); err == nil {
		err = x.unpack()
	}
	return x, err
}

// AppendDecisionMark appends a mark of a decider.
func AppendDecisionMark(dst []byte, x *DecisionMark) []byte {
	y := *x
	y.V = Version
	return appendRare(dst, &y)
}

// ParseDecisionMark parses a mark of a decider.
func ParseDecisionMark(b []byte) (x DecisionMark, err error) {
	err = parseRare("decision mark", decisionMarkShape, b, &x)
	return x, err
}

// AppendSnapshot appends one chunk of a snapshot.
func AppendSnapshot(dst []byte, x *Snapshot) []byte {
	y := *x
	y.V = Version
	return appendRare(dst, &y)
}

// ParseSnapshot parses one chunk of a snapshot.
func ParseSnapshot(b []byte) (x Snapshot, err error) {
	err = parseRare("snapshot", snapshotShape, b, &x)
	return x, err
}

// AppendReject appends a reject.
func AppendReject(dst []byte, x *Reject) []byte {
	y := *x
	y.V = Version
	return appendRare(dst, &y)
}

// ParseReject parses a reject.
func ParseReject(b []byte) (x Reject, err error) {
	err = parseRare("reject", rejectShape, b, &x)
	return x, err
}

// sink is an io.Writer that appends.
type sink struct{ b []byte }

func (s *sink) Write(p []byte) (int, error) {
	s.b = append(s.b, p...)
	return len(p), nil
}

// Rare records end with the key "crc": the CRC-32C of all bytes of the record
// before that key, always as five bytes. Nothing else vouches for them: what is in
// a mark or a reject cannot be told from other records to the bit, as a decision can.
const (
	crcKey   = "\xa3crc\xce"
	crcBytes = len(crcKey) + 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func appendRare(dst []byte, x any) []byte {
	from := len(dst)
	s := sink{b: dst}
	e := msgpack.NewEncoder(&s)
	e.UseCompactInts(true)
	if err := e.Encode(x); err != nil {
		// Structs of numbers, texts, bytes and lists of such can be encoded, and the
		// sink takes all.
		panic(fmt.Sprintf("codec: encoding %T: %v", x, err))
	}
	s.b[from]++ // one more key in a map of less than 15: its head is one byte
	sum := crc32.Checksum(s.b[from:], castagnoli)
	return binary.BigEndian.AppendUint32(append(s.b, crcKey...), sum)
}

// parseRare checks b against the shape first, so that what the library then reads
// is of the right types, nested as far as it should be and no longer than it says.
func parseRare(event string, want shape, b []byte, x any) error {
	r := reader{b: b}
	r.shape(want)
	if err := r.end(event); err != nil {
		return err
	}
	if err := checkCRC(b); err != nil {
		return wrong(event, "crc", err)
	}
	if err := msgpack.Unmarshal(b, x); err != nil {
		return wrong(event, "", fmt.Errorf("%w: %w", ErrCorrupt, err))
	}
	return nil
}

func checkCRC(b []byte) error {
	body := b[:max(0, len(b)-crcBytes)]
	tail := b[len(body):]
	if len(tail) < crcBytes || string(tail[:len(crcKey)]) != crcKey {
		return errNoCRC
	}
	if binary.BigEndian.Uint32(tail[len(crcKey):]) != crc32.Checksum(body, castagnoli) {
		return errCRC
	}
	return nil
}
