package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"syscall"
	"time"

	"hindsight/internal/check"
	"hindsight/pkg/stream"
)

// chaosFault is one kind of what can go wrong.
type chaosFault struct {
	name   string
	strike func(c *chaos) // when it returns all processes are up again, if not yet at work
}

// chaosFaults are those of the system's processes.
func chaosFaults() []chaosFault {
	return []chaosFault{
		{"kill -9 of a decider", func(c *chaos) { c.killed(&c.deciders[c.r.IntN(len(c.deciders))]) }},
		{"kill -9 of the joiner", func(c *chaos) { c.killed(c.working(chaosFeedback, c.joiners)) }},
		{"kill -9 of a decider and the joiner", func(c *chaos) {
			c.killed(&c.deciders[c.r.IntN(len(c.deciders))], c.working(chaosFeedback, c.joiners))
		}},
		{"a decider is paused, and wakes up", func(c *chaos) {
			c.pausedOwner(chaosPart{"decisions", c.r.IntN(chaosPartitions)})
		}},
		{"the joiner is paused, and wakes up", func(c *chaos) { c.pausedOwner(chaosFeedback) }},
	}
}

// plan makes n faults in a random order, as many of each kind as of any other but for
// what is left over.
func plan(r *rand.Rand, kinds []chaosFault, n int) (all []chaosFault) {
	for len(all) < n {
		for _, i := range r.Perm(len(kinds)) {
			all = append(all, kinds[i])
		}
	}
	all = all[:n]
	r.Shuffle(n, func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// working returns the one of several processes that owns a partition.
func (c *chaos) working(part chaosPart, among []*process) **process {
	c.t.Helper()
	p := c.owns(part)
	for i := range among {
		if among[i] == p {
			return &among[i]
		}
	}
	c.t.Fatalf("%v is owned by %s %d, which is none of those that are at work", part, p.cmd.Args[0], p.cmd.Process.Pid)
	return nil
}

// killed kills processes at once, and starts others in their place, at once or when
// those that stood by have taken over.
func (c *chaos) killed(which ...**process) {
	c.revive()
	for _, p := range which {
		(*p).signal(syscall.SIGKILL)
	}
	for _, p := range which {
		<-(*p).ended
	}
	c.wait(c.r.IntN(3) == 0)
	for _, p := range which {
		*p = c.another(*p)
	}
}

// pausedOwner stops the owner of a partition until another has taken over and written,
// and lets it go on: it must say that it lost its lease. What it writes meets the fence,
// which runChaos counts: it may also see first that its time is over, and write nothing.
// That nothing of it is stored is for the audit.
func (c *chaos) pausedOwner(part chaosPart) {
	c.t.Helper()
	p := c.settledOwner(part)
	began := time.Now()
	p.signal(syscall.SIGSTOP)
	c.paused[p] = true
	asked := func() {}
	if c.bus != nil && part.topic == "decisions" {
		asked = c.askPaused(part.partition)
	}
	c.owns(part)
	c.over = append(c.over, time.Since(began))
	c.writes(part)
	fences, leases := p.said("fenced"), p.said("lease lost")
	p.signal(syscall.SIGCONT)
	asked()
	eventually(c.t, fmt.Sprintf("%s %d, which was paused, says that it lost its lease", p.cmd.Args[0],
		p.cmd.Process.Pid),
		func() bool {
			return p.said("lease lost") > leases
		})
	if c.wokeUp++; p.said("fenced") > fences {
		c.woken++
	}
	delete(c.paused, p)
}

// settledOwner waits until each process has its share and writes, and returns the
// owner of a partition: there is then another that can take over, and nobody is about
// to hand anything over.
func (c *chaos) settledOwner(part chaosPart) (p *process) {
	c.t.Helper()
	c.goesOn()
	eventually(c.t, "the partitions are shared", func() bool {
		owners := map[*process]bool{}
		for _, q := range chaosParts() {
			owners[c.owner(q)] = true
		}
		p = c.owner(part)
		return len(owners) == len(chaosParts()) && !owners[nil]
	})
	c.writes(part)
	return p
}

// said counts the lines of a process's log that hold a text.
func (p *process) said(text string) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, line := range p.lines {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

// askPaused asks the paused owner of a partition for decisions, and returns what waits
// for the answers: refusals, unless another had the partition already.
func (c *chaos) askPaused(partition int) (wait func()) {
	var group sync.WaitGroup
	var sent sync.WaitGroup
	for range pausedRequests {
		c.late++
		id := fmt.Sprintf("late-%d", c.late)
		sent.Add(1)
		group.Go(func() {
			ctx, cancel := context.WithTimeout(c.t.Context(), patience)
			defer cancel()
			sent.Done()
			reply, headers, err := c.bus.Request(ctx, fmt.Sprintf("shop.decide.%d", partition),
				fmt.Appendf(nil, `{"id":%q,"actions":["red","blue"]}`, id))
			switch code := errorCode(headers); {
			case errors.Is(err, stream.ErrNoResponder):
			case err != nil:
				c.t.Errorf("request %s to a paused decider: %v", id, err)
			case code == 503:
				c.mu.Lock()
				c.refused = append(c.refused, id)
				c.mu.Unlock()
			case code != 0:
				c.t.Errorf("request %s to a paused decider was refused with %d: %s", id, code, reply)
			default:
				c.load.mu.Lock()
				c.load.replies = append(c.load.replies, check.Reply{ID: id, Data: reply})
				c.load.mu.Unlock()
			}
		})
	}
	sent.Wait()
	return group.Wait
}
