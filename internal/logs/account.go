package logs

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"

	"hindsight/internal/scan"
)

// Class is what became of a record that was read.
type class uint8

// The classes: each record that is read has exactly one.
const (
	isEvent     class = iota + 1 // an event, handed on
	isDuplicate                  // a repeat of an event or of an observation
	isDangling                   // an observation on its own line, handed on
	isSkipped                    // known, and no event that is learned or counted; the reason says why
	isMalformed                  // not a record of this format
)

// String returns the class's name in JSON.
func (c class) String() string {
	return [...]string{"", "event", "duplicate", "dangling", "skipped", "malformed"}[c]
}

// ShownMalformed is how many malformed records an [Account] shows.
const ShownMalformed = 10

// Account says what became of every record: Read = Events + Duplicates + Dangling + Skipped + Malformed.
type Account struct {
	Format     string           `json:"format"`
	Files      int              `json:"files"`
	Bytes      int64            `json:"bytes"` // after decompression
	Read       int64            `json:"read"`
	Events     int64            `json:"events"`
	Duplicates int64            `json:"duplicates"`
	Dangling   int64            `json:"dangling"`
	Skipped    int64            `json:"skipped"`
	Malformed  int64            `json:"malformed"`
	Reasons    map[string]int64 `json:"skipped_by_reason,omitempty"` // sum: Skipped

	Observed  int64 `json:"observed"`  // events with an outcome of their own
	Defaulted int64 `json:"defaulted"` // events whose value stands for silence
	First     int64 `json:"first_time_ns,omitempty"`
	Last      int64 `json:"last_time_ns,omitempty"`

	// Shown are the first malformed records.
	Shown []*scan.LineError `json:"-"`
	// Forgotten says that ids were forgotten for lack of room: repeats further apart than that are not found.
	Forgotten bool `json:"ids_forgotten,omitempty"`
}

// Errors returns the texts of the malformed records shown.
func (a *Account) Errors() []string {
	out := make([]string, len(a.Shown))
	for i, e := range a.Shown {
		out[i] = e.Error()
	}
	return out
}

func (a *Account) count(c class, reason string) {
	a.Read++
	switch c {
	case isEvent:
		a.Events++
	case isDuplicate:
		a.Duplicates++
	case isDangling:
		a.Dangling++
	case isSkipped:
		a.Skipped++
		if a.Reasons == nil {
			a.Reasons = map[string]int64{}
		}
		a.Reasons[reason]++
	case isMalformed:
		a.Malformed++
	}
}

// event notes what the account says of an event that is handed on.
func (a *Account) event(r *Record) {
	switch {
	case r.observed():
		a.Observed++
	case r.Flags&Defaulted != 0:
		a.Defaulted++
	}
	if r.Time == scan.NoTime {
		return
	}
	if a.First == 0 || r.Time < a.First {
		a.First = r.Time
	}
	if a.Last == 0 || r.Time > a.Last {
		a.Last = r.Time
	}
}

// leave counts a record that is not handed on, for this reason; raw is what was read. Of a
// malformed one bad is the error.
func (r *Reader) leave(class class, at Reject, bad *scan.LineError, raw []byte) {
	r.account.count(class, at.Reason)
	at.Class = class.String()
	if bad != nil {
		at.File, at.Line, at.Column, at.Reason = bad.File, bad.Line, bad.Column, bad.Text()
		if len(r.account.Shown) < ShownMalformed {
			r.account.Shown = append(r.account.Shown, bad)
		}
	}
	r.rejects.add(at, raw)
}

// Reject is a line of the file of rejects: a record that is not handed on.
type Reject struct {
	File   string `json:"file"`
	Line   int64  `json:"line"`
	Column int64  `json:"column,omitempty"`
	Class  string `json:"class"`
	Reason string `json:"reason,omitempty"`
	Text   string `json:"text,omitempty"`  // as it was read, cut to [MaxRejectBytes]
	Bytes  []byte `json:"bytes,omitempty"` // instead of Text where that is not UTF-8
}

// MaxRejectBytes is how much of a record a [Reject] keeps.
const maxRejectBytes = 64 << 10

// rejects writes what is not handed on, a JSON object a line.
type rejects struct {
	w   *bufio.Writer
	err error
}

func newRejects(w io.Writer) *rejects {
	if w == nil {
		return nil
	}
	return &rejects{w: bufio.NewWriter(w)}
}

func (r *rejects) add(x Reject, raw []byte) {
	if r == nil || r.err != nil {
		return
	}
	raw = raw[:min(len(raw), maxRejectBytes)]
	if utf8.Valid(raw) {
		x.Text = string(raw)
	} else {
		x.Bytes = raw
	}
	b, err := json.Marshal(&x)
	if err == nil {
		_, err = r.w.Write(append(b, '\n'))
	}
	r.err = err
}

func (r *rejects) flush() error {
	if r == nil {
		return nil
	}
	if r.err == nil {
		r.err = r.w.Flush()
	}
	if r.err != nil {
		return fmt.Errorf("file of rejects: %w", r.err)
	}
	return nil
}

// ReasonTexts lists why records were skipped and how many, in byte order.
func (a *Account) ReasonTexts() []string {
	var out []string
	for name, n := range a.Reasons {
		out = append(out, fmt.Sprintf("%s: %d", name, n))
	}
	slices.Sort(out)
	return out
}

// Summary says in a line what became of the records.
func (a *Account) Summary() string {
	return fmt.Sprintf("read %d: %d events, %d duplicates, %d dangling, %d skipped, %d malformed",
		a.Read, a.Events, a.Duplicates, a.Dangling, a.Skipped, a.Malformed)
}
