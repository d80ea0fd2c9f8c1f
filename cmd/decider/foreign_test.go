package main

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"hindsight/internal/check"
	"hindsight/internal/daemon"
	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// Faults of other people's servers: three of them keep the log, under two deciders and two joiners at work.
// What was acknowledged is there in the end, or the logs say by name that it is gone.

// foreignFault is one of them.
type foreignFault struct {
	name   string
	strike func(c *chaos) // when it returns the servers are up again
	// audit judges what is left, with the processes at work; nil: nothing may be gone.
	audit func(c *chaos)
}

// runForeign lets one fault strike a system under load, and holds what it left against what the users know.
func runForeign(t *testing.T, place chaosPlace, f *foreignFault) {
	c := newChaos(t, place, shop, testSeed(t), foreignPace)
	c.goesOn()
	f.strike(c)
	c.goesOn()
	c.load.stop()
	if f.audit != nil {
		f.audit(c)
		return
	}
	c.rest()
	t.Log(figures(c.audit()))
}

// rest waits until every record has its fate, and stops the processes.
func (c *chaos) rest() {
	c.t.Helper()
	if c.load.o.lossy {
		eventually(c.t, "every record that is there has its fate", func() bool {
			r := c.run(check.Options{Rules: rulesOf, Unfinished: true, LostTails: true})
			return r.Waiting == 0 && r.Unread == 0
		})
	} else {
		settle(c.t, c.load)
	}
	c.revive()
	for _, p := range append(c.deciders, c.joiners...) {
		p.stop(patience)
	}
}

// foreignPace is how many times slower than they could be the users are.
const foreignPace = 20

// announced is what the logs say is gone.
type announced struct {
	rounds [][]codec.DecisionMark // by partition, marks with a gap
	tails  []codec.LostTail
	// witnessed are the last rounds that processes name which gave a partition up, and found them gone.
	witnessed [chaosPartitions]int64
}

// announcements reads them.
func (c *chaos) announcements() (a announced) {
	c.t.Helper()
	a.rounds = make([][]codec.DecisionMark, chaosPartitions)
	marks := func(topic string, p int, take func(value []byte) error) {
		err := stream.Scan(c.t.Context(), c.log, "shop."+topic, p, stream.Earliest, 1<<62,
			func(r *stream.Record) error {
				if r.Type != codec.TypeMark {
					return nil
				}
				return take(r.Value)
			})
		if err != nil {
			c.t.Fatal(err)
		}
	}
	for p := range chaosPartitions {
		marks("decisions", p, func(value []byte) error {
			m, err := codec.ParseDecisionMark(value)
			if m.GapFrom > 0 {
				a.rounds[p] = append(a.rounds[p], m)
			}
			return err
		})
	}
	marks("feedback", 0, func(value []byte) error {
		m, err := codec.ParseFeedbackMark(value)
		a.tails = append(a.tails, m.LostTails...)
		return err
	})
	for _, p := range c.byPID {
		for line := range strings.Lines(p.log()) {
			var partition int
			var n int64
			_, rest, _ := strings.Cut(line, "use their numbers again\"")
			_, rest, _ = strings.Cut(rest, "partition=")
			if _, err := fmt.Sscanf(rest, "%d round=%d", &partition, &n); err == nil {
				a.witnessed[partition] = max(a.witnessed[partition], n)
			}
		}
	}
	return a
}

// round reports whether a mark says that a round is gone, and whether anybody does.
func (a *announced) round(id string, n int64) (marked, said bool) {
	p := loop.PartitionOf([]byte(id), chaosPartitions)
	if strings.HasPrefix(id, "r-") {
		_, _ = fmt.Sscanf(id, "r-%d-", &p)
	}
	for _, m := range a.rounds[p] {
		if m.GapFrom <= n && n <= m.GapTo {
			return true, true
		}
	}
	return false, n <= a.witnessed[p]
}

