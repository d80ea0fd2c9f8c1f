// Package stream is the contract between Hindsight and the logs it runs on.
//
// A log has topics, a topic has partitions, a partition is an ordered sequence
// of records. Offsets grow strictly inside a partition and are positions, never
// arithmetic: they may have gaps, start at 0 or 1, and change when mirrored.
// Records are bytes; this package knows nothing of what is in them.
//
// Backends classify errors and never retry an append by themselves in a way that
// could reorder or duplicate; the caller decides what to do. The packages mem,
// nats and embedded implement the contract; streamtest is its test suite.
package stream

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Header is one key and value beside a record's bytes.
type Header struct{ Key, Value string }

// Plain reports whether every log can keep a header: its key is visible ASCII without a
// colon, its value one line without spaces around.
func (h Header) Plain() bool {
	for i := range len(h.Key) {
		if c := h.Key[i]; c <= ' ' || c > '~' || c == ':' {
			return false
		}
	}
	return h.Key != "" && !strings.ContainsAny(h.Value, "\r\n") && strings.TrimSpace(h.Value) == h.Value
}

// Record is one entry of a partition.
type Record struct {
	Offset  int64  // set by the log
	Time    int64  // append time by the log's clock, ns since 1970; set by the log
	Type    string // the header hindsight-type: "" for data, else a control record
	Key     []byte // may be nil
	Value   []byte
	Headers []Header // other headers, nil if none
}

var (
	// ErrClosed reports use after Close.
	ErrClosed = errors.New("closed")
	// ErrNotFound reports a topic or partition that does not exist.
	ErrNotFound = errors.New("no such topic or partition")
	// ErrFenced reports that another owner has opened the partition: nothing of
	// the failed append is or will be visible, and the appender is dead.
	ErrFenced = errors.New("fenced: another owner has opened this partition")
	// ErrUnknown reports that it is not known whether an append was stored. The
	// appender is dead; open again and read the tail.
	ErrUnknown = errors.New("outcome of the append unknown")
	// ErrFull reports a log out of space or over its limit. Nothing was stored.
	ErrFull = errors.New("log is full")
	// ErrTooLarge reports a record over the log's limit. Nothing was stored; the
	// appender lives on.
	ErrTooLarge = errors.New("record too large")
	// ErrUnfit reports a record that the log cannot keep as it is, such as one with a
	// header that is not [Header.Plain]. Nothing was stored; the appender lives on.
	ErrUnfit = errors.New("record cannot be stored as it is")
	// ErrTruncated reports a read before the first record kept.
	ErrTruncated = errors.New("offset is older than what the log keeps")
	// ErrAhead reports a read position after the end: the log has lost its tail.
	ErrAhead = errors.New("offset is beyond the end of the log")
	// ErrGap reports records missing inside the log.
	ErrGap = errors.New("records are missing inside the log")
	// ErrCorrupt reports records whose checksum or layout in the log's storage is wrong.
	ErrCorrupt = errors.New("corrupt batch of records")
	// ErrUnavailable reports a log that cannot be reached now. Nothing was stored.
	ErrUnavailable = errors.New("log unavailable")
	// ErrPartitions reports a topic that exists with another number of partitions.
	ErrPartitions = errors.New("topic has another number of partitions")
	// ErrNotTrimmable reports a Trim of a topic made without Trimmable.
	ErrNotTrimmable = errors.New("topic was not created trimmable")
)

// Names every backend uses.
const (
	HeaderType  = "hindsight-type"  // carries Record.Type where a log has only headers
	HeaderKey   = "hindsight-key"   // carries Record.Key where a log has no keys
	HeaderOwner = "hindsight-owner" // of an open record: OpenOptions.Owner
	TypeOpen    = "open"            // type of the record that Open writes
)

// Error says which operation failed where. Every error of a backend that has a
// place is one.
type Error struct {
	Op        string // "open", "append", "read", …
	Topic     string
	Partition int
	Offset    int64 // -1 if it does not apply
	Err       error
}

