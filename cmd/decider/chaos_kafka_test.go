package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"hindsight/pkg/stream"
	"hindsight/pkg/stream/kafkatest"
	"hindsight/pkg/stream/nats"
	"hindsight/pkg/stream/natstest"
)

// onKafka is real brokers, one or three, with requests on a NATS server beside. The
// system's users, and who reads the logs back, have another Kafka client than it has.
type onKafka struct {
	t       *testing.T
	n       int // brokers
	session time.Duration
	cluster *kafkatest.Cluster
	beside  *natstest.Server
	seen    *observer
	down    []time.Duration // from a leader's death to new records everywhere, without it
}

func newOnKafka(t *testing.T, brokers int, session time.Duration) *onKafka {
	return &onKafka{t: t, n: brokers, session: session,
		cluster: kafkatest.Start(t, kafkatest.Options{Brokers: brokers, HeapMB: 384}),
		beside:  natstest.Start(t, natstest.Options{})}
}

func (p *onKafka) flags() []string {
	url := fmt.Sprintf("kafka://%s/?session=%v", strings.Join(p.cluster.Brokers(), ","), p.session)
	if p.n > 1 {
		url += "&replication=3&min_isr=2"
	}
	return []string{"--log", url}
}

func (p *onKafka) deciderFlags() []string { return []string{"--nats", p.beside.URL()} }

// writes implements chaosPlace. By its clock alone a member knows that its session is over.
func (p *onKafka) writes() bool { return false }

func (p *onKafka) lapse() time.Duration { return p.session }

func (p *onKafka) dial() (stream.Log, stream.Bus) {
	p.t.Helper()
	c, err := nats.Dial(p.beside.URL(), "test", nats.Options{})
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { c.Close() })
	p.seen = observe(p.t, p.cluster)
	return p.seen, c.Bus()
}

func (p *onKafka) faults() []chaosFault {
	restarts := []chaosFault{
		{"kill -9 of a broker", func(c *chaos) { p.restart(c, p.cluster.Kill) }},
		{"SIGTERM of a broker", func(c *chaos) { p.restart(c, p.cluster.Stop) }},
	}
	if p.n == 1 {
		return restarts
	}
	restarts[0] = chaosFault{"kill -9 of a leader", p.leaderKilled}
	return append(restarts, chaosFault{"a leader moves", func(c *chaos) {
		part := chaosParts()[c.r.IntN(len(chaosParts()))]
		p.inSync()
		leader := p.cluster.Leader("shop."+part.topic, part.partition)
		p.cluster.MoveLeader("shop."+part.topic, part.partition, (leader+c.r.IntN(p.n-1))%p.n+1)
	}})
}

// restart ends a broker and starts it again.
func (p *onKafka) restart(c *chaos, end func(int)) {
	broker := 1 + c.r.IntN(p.n)
	if p.n > 1 {
		p.inSync()
	}
	end(broker)
	c.wait(c.r.IntN(3) == 0)
	p.cluster.Restart(broker)
}

// leaderKilled kills the broker that leads a partition: the others go on without it.
func (p *onKafka) leaderKilled(c *chaos) {
	part := chaosParts()[c.r.IntN(len(chaosParts()))]
	p.inSync()
	leader := p.cluster.Leader("shop."+part.topic, part.partition)
	began := time.Now()
	p.cluster.Kill(leader)
	c.goesOn()
	p.down = append(p.down, time.Since(began))
	p.cluster.Restart(leader)
}

// inSync waits until all brokers have everything: then each of them can go.
func (p *onKafka) inSync() {
	p.t.Helper()
	for topic, partitions := range map[string]int{"shop.contexts": chaosPartitions, "shop.outcomes": chaosPartitions,
		"shop.decisions": chaosPartitions,
		"shop.feedback":  1, "shop.rejects": 1, "shop.snapshots": 1, "__consumer_offsets": 2} {
		for i := range partitions {
			p.cluster.InSync(topic, i, p.n)
		}
	}
}

