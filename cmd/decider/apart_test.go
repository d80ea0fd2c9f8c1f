package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"hindsight/internal/check"
	"hindsight/internal/service"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// TestApart runs decider and feedback-joiner as two processes, and kills either
// under load: the other one waits for it and goes on, on whatever port the decider
// listens after that.
func TestApart(t *testing.T) {
	t.Parallel()
	seed := testSeed(t)
	r := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	model := writeModel(t, dir, shop)
	startDecider := func(args ...string) *process {
		return start(t, decider(t, append([]string{"--log", "embedded:" + dir, "--listen", "127.0.0.1:0",
			"--model", model, "--joiner=false"}, args...)...))
	}
	startJoiner := func() *process {
		return start(t, feedbackJoiner(t, "--log", "embedded:"+dir, "--model", model))
	}
	l := newLoad(t, dir, "shop", seed)
	d := startDecider("--encoding", codec.Encodings()[seed%2]) // the others find it in the log
	url := d.reached(dir).URL                                  // it is not ready: it has no model yet
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

// TestRenewedApart has the joiner, which is a process of its own, read a newer model file: the
// decider cannot, says who can, and goes on with that model as the log has it.
func TestRenewedApart(t *testing.T) {
	dir := t.TempDir()
	model := writeModel(t, dir, shop)
	d := start(t, decider(t, "--log", "embedded:"+dir, "--listen", "127.0.0.1:0", "--model", model, "--joiner=false",
		"--admin", "127.0.0.1:0"))
	url := asService(d.reached(dir))
	eventually(t, "the topics are there", func() bool { return hasTopics(t, dir) })
	j := start(t, feedbackJoiner(t, "--log", "embedded:"+dir, "--model", model, "--admin", "127.0.0.1:0")).ready()
	d.ready()
	if was := decideOnce(t, url, "before"); was.Epoch != 1 || was.Mode != codec.Live {
		t.Errorf("decided in epoch %d, %v", was.Epoch, was.Mode)
	}
	writeModel(t, dir, strings.Replace(shop, "version: 1", "version: 2\nmode: shadow", 1))
	if code, body := d.post(d.admin(), "/model", "{}"); code != 503 ||
		!strings.Contains(body, "ask the decider or feedback-joiner whose page /mode answers") {
		t.Errorf("a decider without a joiner says %d %s", code, body)
	}
	for p, want := range map[*process]int{d: 503, j: 200} {
		if code, body := p.page(p.admin(), "/mode"); code != want {
			t.Errorf("/mode of %s: %d %s", p.cmd.Args[0], code, body)
		}
	}
	renew := func() {
		var m service.ModePage
		code, body := j.post(j.admin(), "/model", "{}")
		if err := json.Unmarshal([]byte(body), &m); err != nil || code != 200 || m.Epoch != 2 || m.Version != 2 {
			t.Fatalf("the joiner says %d %s", code, body)
		}
	}
	renew()
	n := 0
	eventually(t, "the decider follows", func() bool {
		n++
		is := decideOnce(t, url, fmt.Sprint("after", n))
		return is.Epoch == 2 && is.Mode == codec.Shadow
	})
	renew() // the same file is nothing new
	j.stop(patience)
	d.stop(patience)
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
