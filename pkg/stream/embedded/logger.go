package embedded

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// serverLog passes the server's log on and remembers what was fatal: the server
// tells of a failed start in no other way.
type serverLog struct {
	log    *slog.Logger
	faults chan error // tells that a store takes no more records; holds at most one; nil: nobody asks

	mu    sync.Mutex
	first error
	from  time.Time // begin of the interval at work
	lines int       // of warnings and errors in it
}

// A client that does what it may not, again and again, does not fill the log.
const (
	logInterval = 10 * time.Second
	logLines    = 20 // in an interval
)

// room reports whether there is room for a warning or an error, and tells in one line of
// those for which there was none.
func (l *serverLog) room(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.from) >= logInterval {
		if more := l.lines - logLines; more > 0 {
			l.log.Warn("nats server: more of the like", "lines", more)
		}
		l.from, l.lines = now, 0
	}
	l.lines++
	return l.lines <= logLines
}

func (l *serverLog) fatal() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.first
}

// Noticef is about normal operation.
func (l *serverLog) Noticef(format string, v ...any) {
	l.log.Debug("nats server", "message", text(format, v))
}

// Warnf is about what may matter. Passwords in plain text do not: they live as long as the process.
func (l *serverLog) Warnf(format string, v ...any) {
	if m := text(format, v); !strings.HasPrefix(m, "Plaintext passwords") && l.room(time.Now()) {
		l.log.Warn("nats server", "message", m)
	}
}

// Fatalf is about what ends the server.
func (l *serverLog) Fatalf(format string, v ...any) {
	m := text(format, v)
	l.log.Error("nats server", "message", m)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.first == nil {
		l.first = fmt.Errorf("embedded server: %s", m)
	}
}

// Errorf is about what failed.
func (l *serverLog) Errorf(format string, v ...any) {
	if strings.Contains(strings.ToLower(format), "critical write error") {
		l.fault(v)
	}
	if l.room(time.Now()) {
		l.log.Error("nats server", "message", text(format, v))
	}
}

// fault tells that a store takes no more records, with the error that it had if that is
// among the values of the line. The server tells nobody else, and holds locks meanwhile.
func (l *serverLog) fault(v []any) {
	err := errors.New("the store failed")
	for _, x := range v {
		if e, ok := x.(error); ok {
			err = e
		}
	}
	select {
	case l.faults <- err:
	default:
	}
}

// Debugf and Tracef are off.
func (l *serverLog) Debugf(string, ...any) {}

// Tracef is off.
func (l *serverLog) Tracef(string, ...any) {}

func text(format string, v []any) string { return strings.TrimSpace(fmt.Sprintf(format, v...)) }
