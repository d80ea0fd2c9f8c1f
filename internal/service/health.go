package service

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// stuckAfter is how long a loop may not come round before it counts as dead. Work on
// a slow log fails or comes round long before.
const stuckAfter = time.Minute

// beatEvery is how often an idle loop comes round.
const beatEvery = time.Second

// condition is what a part of a process is up to.
type condition uint8

const (
	standingBy condition = iota // another process does its work
	recovering
	waiting // for an epoch, or for the one in which it may decide
	working
	stopped // by an error; it will be opened again
)

// Health knows how the parts of a process are. All methods are safe for concurrent
// use; those of a nil *Health do nothing.
type Health struct {
	role string
	now  func() time.Time

	mu    sync.Mutex
	parts []*part
}

// NewHealth returns the health of a process whose work is role ([RoleDecider] or
// [RoleJoiner]): it is ready while at least one part of that role is at work and
// nothing is amiss.
func NewHealth(role string) *Health { return &Health{role: role, now: time.Now} }

// part is one decider or joiner of a process. All methods of a nil *part do nothing.
type part struct {
	h          *Health
	role, name string

	// guarded by h.mu
	is    condition
	why   string // of waiting, stopped, standingBy; of recovering: what ended it before, "": nothing
	away  string // the log does not answer, or holds something up; "": it does neither
	ended bool   // it was told to stop, and says no more
	loops []*pulse
}

// pulse is one loop of a part that is at work.
type pulse struct {
	name string
	at   atomic.Int64 // when it came round, ns
	now  func() time.Time
}

// join adds a part. It stands by until it says otherwise.
func (h *Health) join(role, name string) *part {
	if h == nil {
		return nil
	}
	p := &part{h: h, role: role, name: name, why: "it has not begun"}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.parts = append(h.parts, p)
	return p
}

// leave takes a part away: it ended because it was told to.
func (p *part) leave() {
	if p == nil {
		return
	}
	p.h.mu.Lock()
	defer p.h.mu.Unlock()
	for i, x := range p.h.parts {
		if x == p {
			p.h.parts = append(p.h.parts[:i:i], p.h.parts[i+1:]...)
			return
		}
	}
}

// end says that a part was told to stop.
func (p *part) end() {
	if p == nil {
		return
	}
	p.set(standingBy, "shutting down")
	p.h.mu.Lock()
	defer p.h.mu.Unlock()
	p.ended = true
}

func (p *part) set(is condition, why string) {
	if p == nil {
		return
	}
	p.h.mu.Lock()
	defer p.h.mu.Unlock()
	if p.ended {
		return
	}
	p.is, p.why = is, why
	if is == recovering || is == stopped || is == standingBy {
		p.loops, p.away = nil, ""
	}
}

// reach notes what the log is known to hold up, and whether it answers.
func (p *part) reach(held, err error) {
	if p == nil {
		return
	}
	p.h.mu.Lock()
	defer p.h.mu.Unlock()
	switch p.away = ""; {
	case held != nil:
		p.away = "the log stands: " + held.Error()
	case err != nil:
		p.away = "the log is away: " + err.Error()
	}
}

// loop begins the watch over a loop that calls beat at least each beatEvery.
func (p *part) loop(name string) *pulse {
	if p == nil {
		return nil
	}
	l := &pulse{name: name, now: p.h.now}
	l.beat()
	p.h.mu.Lock()
	defer p.h.mu.Unlock()
	p.loops = append(p.loops, l)
	return l
}

func (l *pulse) beat() {
	if l != nil {
		l.at.Store(l.now().UnixNano())
	}
}

// errStandingBy reports a process that does nothing because others do its work.
var errStandingBy = errors.New("standing by")

// Ready returns nil if the process can do now what it is there for and all its loops come
// round, else why not, in one line.
func (h *Health) Ready() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.parts) == 0 {
		return errors.New("starting, or shutting down")
	}
	var atWork bool
	idle := "no " + h.role
	for _, p := range h.parts {
		if why := p.amiss(); why != "" {
			return errors.New(line(p.name + ": " + why))
		}
		if why := p.stuck(h.now()); why != "" {
			return errors.New(line(why))
		}
		if p.role == h.role {
			atWork = atWork || p.is == working
			if p.is == standingBy {
				idle = p.name + ": " + p.why
			}
		}
	}
	if !atWork {
		return fmt.Errorf("%w: %s", errStandingBy, line(idle))
	}
	return nil
}

// Idle says why no part of a role is at work in this process; "": one is, or none is there.
func (h *Health) Idle(role string) (why string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.parts {
		switch {
		case p.role != role:
		case p.is == working && p.away == "":
			return ""
		default:
			why = cmp.Or(why, line(cmp.Or(p.amiss(), p.why)))
		}
	}
	return why
}

// amiss says what keeps a part from its work, "" if nothing does or another process
// does that work.
func (p *part) amiss() string {
	switch {
	case p.is == recovering && p.why != "":
		return "recovering from the log after it stopped: " + p.why
	case p.is == recovering:
		return "recovering from the log"
	case p.is == stopped:
		return "stopped, it will be opened again: " + p.why
	case p.away != "":
		return p.away
	case p.is == waiting:
		return p.why
	}
	return ""
}

// Alive returns nil if all loops come round, else which does not.
func (h *Health) Alive() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.now()
	for _, p := range h.parts {
		if why := p.stuck(now); why != "" {
			return errors.New(why)
		}
	}
	return nil
}

// stuck says which loop of a part does not come round, "" if all do.
func (p *part) stuck(now time.Time) string {
	for _, l := range p.loops {
		if since := now.Sub(time.Unix(0, l.at.Load())); since > stuckAfter {
			return fmt.Sprintf("%s: its loop of %s has not come round for %d seconds", p.name, l.name, int(since.Seconds()))
		}
	}
	return ""
}

// line makes one line of a text, without control characters.
func line(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
}
