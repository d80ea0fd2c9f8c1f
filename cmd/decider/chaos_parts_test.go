package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// chaos is a system of two deciders on two partitions and two joiners, of which one
// works, under load, that is to be hurt.
type chaos struct {
	t        *testing.T
	place    chaosPlace
	r        *rand.Rand
	encoding string
	log      stream.Log
	bus      stream.Bus
	load     *load
	dir      string
	args     []string

	deciders, joiners []*process
	byPID             map[string]*process // all that ever were
	paused            map[*process]bool
	lines             map[chaosPart]*chaosLine
	order             func(*stream.Record) int64 // of records; nil: their log times

	revived int // processes that ended by themselves

	wokeUp int             // paused processes
	woken  int             // of them those that met the fence
	late   int             // requests that waited for a paused process
	over   []time.Duration // from each pause to another's opening
	again  []time.Duration // from each fault to new decisions and feedback

	mu      sync.Mutex
	refused []string // ids of those that a process refused that had lost its partition
}

// chaosPart is a partition that one process at a time writes to.
type chaosPart struct {
	topic     string
	partition int
}

// chaosLine is a partition of what the system writes, as far as it was read.
type chaosLine struct {
	from    int64
	owner   string // the process id of who opened it last
	records int    // of data
}

// lossyPlace is a place where what was acknowledged may be gone.
type lossyPlace interface{ loses() }

const chaosPartitions = 2

var chaosFeedback = chaosPart{"feedback", 0}

// chaosParts are all of them.
func chaosParts() []chaosPart {
	parts := []chaosPart{chaosFeedback}
	for p := range chaosPartitions {
		parts = append(parts, chaosPart{"decisions", p})
	}
	return parts
}

func newChaos(t *testing.T, place chaosPlace, model string, seed uint64, slow int) *chaos {
	t.Helper()
	c := &chaos{t: t, place: place, r: rand.New(rand.NewPCG(seed, 11)), dir: t.TempDir(),
		encoding: codec.Encodings()[seed%2],
		byPID:    map[string]*process{}, paused: map[*process]bool{}, lines: map[chaosPart]*chaosLine{}}
	for _, part := range chaosParts() {
		c.lines[part] = &chaosLine{from: stream.Earliest}
	}
	c.args = append(place.flags(), "--model", writeModel(t, c.dir, model), "--seed-file", c.seedFile())
	c.log, c.bus = place.dial()
	built(t, "hindsight/cmd/replayer") // for the end
	t.Cleanup(func() {
		for _, p := range append(c.deciders, c.joiners...) {
			if t.Failed() {
				t.Logf("%s %d:\n%s", p.cmd.Args[0], p.cmd.Process.Pid, p.log())
			}
		}
	})
	c.deciders = []*process{c.decider(), c.decider()}
	c.joiners = []*process{c.joiner(), c.joiner()}
	c.owned()
	_, lossy := place.(lossyPlace)
	c.load = newLoadOf(t, "", "shop", seed, loadOptions{partitions: chaosPartitions, slow: slow, mute: c.bus == nil,
		scatter: true, named: model == shopNamed, lossy: lossy})
	c.load.set(&link{t.Context(), c.log, c.bus, func() {}})
	return c
}

func (c *chaos) seedFile() string { return filepath.Join(c.dir, "seed") }

func (c *chaos) decider() *process {
	args := append([]string{"--joiner=false", "--partitions", fmt.Sprint(chaosPartitions), "--encoding", c.encoding},
		c.place.deciderFlags()...)
	return c.started(start(c.t, program(c.t, "decider", append(args, c.args...)...)))
}

func (c *chaos) joiner() *process {
	return c.started(start(c.t, program(c.t, "feedback-joiner", c.args...)))
}

func (c *chaos) started(p *process) *process {
	c.byPID[fmt.Sprint(p.cmd.Process.Pid)] = p
	return p
}

// look reads on in a partition. Errors are those of a place that was hurt.
func (c *chaos) look(part chaosPart) *chaosLine {
	l := c.lines[part]
	ctx, cancel := context.WithTimeout(c.t.Context(), patience/4)
	defer cancel()
	_ = stream.Scan(ctx, c.log, "shop."+part.topic, part.partition, l.from, 1<<62,
		func(r *stream.Record) error {
			l.from = r.Offset + 1
			switch r.Type {
			case "":
				l.records++
			case stream.TypeOpen:
				for _, h := range r.Headers {
					if h.Key == stream.HeaderOwner {
						l.owner = h.Value[strings.LastIndexByte(h.Value, '/')+1:] // role@host/pid
					}
				}
			}
			return nil
		})
	return l
}

// revive starts processes again that ended by themselves, as whoever runs them would:
// one that finds no server when it starts says so and ends.
func (c *chaos) revive() {
	for _, p := range []*[]*process{&c.deciders, &c.joiners} {
		for i, q := range *p {
			select {
			case <-q.ended:
			default:
				continue
			}
			if code := q.cmd.ProcessState.ExitCode(); code != 1 || q.said("log unavailable") == 0 ||
				q.said("msg=ready ") > 0 {
				c.t.Errorf("%s %d ended by itself, with %v:\n%s", q.cmd.Args[0], q.cmd.Process.Pid, q.cmd.ProcessState,
					q.log())
			}
			c.revived++
			(*p)[i] = c.another(q)
		}
	}
}

// another starts a process in the place of one that has ended.
func (c *chaos) another(p *process) *process {
	if p.cmd.Args[0] == "decider" {
		return c.decider()
	}
	return c.joiner()
}

// owner returns the process that opened a partition last, nil if it is not at work.
func (c *chaos) owner(part chaosPart) *process {
	c.revive()
	p := c.byPID[c.look(part).owner]
	if p == nil || c.paused[p] {
		return nil
	}
	select {
	case <-p.ended:
		return nil
	default:
		return p
	}
}

// owns waits until a process at work owns a partition.
func (c *chaos) owns(part chaosPart) (p *process) {
	c.t.Helper()
	eventually(c.t, fmt.Sprintf("%v has an owner", part), func() bool {
		p = c.owner(part)
		return p != nil
	})
	return p
}

func (c *chaos) owned() {
	c.t.Helper()
	for _, part := range chaosParts() {
		c.owns(part)
	}
}

// goesOn waits until there are new decisions in all partitions and new feedback.
func (c *chaos) goesOn() {
	c.t.Helper()
	for _, part := range chaosParts() {
		c.writes(part)
	}
}

// writes waits until there is something new in a partition.
func (c *chaos) writes(part chaosPart) {
	c.t.Helper()
	was := c.look(part).records
	eventually(c.t, fmt.Sprintf("%v goes on", part), func() bool {
		c.revive()
		return c.look(part).records >= was+3
	})
}

// wait lets some time pass: a moment, or more than a part may be away before another
// takes over.
func (c *chaos) wait(long bool) {
	d := time.Duration(c.r.IntN(300)) * time.Millisecond
	if long {
		d += c.place.lapse()
	}
	select {
	case <-time.After(d):
	case <-c.t.Context().Done():
	}
}
