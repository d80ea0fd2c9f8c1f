package logs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"

	"hindsight/internal/loop"
	"hindsight/internal/recent"
	"hindsight/internal/scan"
	"hindsight/pkg/codec"
)

// Options say how a log is read.
type Options struct {
	Format  string    // "": by the content of each file; else a name of [Formats], or of a log in CSV
	Strict  bool      // stop at the first malformed record
	Rejects io.Writer // gets a [Reject] a line for every record that is not handed on; nil: nobody does
	Dedup   int       // ids of events, and as many observations, remembered to find repeats; 0: [recent.DefaultIDs]
	Stdin   io.Reader // what the path - reads; nil: the process's
	// Inactive hands on events that were not activated, as events with the flag
	// [Inactive]; they are counted as skipped all the same. Without it they are dropped.
	Inactive bool

	Mapping Mapping    // the columns of a log in CSV; zero: they are not named
	Range   loop.Range // in which outcomes of a log in CSV must lie; zero: any
	Actions []string   // that a log in CSV whose columns are named may have; nil: any
	// Long reports whether a feature may be a text of any length, or a vector; nil: none may. A column of such
	// texts is one that the mapping declares as NAME:ngrams, too.
	Long func(name string) bool
	// Keys of a line of JSON with arms are features of its context, if the line has no features.
	Keys []string
	// Labelled says that a CSV whose columns nobody named is a labelled one; without it
	// that is an error, for its rows are no decisions.
	Labelled bool
	// Typed says that a column of features is of numbers only if every cell is one; the
	// log is read twice. Without it each cell has its own type.
	Typed bool

	From, To int64 // of topics: log times in between which decisions are read; To 0: all are

	types map[string]columnType // of columns whose names say none
	items [][]codec.Feature     // of Open Bandit data; nil: not known
}

// Reader streams the records of a log: of a file, of all files of a folder, or of standard input.
type Reader struct {
	o     Options
	paths []string
	open  func() error // the next of paths
	table *table       // of CSV; nil: events

	account Account
	rejects *rejects

	events *recent.Memory[int32]    // that came: id → how many were handed on before; [unhanded]
	said   *recent.Memory[struct{}] // observations that came
	handed int32                    // events
	key    []byte

	in  *input
	dec decoder
	err error // for good
}

// decoder reads the records of one file.
type decoder interface {
	// next reads the next record into r, which was reset, and says what it is: IsEvent, IsDangling or IsSkipped
	// with a reason. An error says what is wrong with the record, at Line unless it is a [scan.LineError]; one
	// that [ended] wraps ends the file: io.EOF at its end.
	next(r *Record) (class class, reason string, err error)
	// raw returns the bytes of the record last read, for the file of rejects.
	raw() []byte
}

// Open opens a log: a file, a folder, or [Stdin]. The error says what is wrong with it.
func Open(path string, o Options) (*Reader, error) {
	if o.Stdin == nil {
		o.Stdin = os.Stdin
	}
	if o.Format == "" && !o.Mapping.IsZero() {
		o.Format = Bandit
	}
	if o.Format == Bandit {
		if err := o.Mapping.Validate(); err != nil {
			return nil, err
		}
	}
	if o.Format != "" && csvFormatOf(o.Format) == nil && !slices.Contains(Formats(), o.Format) {
		return nil, fmt.Errorf("format %q: expected one of %s", o.Format, FormatNames())
	}
	if path != Stdin && (o.Format == OpenBandit || o.Format == "" && isOpenBanditLog(path)) {
		var err error
		if path, err = o.openBandit(path); err != nil {
			return nil, err
		}
	}
	if o.Typed && o.types == nil {
		if err := o.survey(path); err != nil {
			return nil, err
		}
	}
	paths, err := Files(path)
	if err != nil {
		return nil, fmt.Errorf("log: %w", err)
	}
	r := newReader(o, "")
	r.paths, r.open = paths, r.openFile
	if err := r.open(); err != nil {
		return nil, err
	}
	return r, nil
}

