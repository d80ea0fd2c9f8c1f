package watch

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// StuckAfter is how long a loop may not come round before it counts as dead. Work on
// a slow log fails or comes round long before.
const StuckAfter = time.Minute

// BeatEvery is how often an idle loop comes round.
const BeatEvery = time.Second

// Condition is what a part of a process is up to.
type Condition uint8

const (
	StandingBy Condition = iota // another process does its work
	Recovering
	Waiting // for an epoch, or for the one in which it may decide
	Working
	Stopped // by an error; it will be opened again
)

// Health knows how the parts of a process are. All methods are safe for concurrent
// use; those of a nil *Health do nothing.
type Health struct {
	role string
	now  func() time.Time

	mu    sync.Mutex
	parts []*Part
}

// NewHealth returns the health of a process whose work is role ([RoleDecider] or [RoleJoiner]): it is ready while at
// least one part of that role is at work and nothing is amiss.
func NewHealth(role string) *Health { return &Health{role: role, now: time.Now} }

// Part is one decider or joiner of a process. All methods of a nil *Part do nothing.
type Part struct {
	h          *Health
	role, name string

	// guarded by h.mu
	is    Condition
	why   string // of waiting, stopped, standingBy; of recovering: what ended it before, "": nothing
	away  string // the log does not answer, or holds something up; "": it does neither
	ended bool   // it was told to stop, and says no more
	loops []*Heartbeat
}

// Heartbeat is one loop of a part that is at work.
type Heartbeat struct {
	name string
	at   atomic.Int64 // when it came round, ns
	now  func() time.Time
}

// Join adds a part. It stands by until it says otherwise.
func (h *Health) Join(role, name string) *Part {
	if h == nil {
		return nil
	}
	p := &Part{h: h, role: role, name: name, why: "it has not begun"}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.parts = append(h.parts, p)
	return p
}

// locked runs f with the lock on all parts; of a nil *Part nothing is run.
func (p *Part) locked(f func()) {
	if p == nil {
		return
	}
	p.h.mu.Lock()
	defer p.h.mu.Unlock()
	f()
}

// Leave takes a part away: it ended because it was told to.
func (p *Part) Leave() {
	p.locked(func() { p.h.parts = slices.DeleteFunc(p.h.parts, func(x *Part) bool { return x == p }) })
}

// End says that a part was told to stop.
func (p *Part) End() {
	p.Set(StandingBy, "shutting down")
	p.locked(func() { p.ended = true })
}

// Set says what a part is up to, and why; once it was told to stop that stays.
func (p *Part) Set(is Condition, why string) {
	p.locked(func() {
		if p.ended {
			return
		}
		p.is, p.why = is, why
		if is == Recovering || is == Stopped || is == StandingBy {
			p.loops, p.away = nil, ""
		}
	})
}

// Reach notes what the log is known to hold up, and whether it answers.
func (p *Part) Reach(held, err error) {
	p.locked(func() {
		switch p.away = ""; {
		case held != nil:
			p.away = "the log stands: " + held.Error()
		case err != nil:
			p.away = "the log is away: " + err.Error()
		}
	})
}

// Loop begins the watch over a loop that calls Beat at least each BeatEvery.
func (p *Part) Loop(name string) (l *Heartbeat) {
	p.locked(func() {
		l = &Heartbeat{name: name, now: p.h.now}
		l.Beat()
		p.loops = append(p.loops, l)
	})
	return l
}

func (l *Heartbeat) Beat() {
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
			atWork = atWork || p.is == Working
			if p.is == StandingBy {
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
		case p.is == Working && p.away == "":
			return ""
		default:
			why = cmp.Or(why, line(cmp.Or(p.amiss(), p.why)))
		}
	}
	return why
}

// amiss says what keeps a part from its work, "" if nothing does or another process does that work.
func (p *Part) amiss() string {
	switch {
	case p.is == Recovering && p.why != "":
		return "recovering from the log after it stopped: " + p.why
	case p.is == Recovering:
		return "recovering from the log"
	case p.is == Stopped:
		return "stopped, it will be opened again: " + p.why
	case p.away != "":
		return p.away
	case p.is == Waiting:
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
func (p *Part) stuck(now time.Time) string {
	for _, l := range p.loops {
		if since := now.Sub(time.Unix(0, l.at.Load())); since > StuckAfter {
			return fmt.Sprintf("%s: its loop of %s has not come round for %d seconds", p.name, l.name,
				int(since.Seconds()))
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