// openings holds that what another client saw at any time is what is there in the end, and
// that each opening begins with its open record, under a later epoch than all before.
func (p *onKafka) openings(topic string, partition int) (names []string) {
	p.t.Helper()
	was := p.seen.sightOf(p.t, topic, partition)
	is := observe(p.t, p.cluster).sightOf(p.t, topic, partition)
	if len(was) != len(is) {
		p.t.Errorf("%s[%d]: %d records were seen, and %d are there", topic, partition, len(was), len(is))
	}
	for i, r := range is {
		if i < len(was) && !sameRecord(was[i], r) {
			p.t.Errorf("%s[%d]@%d was seen, and is another now", topic, partition, r.Offset)
		}
		begins := i == 0 || r.ProducerID != is[i-1].ProducerID || r.ProducerEpoch != is[i-1].ProducerEpoch
		if opens := recordOf(r).Type == stream.TypeOpen; opens != begins {
			p.t.Errorf("%s[%d]@%d of producer %d, epoch %d: is it an open record? %v, the first of its "+
				"epoch? %v", topic, partition, r.Offset, r.ProducerID, r.ProducerEpoch, opens, begins)
		}
		if i > 0 && (r.ProducerID < is[i-1].ProducerID || r.ProducerID == is[i-1].ProducerID &&
			r.ProducerEpoch < is[i-1].ProducerEpoch) {
			p.t.Errorf("%s[%d]@%d is of an earlier owner than the record before", topic, partition, r.Offset)
		}
		names = append(names, fmt.Sprintf("%d.%d", r.ProducerID, r.ProducerEpoch))
	}
	return names
}

func sameRecord(a, b *kgo.Record) bool {
	return a.Offset == b.Offset && a.ProducerID == b.ProducerID && a.ProducerEpoch == b.ProducerEpoch &&
		a.Timestamp.Equal(b.Timestamp) && bytes.Equal(a.Key, b.Key) && bytes.Equal(a.Value, b.Value)
}

// sightOf returns all of a partition as franz-go tells it.
func (o *observer) sightOf(t testing.TB, topic string, partition int) []*kgo.Record {
	t.Helper()
	if err := stream.Scan(t.Context(), o, topic, partition, stream.Earliest, 1<<62,
		func(*stream.Record) error { return nil }); err != nil {
		t.Fatal(err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.seen[observed{topic, int32(partition)}].raw
}

// TestKafkaRealChaos hurts two deciders and two joiners on one broker, each a process of
// its own, and the broker, 100 times, so slowly that the ids of all rounds are remembered.
// It is for HINDSIGHT_LONG=1; three brokers have all of its faults.
func TestKafkaRealChaos(t *testing.T) {
	kafkatest.Heavy(t)
	if long(0, 1) == 0 {
		t.Skip("HINDSIGHT_LONG=1 runs it")
	}
	runChaos(t, newOnKafka(t, 1, chaosSession), shop, 100, 10)
}

// TestKafkaRealChaosOfThree does the same on three brokers with three copies of
// everything, of which two must have a record: leaders die under load, and move. It has
// 25 faults, at least three of each kind, and with HINDSIGHT_LONG=1 100 under twice the
// load: two processors are for all of it.
func TestKafkaRealChaosOfThree(t *testing.T) {
	kafkatest.Heavy(t)
	p := newOnKafka(t, 3, chaosSession)
	runChaos(t, p, shop, long(25, 100), long(20, 10))
	t.Logf("leaders were killed; new records in all partitions %v later", p.down)
}

// chaosSession is how long a process may be silent before the group gives its part away.
const chaosSession = 6 * time.Second

// TestKafkaPlan holds that no kind of fault is left out.
func TestKafkaPlan(t *testing.T) {
	for _, n := range []int{1, 3} {
		kinds := append(chaosFaults(), (&onKafka{n: n}).faults()...)
		count := map[string]int{}
		for _, f := range plan(rand.New(rand.NewPCG(uint64(n), 0)), kinds, 25) {
			count[f.name]++
		}
		for _, k := range kinds {
			if count[k.name] < 3 {
				t.Errorf("%d brokers: of 25 faults %d are %q", n, count[k.name], k.name)
			}
		}
	}
}