// openBandit finds the file of impressions, and reads that of the items beside it.
func (o *Options) openBandit(path string) (string, error) {
	path, file, err := findOpenBandit(path)
	if err == nil && file != "" {
		o.items, err = readItems(file)
	}
	o.Format = OpenBandit
	return path, err
}

// survey finds the types of columns that say none. Standard input is copied, to be read twice.
func (o *Options) survey(path string) (err error) {
	m := o.Mapping
	if o.Format == itemRows {
		m = itemMapping
	}
	if !m.untyped() {
		return nil
	}
	if path == Stdin {
		f, err := unnamed("hindsight-*.csv", o.Stdin)
		if err != nil {
			return err
		}
		o.Stdin = f
		defer f.Seek(0, io.SeekStart)
	}
	o.types, err = survey(path, *o)
	return err
}

func newReader(o Options, format string) *Reader {
	return &Reader{o: o, account: Account{Format: format}, rejects: newRejects(o.Rejects),
		events: recent.New[int32](o.Dedup), said: recent.New[struct{}](o.Dedup)}
}

// Schema returns what the rows of a log in CSV have, nil of another.
func (r *Reader) Schema() *Schema {
	if r.table == nil {
		return nil
	}
	return &r.table.Schema
}

func (r *Reader) openFile() error {
	in, err := openInput(r.paths[0], r.o.Stdin)
	if err != nil {
		return fmt.Errorf("log: %w", err)
	}
	r.paths = r.paths[1:]
	dec, format, err := r.newDecoder(in)
	if errors.Is(err, errEmpty) && (len(r.paths) > 0 || r.account.Format != "") { // of a folder with others
		in.close()
		if r.account.Files++; len(r.paths) == 0 {
			return io.EOF
		}
		return r.open()
	}
	if err != nil {
		in.close()
		return err
	}
	r.in, r.dec = in, dec
	a := &r.account
	a.Files++
	switch {
	case a.Format == "" || a.Format == format:
		a.Format = format
	default:
		a.Format = "several"
	}
	return nil
}

// Account returns what became of the records read so far.
func (r *Reader) Account() *Account {
	a := r.account
	a.Forgotten = r.events.Forgot() || r.said.Forgot()
	if r.in != nil {
		a.Bytes += r.in.bytes
	}
	return &a
}

// Close closes the log. It does not close what Options name, but writes all rejects.
func (r *Reader) Close() error {
	if r.in != nil {
		r.account.Bytes += r.in.bytes
		r.in.close()
		r.in, r.dec = nil, nil
	}
	if r.err == nil {
		r.err = io.EOF
	}
	return r.rejects.flush()
}

// Next reads the next event or outcome. The error is io.EOF at the end, a [*LineError]
// where Strict stops, or says that the file cannot be read on.
func (r *Reader) Next(rec *Record) error {
	for r.err == nil {
		rec.reset()
		rec.long = r.o.Long
		class, reason, err := r.dec.next(rec)
		var bad *scan.LineError
		if end, ok := err.(ended); ok && errors.Is(end.error, io.EOF) {
			r.nextFile()
			continue
		} else if ok {
			r.err = fmt.Errorf("%s: %w", r.in.name, end.error)
			continue
		} else if err != nil {
			if class, bad = isMalformed, asLineError(err); bad == nil {
				bad = &scan.LineError{Line: rec.Line, Msg: err.Error()}
			}
		}
		if rec.File == "" {
			rec.File = r.in.name
		}
		if r.file(rec, class, reason, bad) {
			return nil
		}
	}
	return r.err
}

// Each calls f with every event and outcome that is left. The error is f's, or that of [Reader.Next] but for the end.
func (r *Reader) Each(f func(rec *Record) error) error {
	var rec Record
	for {
		err := r.Next(&rec)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = f(&rec)
		}
		if err != nil {
			return err
		}
	}
}