func (e *Error) Error() string {
	if e.Offset < 0 {
		return fmt.Sprintf("%s %s[%d]: %v", e.Op, e.Topic, e.Partition, e.Err)
	}
	return fmt.Sprintf("%s %s[%d]@%d: %v", e.Op, e.Topic, e.Partition, e.Offset, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// IsRetryable reports whether opening or reading again later may succeed
// without anyone mending anything.
func IsRetryable(err error) bool {
	return errors.Is(err, ErrUnknown) || errors.Is(err, ErrUnavailable) || errors.Is(err, ErrFull)
}

// TopicOptions are the limits of a topic's partitions. Zero means no limit.
type TopicOptions struct {
	MaxAge   int64 // ns; records older than this may be dropped
	MaxBytes int64 // of one partition; beyond it the oldest are dropped
	// RejectWhenFull makes appends beyond MaxBytes fail with ErrFull instead of
	// dropping the oldest.
	RejectWhenFull bool
	// Trimmable allows [Log.Trim]; a log then cannot also forbid deletion to others.
	Trimmable bool
}

// AckFunc learns the fate of an append. The log calls it once for each Append
// that returned without an error, in the order of the Appends, from one goroutine
// at a time, possibly before that Append has returned. It must not block, nor
// call the appender. seq counts those Appends of this appender from 1. After the
// first error all later ones fail too, unless it was ErrTooLarge. offset is
// meaningful only if err is nil.
type AckFunc func(seq uint64, offset int64, err error)

// OpenOptions are the arguments of [Log.Open].
type OpenOptions struct {
	Owner string  // who opens, for people: role, host, process
	Ack   AckFunc // nil: only Flush tells
	Value []byte  // payload of the open record
}

// Record returns the open record.
func (o *OpenOptions) Record() *Record {
	r := &Record{Type: TypeOpen, Value: o.Value}
	if o.Owner != "" {
		r.Headers = []Header{{Key: HeaderOwner, Value: o.Owner}}
	}
	return r
}

// Tail is what an Open found: all records before Next are final, no earlier
// owner can add to them. The open record itself lies at Open, the last one before
// Next.
type Tail struct {
	First, Open, Next int64
}

// Log is a set of topics. It is safe for concurrent use.
type Log interface {
	// Create makes a topic with the given number of partitions, or checks that
	// it exists with that number; limits of an existing topic are left alone.
	Create(ctx context.Context, topic string, partitions int, o TopicOptions) error
	// Partitions returns the number of partitions of a topic, or ErrNotFound.
	Partitions(ctx context.Context, topic string) (int, error)
	// Open makes the caller the one owner of a partition: it appends a control
	// record of type "open" and from its acknowledgement on every append of an
	// earlier owner fails with ErrFenced and is never visible. Of several that open
	// at once, the last to be stored wins.
	Open(ctx context.Context, topic string, partition int, o OpenOptions) (Appender, Tail, error)
	// Writer returns an appender without a fence, for topics with many writers.
	Writer(ctx context.Context, topic string, partition int, ack AckFunc) (Appender, error)
	// Read starts reading at the first record with an offset of at least from. It
	// fails with ErrTruncated if from is before the first record kept, unless from is
	// Earliest, and with ErrAhead if from is after the next offset to be written.
	Read(ctx context.Context, topic string, partition int, from int64) (Reader, error)
	// Bounds returns the offset of the first record kept and the next offset to be
	// written; they are equal when the partition is empty. It is fetched anew each time. A record
	// that got its time before the call is before next, and can be read: what is not there
	// then gets a later time.
	Bounds(ctx context.Context, topic string, partition int) (first, next int64, err error)
	// Trim drops the records with offsets below before. Only for topics whose
	// records may be dropped by their writers (snapshots).
	Trim(ctx context.Context, topic string, partition int, before int64) error
	// Close releases everything; open appenders and readers fail with ErrClosed.
	Close() error
}

// Holder is implemented by logs that may know that nothing can be appended, or that a partition
// cannot be read on, until something is mended.
type Holder interface {
	// Held returns why not, nil if nothing is known of it.
	Held() error
}

// Getter is implemented by logs that read one record at less cost than a reader does.
type Getter interface {
	// Get returns the bytes of one record. It may fail where a reader would not: see [Get].
	Get(ctx context.Context, topic string, partition int, offset int64) (value []byte, err error)
}

// Measured is implemented by logs that may know the limit of their store.
type Measured interface {
	// Fill returns how many bytes topics hold, and how many the whole store may, 0 if that is
	// not known.
	Fill(ctx context.Context, topics ...string) (held, limit int64, err error)
}

// Lister is implemented by logs that can say which topics they have.
type Lister interface {
	// Topics returns the names of all topics, in byte order.
	Topics(ctx context.Context) ([]string, error)
}

// Reporter is implemented by logs that show people how far their readers are.
type Reporter interface {
	// Report notes that what lies before an offset has been read. It is for information.
	Report(topic string, partition int, next int64)
}

// Earliest is the position of the first record that is kept.
const Earliest int64 = -1

// Appender adds records to one partition, pipelined: Append returns when the
// record is on its way, the AckFunc tells when it is stored. Not safe for
// concurrent use.
type Appender interface {
	// Append sends one record (Type, Key, Value, Headers) and returns its sequence
	// number. It blocks while too many are unacknowledged. The record's bytes may be
	// reused when it returns. After a failure it returns that error at once. If it
	// returns an error, the record used no number, nothing of it is stored, and no
	// AckFunc is called for it; the appender lives on after ErrTooLarge,
	// ErrUnfit and the context's own error.
	Append(ctx context.Context, r *Record) (seq uint64, err error)
	// Flush waits until everything sent is acknowledged and returns the first error.
	Flush(ctx context.Context) error
	// Close stops without waiting; what was not acknowledged is unknown. No AckFunc
	// is called after it returns.
	Close() error
}

// Windowed is implemented by appenders that take only so many records at once.
type Windowed interface {
	// Window returns how many may be unacknowledged. With so many on their way, Append
	// blocks until half of them are acknowledged.
	Window() int
}

// Reader reads one partition in order. Not safe for concurrent use.
type Reader interface {
	// Next appends at least one record to dst, waiting for it, or fails. It may return none, but
	// a later Position, where it has passed what holds none: a log's markers, and what was aborted. The records'
	// bytes are valid until the next call of Next. Records that the log drops while
	// the reader is still before them are told as ErrTruncated, when the next record
	// arrives at the latest. After an error that IsRetryable, and after the context's
	// own, Next may be called again; nothing is skipped.
	Next(ctx context.Context, dst []Record) ([]Record, error)
	// Position returns the offset up to which everything there is has been returned:
	// the lowest that a later Next may return. It passes holes in the numbering as far as
	// the log knows them, so that reading to a next of Bounds ends at Position ≥ next.
	Position() int64
	// Close releases the reader; a waiting Next fails with ErrClosed.
	Close() error
}

// Message is one request on the request-reply side.
type Message struct {
	Data    []byte // the handler may keep it
	Headers []Header
	From    string // the same for requests of one client's connection, as far as the bus can tell; "" if it cannot
	// Respond sends the reply once; it may be called from any goroutine, also after the
	// handler returned, and data may be reused when it returns. It returns ErrTooLarge if
	// the reply is too large: a smaller one may be tried then.
	Respond func(data []byte, headers ...Header) error
}

// ErrNoResponder reports a request that nobody is there to answer.
var ErrNoResponder = errors.New("no responder")

// Refuser is a [Bus] that does not hand over requests whose reply it would not send.
type Refuser interface {
	// OnRefused makes f be called with the subject of each such request, from any goroutine.
	// f must not block.
	OnRefused(f func(subject string))
}

// Bus carries requests and replies.
type Bus interface {
	// Serve calls h for each request on subject, one call at a time; one of all
	// servers with the same queue name gets it. h must not block. stop drains: requests
	// that had arrived are still handed to h, and it returns when no more calls of h
	// will come. stop must not be called from h.
	Serve(subject, queue string, h func(Message)) (stop func(), err error)
	// Request sends one request and waits for its reply, ErrNoResponder at once if
	// nobody serves the subject, ErrUnavailable without a connection or when that
	// breaks before the reply (whether the request arrived is then unknown).
	Request(ctx context.Context, subject string, data []byte, headers ...Header) (reply []byte,
		replyHeaders []Header, err error)
}
