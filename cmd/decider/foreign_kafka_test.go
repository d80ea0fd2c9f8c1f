package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hindsight/pkg/stream"
	"hindsight/pkg/stream/kafka"
	"hindsight/pkg/stream/kafkatest"
	"hindsight/pkg/stream/nats"
	"hindsight/pkg/stream/natstest"
)

// onThreeKafka is three brokers.
type onThreeKafka struct{ *onKafka }

func newOnThreeKafka(t *testing.T, o kafkatest.Options) *onThreeKafka {
	o.Brokers, o.HeapMB = 3, 384
	return &onThreeKafka{&onKafka{t: t, n: 3, session: chaosSession, cluster: kafkatest.Start(t, o),
		beside: natstest.Start(t, natstest.Options{})}}
}

// onWeakKafka makes two copies, of which one must have a record. Its users do not mind that records vanish.
type onWeakKafka struct{ *onThreeKafka }

func (p *onWeakKafka) loses() {}

func (p *onWeakKafka) flags() []string {
	return []string{"--log", fmt.Sprintf("kafka://%s/?session=%v&replication=2&min_isr=1",
		strings.Join(p.cluster.Brokers(), ","), p.session)}
}

func (p *onWeakKafka) dial() (stream.Log, stream.Bus) {
	c, err := kafka.Dial(p.t.Context(), kafka.Options{Brokers: p.cluster.Brokers()})
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { c.Close() })
	user, err := nats.Dial(p.beside.URL(), "test", nats.Options{})
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { user.Close() })
	return c.Log(), user.Bus()
}

// each calls f for all partitions of the model's topics.
func (p *onThreeKafka) each(f func(topic string, partition int)) {
	for _, topic := range shopTopics {
		for partition := range partitionsOf(topic) {
			f("shop."+topic, partition)
		}
	}
}

// unclean has the last broker with everything die, and one lead that was down before.
func (p *onThreeKafka) unclean(c *chaos) {
	p.each(func(topic string, partition int) { p.cluster.Assign(topic, partition, 1, 2) })
	p.each(func(topic string, partition int) { p.cluster.InSync(topic, partition, 2) })
	c.goesOn()
	p.cluster.Kill(2)
	c.goesOn()
	c.goesOn()
	p.cluster.Kill(1)
	p.cluster.Restart(2)
	p.each(func(topic string, partition int) { p.cluster.Elect(topic, partition, true) })
	c.goesOn()
	p.cluster.Restart(1)
}

// diskFull fills the disk of one broker, which ends, and makes room again.
func (p *onThreeKafka) diskFull(c *chaos) {
	p.inSync()
	fillDisk(c.t, nil, p.cluster.DataDir(2))
	<-p.cluster.Ended(2)
	c.goesOn()
	if err := os.Remove(filepath.Join(p.cluster.DataDir(2), "ballast")); err != nil {
		c.t.Fatal(err)
	}
	p.cluster.Restart(2)
}

// coordinators kills the brokers that coordinate groups, one after the other.
func (p *onThreeKafka) coordinators(c *chaos) {
	for partition := range 2 {
		p.inSync()
		broker := p.cluster.Leader("__consumer_offsets", partition)
		p.cluster.Kill(broker)
		c.goesOn()
		p.cluster.Restart(broker)
	}
}

// raised adds partitions to all topics, which the joiner says until it is started again.
func (p *onThreeKafka) raised(c *chaos) {
	cl := p.cluster.Client()
	for _, topic := range shopTopics {
		addPartitions(c.t, cl, "shop."+topic, 4)
	}
	eventually(c.t, "the joiner says so", func() bool {
		for _, j := range c.joiners {
			if code, page := j.page(j.admin(), "/readyz"); code == 503 && strings.Contains(page, "partitions by now") {
				return true
			}
		}
		return false
	})
	c.goesOn()
	c.killed(c.working(chaosFeedback, c.joiners))
}

// minute lets retention take all but the last minute, of feedback and snapshots as well.
func (p *onThreeKafka) minute(c *chaos) {
	p.each(func(topic string, _ int) {
		p.cluster.SetTopic(topic, "segment.ms", "5000")
		p.cluster.SetTopic(topic, "retention.ms", "60000")
	})
	for began := time.Now(); time.Since(began) < 75*time.Second; {
		c.goesOn()
	}
	for _, topic := range []string{"decisions", "feedback", "outcomes", "contexts"} {
		eventually(c.t, "the beginning of "+topic+" is gone", func() bool {
			first, _, err := c.log.Bounds(c.t.Context(), "shop."+topic, 0)
			return err == nil && first > 0
		})
	}
}

// auditMinute holds that a system at work does not mind, and that one that begins then, which has no snapshot of
// what is gone, says what it misses.
func (p *onThreeKafka) auditMinute(c *chaos) {
	for _, q := range append(c.deciders, c.joiners...) {
		q.stop(patience)
	}
	verify := c.verify()
	out, err := verify.CombinedOutput()
	c.t.Logf("replayer verify: %v\n%s", err, lastLines(string(out), 12))
	if verify.ProcessState.ExitCode() != 3 {
		c.t.Error("verify does not say that some of it cannot be recomputed")
	}
	for _, q := range []*process{c.decider(), c.joiner()} {
		eventually(c.t, q.cmd.Args[0]+" begins or says what is gone", func() bool {
			return q.said("msg=ready ") > 0 || q.said("retention has dropped") > 0
		})
		c.t.Log(lastLine(q))
	}
}

// TestKafkaRealForeign strikes three brokers.
func TestKafkaRealForeign(t *testing.T) {
	kafkatest.Heavy(t)
	if long(0, 1) == 0 {
		t.Skip("HINDSIGHT_LONG=1 runs it")
	}
	for _, f := range []struct {
		name   string
		o      kafkatest.Options
		weak   bool
		strike func(p *onThreeKafka, c *chaos)
		audit  func(p *onThreeKafka, c *chaos)
	}{
		{"unclean leader election", kafkatest.Options{}, true, (*onThreeKafka).unclean,
			func(_ *onThreeKafka, c *chaos) { c.auditLoss() }},
		{"a disk fills on one", kafkatest.Options{DiskMB: 96}, false, (*onThreeKafka).diskFull, nil},
		{"coordinators are killed", kafkatest.Options{}, false, (*onThreeKafka).coordinators, nil},
		{"partitions are added", kafkatest.Options{}, false, (*onThreeKafka).raised, nil},
		{"retention is cut to a minute", kafkatest.Options{}, false, (*onThreeKafka).minute,
			(*onThreeKafka).auditMinute},
	} {
		t.Run(f.name, func(t *testing.T) {
			p := newOnThreeKafka(t, f.o)
			place := chaosPlace(p)
			if f.weak {
				place = &onWeakKafka{p}
			}
			fault := &foreignFault{name: f.name, strike: func(c *chaos) { f.strike(p, c) }}
			if f.audit != nil {
				fault.audit = func(c *chaos) { f.audit(p, c) }
			}
			runForeign(t, place, fault)
		})
	}
}