// asLineError returns the [scan.LineError] that err is, or nil.
func asLineError(err error) *scan.LineError {
	var bad *scan.LineError
	errors.As(err, &bad)
	return bad
}

// ended is an error after which a file cannot be read on.
type ended struct{ error }

// lines reads a text line by line.
type lines struct {
	*scan.Lines
	line []byte
}

func (l *lines) raw() []byte { return l.line }

// read reads the next line. One that is blank, of which ok is false, is skipped for that reason.
func (l *lines) read(r *Record) (ok bool, class class, reason string, err error) {
	var tooLong bool
	if l.line, tooLong, err = l.Next(); err != nil {
		return false, 0, "", ended{err}
	}
	switch r.Line = l.N; {
	case tooLong:
		return false, 0, "", errors.New(scan.ErrTooLong)
	case isBlank(l.line):
		return false, isSkipped, "blank line", nil
	}
	return true, 0, "", nil
}

func (r *Reader) nextFile() {
	r.account.Bytes += r.in.bytes
	r.in.close()
	r.in, r.dec = nil, nil
	if len(r.paths) == 0 {
		r.err = io.EOF
		return
	}
	r.err = r.open()
}

// file gives a record its class for good, and reports whether it is handed on.
func (r *Reader) file(rec *Record, class class, reason string, bad *scan.LineError) bool {
	if (class == isEvent || class == isDangling) && !r.isNew(rec) {
		class, reason = isDuplicate, "the event came before"
		if rec.Kind == Outcome {
			reason = "the observation came before"
		}
	}
	inactive := class == isEvent && rec.Flags&Inactive != 0
	if inactive {
		class, reason = isSkipped, "not activated"
	}
	switch {
	case class == isEvent:
		r.account.count(class, "")
		r.account.event(rec)
		r.handed++
		return true
	case class == isDangling:
		r.account.count(class, "")
		return true
	}
	at := Reject{File: rec.File, Line: rec.Line, Reason: reason}
	if bad != nil && bad.File == "" {
		bad.File = rec.File
	}
	if bad != nil && bad.Ends {
		r.err = bad
		return false
	}
	if r.leave(class, at, bad, r.dec.raw()); bad != nil && r.o.Strict {
		r.err = bad
	}
	if inactive && r.o.Inactive {
		r.handed++
		return true
	}
	return false
}

// unhanded stands for the number of an event that was not handed on.
const unhanded = -1

// EventOf returns which event an id is of, counted from 0 in the order in which they were handed on; ok is false where
// the reader does not remember it. A repeat changes nothing: an outcome belongs to the first event of its id.
func (r *Reader) EventOf(id string) (n int, ok bool) {
	r.key = append(r.key[:0], id...)
	at, ok := r.events.Get(0, r.key)
	return int(at), ok && at != unhanded
}

// isNew reports whether an event or an observation did not come before. What has no id is always new.
func (r *Reader) isNew(rec *Record) bool {
	if rec.ID == "" {
		return true
	}
	r.key = append(r.key[:0], rec.ID...)
	if rec.Kind != Outcome {
		if _, again := r.events.Get(0, r.key); again {
			return false
		}
		n := r.handed
		if r.table != nil {
			n = int32(rec.Line) // a repeat is told with the line of the first
		}
		if rec.Flags&Inactive != 0 && !r.o.Inactive {
			n = unhanded
		}
		return r.events.Put(0, r.key, n)
	}
	r.key = append(r.key, byte(rec.Outcome), byte(rec.Flags))
	r.key = binary.LittleEndian.AppendUint64(r.key, math.Float64bits(rec.Value))
	r.key = binary.LittleEndian.AppendUint64(r.key, uint64(rec.OutcomeTime))
	if len(rec.Values) > 0 {
		r.key = codec.AppendRound(r.key, &codec.Round{Values: rec.Values, Time: scan.NoTime, OutcomeTime: scan.NoTime})
	}
	return r.said.Put(0, r.key, struct{}{})
}
