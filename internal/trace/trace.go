// Package trace says what a process tells about the life of a round, so that OpenTelemetry can show it, and reads the
// header by which a trace goes on from one process to the next.
package trace

import (
	"strings"
	"time"

	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// Header is the header of requests, contexts and decisions that says to which trace they belong, as W3C Trace Context
// has it.
const Header = "traceparent"

// Tracer makes spans. It is safe for concurrent use and does not block. nil: tracing is off.
type Tracer interface {
	// Decided begins the span of a decision whose context was taken up at start. parent is the value of [Header], or
	// "".
	Decided(parent string, start time.Time, d *codec.Decision) Span
	// Outcome begins the span of an outcome that came by request.
	Outcome(parent string, start time.Time, id string) Span
	// Joined makes the span of a round that was joined with its outcome. It is linked to that of the decision, whose
	// record has this [Header].
	Joined(decision string, f *codec.Feedback)
}

// Span is a piece of work. One goroutine at a time uses it.
type Span interface {
	Parent() string   // the value of [Header] for what follows from it
	Stored(err error) // its record is in the log, or that failed
	End(replied bool) // its request is answered, or it had none
}

// Of returns the value of [Header] among headers; "" if there is none, several, or one that is invalid.
func Of(headers []stream.Header) (parent string) {
	for _, h := range headers {
		if !strings.EqualFold(h.Key, Header) {
			continue
		}
		if parent != "" || !Valid(h.Value) {
			return ""
		}
		parent = h.Value
	}
	return parent
}

// size is the length of a traceparent of version 00: version-trace-parent-flags.
const size = len("00-0123456789abcdef0123456789abcdef-0123456789abcdef-01")

// Valid reports whether a value of [Header] is valid. Of a version yet to come, whatever follows its known part is.
func Valid(v string) bool {
	switch {
	case len(v) < size, v[2] != '-', v[35] != '-', v[52] != '-', v[:2] == "ff":
		return false
	case len(v) > size && (v[:2] == "00" || v[size] != '-'):
		return false
	}
	return isHex(v[:2]) && isID(v[3:35]) && isID(v[36:52]) && isHex(v[53:size])
}

// isID reports whether s is a number that is not 0.
func isID(s string) bool { return isHex(s) && strings.Trim(s, "0") != "" }

func isHex(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }
