package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"hindsight/internal/check"
	"hindsight/internal/daemon"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// audit holds the logs against every promise: by the independent checker, by what the
// users know, by who wrote what under which opening, and by replayer verify.
func (c *chaos) audit() *check.Report {
	c.t.Helper()
	r := c.check(c.log, c.load.replies)
	c.judge(r)
	if out, err := c.verify().CombinedOutput(); err != nil {
		c.t.Errorf("replayer verify: %v\n%s", err, out)
	} else if !strings.Contains(string(out), "identical") {
		c.t.Errorf("replayer verify does not say that all is identical:\n%s", out)
	}
	return r
}

// judge is audit by all but replayer verify.
func (c *chaos) judge(r *check.Report) {
	c.t.Helper()
	for _, v := range r.Violations {
		c.t.Error(v)
	}
	if more := r.Broken - len(r.Violations); more > 0 {
		c.t.Errorf("and %d more violations", more)
	}
	auditUsers(c.t, c.log, c.load)
	for _, part := range chaosParts() {
		names := c.place.openings("shop."+part.topic, part.partition)
		if err := fenced(names); err != nil {
			c.t.Errorf("%v: %v", part, err)
		}
	}
	c.refusedIsInvisible()
}

func (c *chaos) check(log stream.Log, replies []check.Reply) *check.Report {
	c.t.Helper()
	seed, err := daemon.SeedFile(c.seedFile())
	if err != nil {
		c.t.Fatal(err)
	}
	return c.runOn(log, check.Options{Seed: seed, Rules: rulesOf, Replies: replies, Dedup: 100_000, Order: c.order})
}

// run is the checker on the system's logs.
func (c *chaos) run(o check.Options) *check.Report { return c.runOn(c.log, o) }

func (c *chaos) runOn(log stream.Log, o check.Options) *check.Report {
	c.t.Helper()
	r, err := check.Run(c.t.Context(), log, "shop", chaosPartitions, o)
	if err != nil {
		c.t.Fatal(err)
	}
	return r
}

// refusedIsInvisible holds that no request was decided that a process refused which
// had lost its partition.
func (c *chaos) refusedIsInvisible() {
	c.t.Helper()
	for p := range chaosPartitions {
		scan(c.t, c.log, "shop.decisions", p, func(r *stream.Record) error {
			var d codec.Decision
			err := codec.ParseDecision(&d, r.Value)
			if slices.Contains(c.refused, d.ID) {
				c.t.Errorf("decision %d of partition %d, of %s, was refused by a process that had lost the partition",
					d.N, p, d.ID)
			}
			return err
		})
	}
}

// fenced holds that nothing was stored under an opening after a later opening.
func fenced(openings []string) error {
	if len(openings) == 0 {
		return fmt.Errorf("nothing was written")
	}
	over := map[string]bool{}
	for i, name := range openings {
		if name == "" || over[name] {
			return fmt.Errorf("record %d was written under the opening %q, after a later one", i, name)
		}
		if i > 0 && openings[i-1] != name {
			over[openings[i-1]] = true
		}
	}
	return nil
}

// doctored is a log with records that are not as they were written.
type doctored struct {
	stream.Log
	edit func(topic string, r stream.Record) []stream.Record
}

func (d *doctored) Read(ctx context.Context, topic string, partition int, from int64) (stream.Reader, error) {
	r, err := d.Log.Read(ctx, topic, partition, from)
	return &doctoredReader{r, topic, d.edit}, err
}

type doctoredReader struct {
	stream.Reader
	topic string
	edit  func(topic string, r stream.Record) []stream.Record
}

func (d *doctoredReader) Next(ctx context.Context, dst []stream.Record) ([]stream.Record, error) {
	all, err := d.Reader.Next(ctx, nil)
	for _, r := range all {
		dst = append(dst, d.edit(d.topic, r)...)
	}
	return dst, err
}

// plantFaults holds that the audit would have found what went wrong.
func (c *chaos) plantFaults(was *check.Report) {
	c.t.Helper()
	replies := slices.Clone(c.load.replies)
	for _, plant := range []struct {
		name, topic string
		at          int // the how manieth record, of those of earlier stages or of the others
		says        string
		edit        func(r stream.Record) []stream.Record
	}{
		{"a stage is told twice", "stages of shop.feedback", 100, "is of stage 1 of a round that had 1",
			func(r stream.Record) []stream.Record { return []stream.Record{r, r} }},
		{"a decision is lost", "shop.decisions", 100, "", func(stream.Record) []stream.Record { return nil }},
		{"a round is decided twice", "shop.decisions", 100, "was decided before",
			func(r stream.Record) []stream.Record {
				again := r
				again.Offset++ // of the next one, which nothing refers to
				return []stream.Record{r, again}
			}},
		{"a decision has no feedback", "shop.feedback", was.Decisions, "has no feedback",
			func(stream.Record) []stream.Record { return nil }},
		{"a decision has two feedbacks", "shop.feedback", 100, "had feedback", func(r stream.Record) []stream.Record {
			return []stream.Record{r, r}
		}},
		{"a context is not decided", "shop.contexts", 100, "neither decided nor rejected",
			func(r stream.Record) []stream.Record {
				more := r
				more.Offset, more.Value = r.Offset+1<<40, []byte(`{"id":"nobody's","actions":["red","blue"]}`)
				return []stream.Record{r, more}
			}},
	} {
		n := 0
		if was.Stages == 0 && strings.HasPrefix(plant.topic, "stages") {
			continue
		}
		r := c.check(&doctored{c.log, func(topic string, r stream.Record) []stream.Record {
			if r.Type != "" || ofStage(topic, &r) != plant.topic {
				return []stream.Record{r}
			}
			if n++; n != plant.at {
				return []stream.Record{r}
			}
			return plant.edit(r)
		}}, replies)
		if r.Broken == 0 || !slices.ContainsFunc(r.Violations, func(v string) bool {
			return strings.Contains(v, plant.says)
		}) {
			c.t.Errorf("%s, and the checker says %d violations: %q", plant.name, r.Broken, r.Violations)
		}
	}
	if len(replies) > 0 {
		data := slices.Clone(replies[0].Data)
		data[len(data)/2] ^= 1
		replies[0].Data = data
		if r := c.check(c.log, replies); r.Broken == 0 {
			c.t.Error("an answer is not what the log says, and the checker is content")
		}
	}
}

// ofStage is the topic of a record, and of feedback whether it is of an earlier stage.
func ofStage(topic string, r *stream.Record) string {
	var f codec.Feedback
	if topic == "shop.feedback" && codec.ParseFeedback(&f, r.Value) == nil && f.Stage > 0 {
		return "stages of " + topic
	}
	return topic
}

// TestFenced holds that the check for writers that lost their partition can fail.
func TestFenced(t *testing.T) {
	if err := fenced(strings.Fields("a a b b b c")); err != nil {
		t.Error(err)
	}
	for _, names := range []string{"", "a a b a", "a b c b c", "a b b c a"} {
		if fenced(strings.Fields(names)) == nil {
			t.Errorf("%q is fine", names)
		}
	}
}
