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

// onLossyKafka has users who do not mind that records vanish.
type onLossyKafka struct{ *onThreeKafka }

func (p *onLossyKafka) loses() {}

func (p *onLossyKafka) dial() (stream.Log, stream.Bus) {
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

// onWeakKafka makes two copies, of which one must have a record.
type onWeakKafka struct{ *onLossyKafka }

func (p *onWeakKafka) flags() []string {
	return []string{"--log", fmt.Sprintf("kafka://%s/?session=%v&replication=2&min_isr=1",
		strings.Join(p.cluster.Brokers(), ","), p.session)}
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

// checkpoints are the files that a broker syncs by any setting: the log of the cluster's metadata, votes and offsets
// of checkpoints. It leaves records to the system.
func checkpoints(path string) bool {
	return strings.HasPrefix(path, "__cluster_metadata-") || strings.HasSuffix(path, "-checkpoint") ||
		!strings.Contains(path, "-") || filepath.Base(path) == "partition.metadata"
}

// flushed are the files that it syncs with flush.messages=1 on the model's topics.
func flushed(path string) bool { return checkpoints(path) || strings.HasPrefix(path, "shop.") }

// cut takes the power of brokers, whose disks then lack some rounds.
func (p *onThreeKafka) cut(c *chaos, synced func(string) bool, brokers ...int) {
	p.inSync()
	images := map[int]string{}
	for _, i := range brokers {
		p.cluster.Pause(i)
		images[i] = imageOf(c.t, p.cluster.DataDir(i))
		p.cluster.Resume(i)
	}
	c.goesOn()
	p.inSync()
	c.goesOn()
	for _, i := range brokers {
		p.cluster.Kill(i)
	}
	for _, i := range brokers {
		if lost := unsync(c.t, p.cluster.DataDir(i), images[i], synced); lost == 0 {
			c.t.Errorf("broker %d had synced all that it has", i)
		}
	}
}

// again starts brokers that have lost their power.
func (p *onThreeKafka) again(brokers ...int) {
	for _, i := range brokers {
		p.cluster.Launch(i)
	}
	for _, i := range brokers {
		p.cluster.Await(i)
	}
}

// powerOfOne cuts the power of each broker in turn; it comes back at once, and the next time when the others lead.
func (p *onThreeKafka) powerOfOne(c *chaos) {
	for i := range 6 {
		broker := i%3 + 1
		p.cut(c, checkpoints, broker)
		if i >= 3 {
			c.goesOn()
		}
		p.again(broker)
		c.goesOn()
	}
}

// powerOfTwo leaves the third at work.
func (p *onThreeKafka) powerOfTwo(c *chaos) {
	for i := range 3 {
		two := []int{i + 1, (i+1)%3 + 1}
		p.cut(c, checkpoints, two...)
		p.again(two...)
		c.goesOn()
	}
}

// powerOfTwoFirst has these two start without the third, which then may not know better.
func (p *onThreeKafka) powerOfTwoFirst(c *chaos) {
	p.cut(c, checkpoints, 1, 2)
	p.cluster.Kill(3)
	p.again(1, 2)
	c.wait(true)
	p.cluster.Restart(3)
	c.goesOn()
}

// skew is between the clocks of two brokers: more than two log times may differ by for verify, less than patience.
const skew = 15 * time.Second

// clocks gives the brokers clocks that differ, and has each of them lead in turn.
func (p *onThreeKafka) clocks(c *chaos) {
	for turn := range 2 {
		for i := 1; i <= 3; i++ {
			if turn == 0 {
				p.cluster.SetClock(i, time.Duration(2-i)*skew)
			}
			p.inSync()
			p.cluster.Kill(i)
			c.goesOn()
			p.cluster.Restart(i)
			c.goesOn()
		}
	}
}

// powerOfAll leaves nobody.
func (p *onThreeKafka) powerOfAll(c *chaos) {
	p.cut(c, checkpoints, 1, 2, 3)
	p.again(1, 2, 3)
	c.goesOn()
}

// powerOfFlushed leaves nobody either, and every record was synced before it was acknowledged.
func (p *onThreeKafka) powerOfFlushed(c *chaos) {
	for _, topic := range shopTopics {
		p.cluster.SetTopic("shop."+topic, "flush.messages", "1")
	}
	p.cut(c, flushed, 1, 2, 3)
	p.again(1, 2, 3)
	c.goesOn()
}

// TestKafkaRealForeign strikes three brokers.
func TestKafkaRealForeign(t *testing.T) {
	kafkatest.Heavy(t)
	if long(0, 1) == 0 {
		t.Skip("HINDSIGHT_LONG=1 runs it")
	}
	strict := func(p *onThreeKafka) chaosPlace { return p }
	lossy := func(p *onThreeKafka) chaosPlace { return &onLossyKafka{p} }
	weak := func(p *onThreeKafka) chaosPlace { return &onWeakKafka{&onLossyKafka{p}} }
	loss := func(_ *onThreeKafka, c *chaos) { c.auditLoss() }
	for _, f := range []struct {
		name   string
		o      kafkatest.Options
		place  func(p *onThreeKafka) chaosPlace
		strike func(p *onThreeKafka, c *chaos)
		audit  func(p *onThreeKafka, c *chaos)
	}{
		{"unclean leader election", kafkatest.Options{}, weak, (*onThreeKafka).unclean, loss},
		{"power cut of one", kafkatest.Options{}, strict, (*onThreeKafka).powerOfOne, nil},
		{"power cut of two", kafkatest.Options{}, strict, (*onThreeKafka).powerOfTwo, nil},
		{"power cut of two and the third comes last", kafkatest.Options{}, lossy, (*onThreeKafka).powerOfTwoFirst,
			loss},
		{"clocks apart", kafkatest.Options{}, strict, (*onThreeKafka).clocks,
			func(_ *onThreeKafka, c *chaos) { auditClocks(c) }},
		{"power cut of all", kafkatest.Options{}, lossy, (*onThreeKafka).powerOfAll, loss},
		{"power cut of all with flush.messages=1", kafkatest.Options{}, strict, (*onThreeKafka).powerOfFlushed, nil},
		{"a disk fills on one", kafkatest.Options{DiskMB: 96}, strict, (*onThreeKafka).diskFull, nil},
		{"coordinators are killed", kafkatest.Options{}, strict, (*onThreeKafka).coordinators, nil},
		{"partitions are added", kafkatest.Options{}, strict, (*onThreeKafka).raised, nil},
		{"retention is cut to a minute", kafkatest.Options{}, strict, (*onThreeKafka).minute,
			(*onThreeKafka).auditMinute},
	} {
		t.Run(f.name, func(t *testing.T) {
			p := newOnThreeKafka(t, f.o)
			fault := &foreignFault{name: f.name, strike: func(c *chaos) { f.strike(p, c) }}
			if f.audit != nil {
				fault.audit = func(c *chaos) { f.audit(p, c) }
			}
			runForeign(t, f.place(p), fault)
		})
	}
}