// auditLoss holds that of what was acknowledged nothing is gone of which the logs do not say so.
func (c *chaos) auditLoss() {
	c.t.Helper()
	c.rest()
	said := c.announcements()
	kept := map[string]codec.Decision{}
	for p := range chaosPartitions {
		scan(c.t, c.log, "shop.decisions", p, func(r *stream.Record) error {
			var d codec.Decision
			err := codec.ParseDecision(&d, append([]byte(nil), r.Value...))
			kept[fmt.Sprint(d.ID, " ", d.N)] = d
			return err
		})
	}
	var lost, unmarked, silent int
	for _, reply := range c.load.replies {
		r, err := parseReply(reply.Data)
		if err != nil {
			c.t.Fatal(err)
		}
		if d, ok := kept[fmt.Sprint(r.ID, " ", r.N)]; ok && d.Actions[d.Action] == r.Action {
			continue
		}
		lost++
		if marked, told := said.round(r.ID, r.N); !told {
			silent++
		} else if !marked { // a process that the owner's successor is not says so
			unmarked++
		}
	}
	contexts := c.lostItems("contexts", c.load.contexts.sent())
	outcomes := c.lostItems("outcomes", append(c.load.outcomes.sent(), c.load.reports.sent...))
	logged := 0
	for _, p := range c.byPID {
		logged += p.said("have lost their tails")
	}
	if silent > 0 {
		c.t.Errorf("%d decisions were acknowledged and are gone, and nobody says so", silent)
	}
	if lost+contexts+outcomes > 0 && logged == 0 {
		c.t.Errorf("%d decisions, %d contexts and %d outcomes are gone, and no log of a process says so", lost,
			contexts, outcomes)
	}
	seed, err := daemon.SeedFile(c.seedFile())
	if err != nil {
		c.t.Fatal(err)
	}
	r := c.run(check.Options{Seed: seed, Rules: rulesOf, Dedup: 100_000, LostTails: true})
	for _, v := range r.Violations {
		c.t.Error(v)
	}
	verify := c.verify()
	out, err := verify.CombinedOutput()
	c.t.Logf("%d of %d decisions that were told are gone, %d of them named by no mark, %d contexts and %d outcomes; "+
		"marks name %v and %v; %d lines of logs say so; %s\nreplayer verify: %v\n%s", lost, len(c.load.replies),
		unmarked, contexts, outcomes, said.rounds, said.tails, logged, figures(r), err, lastLines(string(out), 4))
	if code := verify.ProcessState.ExitCode(); code != 0 && code != 3 { // 3: not all of it can be recomputed
		c.t.Errorf("replayer verify: %v\n%s", err, out)
	}
}

// verify is the command over the system's logs.
func (c *chaos) verify(flags ...string) *exec.Cmd {
	args := append([]string{"verify", "--name", "shop", "--seed-file", c.seedFile()}, flags...)
	return program(c.t, "replayer", append(args, c.place.flags()...)...)
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// lostItems counts the records that were acknowledged and are not in their topic.
func (c *chaos) lostItems(topic string, sent []*item) (lost int) {
	c.t.Helper()
	there := map[string]bool{}
	for p := range chaosPartitions {
		scan(c.t, c.log, "shop."+topic, p, func(r *stream.Record) error {
			there[string(r.Value)] = true
			return nil
		})
	}
	for _, it := range sent {
		if len(it.stored) > 0 && !there[string(it.record.Value)] {
			lost++
		}
	}
	return lost
}

// imageOf copies what a folder of a server that stands still holds.
func imageOf(t *testing.T, dir string) (image string) {
	t.Helper()
	image = t.TempDir()
	if err := os.CopyFS(image, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return image
}

// unsync takes from the folder of a dead server what was written since the image and not synced, and says how many
// bytes its files have lost.
func unsync(t *testing.T, dir, image string, synced func(path string) bool) (lost int64) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	size := func(path string) int64 {
		info, err := os.Stat(path)
		if err != nil {
			return 0
		}
		return info.Size()
	}
	each(t, dir, func(path string) {
		if _, err := os.Stat(filepath.Join(image, path)); err != nil && !synced(path) {
			lost += size(filepath.Join(dir, path))
			must(os.Remove(filepath.Join(dir, path)))
		}
	})
	each(t, image, func(path string) {
		if synced(path) {
			return
		}
		data, err := os.ReadFile(filepath.Join(image, path))
		must(err)
		lost += max(0, size(filepath.Join(dir, path))-int64(len(data)))
		must(os.MkdirAll(filepath.Dir(filepath.Join(dir, path)), 0o700))
		must(os.WriteFile(filepath.Join(dir, path), data, 0o600))
	})
	return lost
}

// each walks the files of a folder.
func each(t *testing.T, dir string, f func(path string)) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			path, err = filepath.Rel(dir, path)
			f(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
