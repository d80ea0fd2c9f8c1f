package watch

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// A part that is to be opened again, or stands by, is in the process and not at work; one that
// works, and one that is nowhere, is no reason.
func TestIdle(t *testing.T) {
	h := NewHealth(RoleDecider)
	if why := h.Idle(RoleJoiner); why != "" {
		t.Errorf("none is there: %q", why)
	}
	p := h.Join(RoleJoiner, RoleJoiner)
	for _, c := range []struct {
		is         Condition
		away       error
		why, tells string
	}{{StandingBy, nil, "another has it", "another has it"}, {Recovering, nil, "", "recovering"},
		{Working, nil, "", ""}, {Working, errors.New("killed"), "", "the log is away: killed"},
		{Stopped, nil, "no space", "opened again: no space"}, {Waiting, nil, "no epoch", "no epoch"}} {
		p.Set(c.is, c.why)
		p.Reach(nil, c.away)
		if why := h.Idle(RoleJoiner); !strings.Contains(why, c.tells) || c.tells == "" && why != "" {
			t.Errorf("%v: %q, want %q", c.is, why, c.tells)
		}
	}
	h.Join(RoleDecider, "decider").Set(Working, "")
	if h.Idle(RoleDecider) != "" || h.Idle(RoleJoiner) == "" {
		t.Error("roles are mixed")
	}
	h.Join(RoleJoiner, "second").Set(Waiting, "for nothing")
	if why := h.Idle(RoleJoiner); why != "no epoch" {
		t.Errorf("of two parts the second is told: %q", why)
	}
}

// TestReady holds, step by step, whether a process is ready, or says why not in one line.
func TestReady(t *testing.T) {
	h := NewHealth(RoleDecider)
	now := time.Unix(1000, 0)
	h.now = func() time.Time { return now }
	var d, j *Part
	var beat *Heartbeat
	full, gone := errors.New("full\n\x7fto the brim"), errors.New("no answer")
	for _, c := range []struct {
		step string
		do   func()
		want string // "": it is ready
	}{
		{"none is there", func() {}, "starting, or shutting down"},
		{"joined", func() { d = h.Join(RoleDecider, "decider 0") }, "standing by: decider 0: it has not begun"},
		{"leased elsewhere", func() { d.Set(StandingBy, "another has it") }, "standing by: decider 0: another has it"},
		{"opens", func() { d.Set(Recovering, "") }, "decider 0: recovering from the log"},
		{"opens again", func() { d.Set(Recovering, "lost\tit") },
			"decider 0: recovering from the log after it stopped: lost it"},
		{"no epoch", func() { d.Set(Waiting, "no epoch yet") }, "decider 0: no epoch yet"},
		{"works", func() { d.Set(Working, "") }, ""},
		{"a joiner stands by", func() { j = h.Join(RoleJoiner, "joiner") }, ""},
		{"a joiner fails", func() { j.Set(Stopped, "no space") }, "joiner: stopped, it will be opened again: no space"},
		{"a joiner works", func() { j.Set(Working, "") }, ""},
		{"held", func() { d.Reach(full, gone) }, "decider 0: the log stands: full  to the brim"},
		{"away", func() { d.Reach(nil, gone) }, "decider 0: the log is away: no answer"},
		{"back", func() { d.Reach(nil, nil) }, ""},
		{"away, and it knows", func() { d.Reach(nil, gone); d.Set(StandingBy, "given up") },
			"standing by: decider 0: given up"},
		{"the joiner alone", func() { d.Leave() }, "standing by: no decider"},
		{"again", func() { d = h.Join(RoleDecider, "decider 1"); d.Set(Working, "") }, ""},
		{"a loop", func() { beat = d.Loop("contexts"); now = now.Add(StuckAfter) }, ""},
		{"it does not come round", func() { now = now.Add(time.Second) },
			"decider 1: its loop of contexts has not come round for 61 seconds"},
		{"it does", func() { beat.Beat() }, ""},
		{"its part begins anew", func() { now = now.Add(time.Hour); d.Set(Recovering, ""); d.Set(Working, "") }, ""},
		{"told to stop", func() { d.End(); d.Set(Working, "") }, "standing by: decider 1: shutting down"},
	} {
		c.do()
		got := ""
		if err := h.Ready(); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.step, got, c.want)
		}
		stuck := strings.Contains(c.want, "come round")
		if err := h.Alive(); (err != nil) != stuck || stuck && err.Error() != c.want {
			t.Errorf("%s: alive: %v", c.step, err)
		}
		if err := h.Ready(); errors.Is(err, errStandingBy) != strings.HasPrefix(c.want, "standing by") {
			t.Errorf("%s: %v, is it standing by?", c.step, err)
		}
	}
	var none *Health
	p := none.Join(RoleDecider, "nobody") // asks for nothing
	p.Set(Working, "")
	p.Reach(full, nil)
	p.Loop("x").Beat()
	p.End()
	p.Leave()
}
