package main

import (
	"math/rand/v2"
	"testing"
	"time"

	"hindsight/internal/check"
	"hindsight/pkg/stream"
)

// TestApart runs decider and feedback-joiner as two processes, and kills either
// under load: the other one waits for it and goes on, on whatever port the decider
// listens after that.
func TestApart(t *testing.T) {
	seed := testSeed(t)
	r := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	model := writeModel(t, dir, shop)
	startDecider := func() *process {
		return start(t, decider(t, "--log", "embedded:"+dir, "--listen", "127.0.0.1:0", "--model", model, "--joiner=false"))
	}
	startJoiner := func() *process {
		return start(t, feedbackJoiner(t, "--log", "embedded:"+dir, "--model", model))
	}
	l := newLoad(t, dir, "shop", seed)
	d := startDecider()
	url := d.reached(dir).URL // it is not ready: it has no model yet
	eventually(t, "the topics are there", func() bool { return hasTopics(t, dir) })
	j := startJoiner().ready()
	l.attach(url)
	d.ready()
	for range long(6, 60) {
		after(d, time.Duration(r.IntN(400))*time.Millisecond)
		if r.IntN(2) == 0 {
			j.kill()
			j = startJoiner()
			j.ready()
			continue
		}
		d.kill()
		l.detach()
		d = startDecider()
		l.attach(d.ready().reached(dir).URL)
	}
	l.stop()
	settle(t, l)
	l.detach()
	j.stop(patience)
	d.stop(patience)
	report := audit(t, dir, "shop", l.replies, check.Options{}, func(log stream.Log) { auditUsers(t, log, l) })
	t.Log(figures(report))
}

// hasTopics reports whether the topics of the shop are made.
func hasTopics(t testing.TB, dir string) bool {
	c, err := dial(dir)
	if err != nil {
		return false
	}
	defer c.Close()
	n, err := c.Log().Partitions(t.Context(), "shop.snapshots") // made last
	return err == nil && n == 1
}
