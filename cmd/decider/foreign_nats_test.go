package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"hindsight/internal/service"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/kafkatest"
	"hindsight/pkg/stream/nats"
	"hindsight/pkg/stream/natstest"
)

// onThreeNATS is three nats-servers with three copies of every stream.
type onThreeNATS struct {
	t       *testing.T
	servers []*natstest.Server
	between map[[2]int]*kafkatest.Proxy // by who connects to whom
}

// onLossyNATS has users who do not mind that records vanish.
type onLossyNATS struct{ *onThreeNATS }

func (p *onLossyNATS) loses() {}

func newOnThreeNATS(t *testing.T, o natstest.Options) *onThreeNATS {
	p := &onThreeNATS{t: t, between: map[[2]int]*kafkatest.Proxy{}}
	p.servers = natstest.ClusterOf(t, 3, o, func(from, to, port int) (through int) {
		p.between[[2]int{from, to}], through = kafkatest.NewProxy(t, port)
		return through
	})
	c, err := (&nats.Access{URL: p.url()}).Dial("test", nats.Options{Replicas: 3})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Leases(t.Context(), service.LeaseBucket("shop"), p.lapse()); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *onThreeNATS) url() string {
	var all []string
	for _, s := range p.servers {
		all = append(all, s.URL())
	}
	return strings.Join(all, ",")
}

func (p *onThreeNATS) flags() []string { return []string{"--log", p.url()} }

func (p *onThreeNATS) deciderFlags() []string { return []string{"--nats-replicas", "3"} }

func (p *onThreeNATS) writes() bool { return false }

func (p *onThreeNATS) lapse() time.Duration { return 3 * sharedTTL }

func (p *onThreeNATS) faults() []chaosFault { return nil }

func (p *onThreeNATS) dial() (stream.Log, stream.Bus) {
	p.t.Helper()
	c, err := (&nats.Access{URL: p.url()}).Dial("test", nats.Options{Replicas: 3})
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { c.Close() })
	return c.Log(), c.Bus()
}

// openings numbers them: records of a replicated stream do not say who wrote them.
func (p *onThreeNATS) openings(topic string, partition int) (names []string) {
	p.t.Helper()
	log, _ := p.dial()
	name := ""
	err := stream.Scan(p.t.Context(), log, topic, partition, stream.Earliest, 1<<62, func(r *stream.Record) error {
		if r.Type == stream.TypeOpen {
			name += "+"
		}
		names = append(names, name)
		return nil
	})
	if err != nil {
		p.t.Error(err)
	}
	return names
}

// disk copies what a server's files hold.
func (p *onThreeNATS) disk(i int) (image string) {
	p.t.Helper()
	s := p.servers[i]
	s.Pause()
	defer s.Resume()
	return imageOf(p.t, s.Dir())
}

// powerCut kills a server and takes from its disk what was written since the image and not synced.
func (p *onThreeNATS) powerCut(i int, image string, synced func(path string) bool) {
	p.t.Helper()
	p.servers[i].Kill()
	unsync(p.t, p.servers[i].Dir(), image, synced)
}

func (p *onThreeNATS) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// votes are the files of Raft that a server syncs by any setting: terms, votes, peers and snapshots.
func votes(path string) bool {
	name := filepath.Base(path)
	return name == "tav.idx" || name == "peers.idx" || strings.Contains(path, "/snapshots/")
}

// journals are the files that it syncs with sync_interval always: those, and Raft's journals.
func journals(path string) bool { return votes(path) || strings.Contains(path, "/$SYS/") }

// cut takes the power of so many servers, whose disks then lack some rounds.
func (p *onThreeNATS) cut(c *chaos, servers int, synced func(string) bool) {
	var images []string
	for i := range servers {
		images = append(images, p.disk(i))
	}
	c.goesOn()
	c.goesOn()
	for i, image := range images {
		p.powerCut(i, image, synced)
	}
}

// rebuild makes every stream anew from the replica that leads it, as an operator does with nats stream edit: to one
// replica, and to three again.
func (p *onThreeNATS) rebuild() {
	p.t.Helper()
	conn := admin(p.t, p.url())
	var list struct {
		Streams []struct {
			Config map[string]any `json:"config"`
		} `json:"streams"`
	}
	p.asks(conn, "STREAM.LIST", nil, &list)
	for _, s := range list.Streams {
		name := s.Config["name"].(string)
		for _, replicas := range []int{1, 3} {
			s.Config["num_replicas"] = replicas
			for limit := time.Now().Add(4 * patience); !p.has(conn, name, replicas); <-time.After(time.Second) {
				if time.Now().After(limit) {
					p.t.Fatalf("%s has not got %d replicas", name, replicas)
				}
				p.asks(conn, "STREAM.UPDATE."+name, s.Config, &struct{}{})
			}
		}
	}
}

// has reports whether a stream has so many replicas, all of them current.
func (p *onThreeNATS) has(conn *natsgo.Conn, name string, replicas int) bool {
	var info struct {
		Config struct {
			Replicas int `json:"num_replicas"`
		} `json:"config"`
		Cluster struct {
			Leader   string `json:"leader"`
			Replicas []struct {
				Current bool `json:"current"`
			} `json:"replicas"`
		} `json:"cluster"`
	}
	p.asks(conn, "STREAM.INFO."+name, nil, &info)
	for _, r := range info.Cluster.Replicas {
		if !r.Current {
			return false
		}
	}
	return info.Config.Replicas == replicas && info.Cluster.Leader != "" && len(info.Cluster.Replicas) == replicas-1
}

// asks asks the API until it answers without an error.
func (p *onThreeNATS) asks(conn *natsgo.Conn, what string, request, into any) {
	p.t.Helper()
	eventually(p.t, what, func() bool {
		data, err := json.Marshal(request)
		p.must(err)
		m, err := conn.Request("$JS.API."+what, data, 5*time.Second)
		if err != nil {
			return false
		}
		var answer struct {
			Error any `json:"error"`
		}
		return json.Unmarshal(m.Data, &answer) == nil && answer.Error == nil && json.Unmarshal(m.Data, into) == nil
	})
}

// alike holds that all servers have the same records in the end.
func (p *onThreeNATS) alike() {
	p.t.Helper()
	if differ := p.differences(); len(differ) > 0 {
		p.t.Errorf("the servers have different records: %v", differ)
	}
}

// differences asks each server alone, and returns the records that differ.
func (p *onThreeNATS) differences() (all []string) {
	p.t.Helper()
	var logs []*nats.Log
	for _, s := range p.servers {
		c, err := (&nats.Access{URL: s.URL()}).Dial("test", nats.Options{Replicas: 3})
		p.must(err)
		defer c.Close()
		logs = append(logs, c.Log())
	}
	for _, topic := range shopTopics {
		for partition := range partitionsOf(topic) {
			first, next, err := logs[0].Bounds(p.t.Context(), "shop."+topic, partition)
			if err != nil {
				all = append(all, err.Error())
				continue
			}
			for at := first; at < next; at++ {
				var has [3]string
				for i, log := range logs {
					value, err := log.Get(p.t.Context(), "shop."+topic, partition, at)
					has[i] = fmt.Sprintf("%x %v", value, err)
				}
				if has[0] != has[1] || has[1] != has[2] {
					all = append(all, fmt.Sprintf("%s[%d]@%d", topic, partition, at))
				}
			}
		}
	}
	return all
}

func partitionsOf(topic string) int {
	if topic == "contexts" || topic == "outcomes" || topic == "decisions" {
		return chaosPartitions
	}
	return 1
}

// blocks are the files that hold a stream's records on a server.
func (p *onThreeNATS) blocks(server int, name string) []string {
	p.t.Helper()
	all, err := filepath.Glob(filepath.Join(p.servers[server].Dir(), "jetstream", "$G", "streams", name, "msgs",
		"*.blk"))
	if err != nil || len(all) == 0 {
		p.t.Fatalf("no blocks of %s: %v", name, err)
	}
	return all
}

// damage changes bytes in the middle of a stream's first block on a server, while it runs.
func (p *onThreeNATS) damage(server int, name string, change func(data []byte)) {
	p.t.Helper()
	path := p.blocks(server, name)[0]
	data, err := os.ReadFile(path)
	p.must(err)
	change(data)
	p.must(os.WriteFile(path, data, 0o600))
}

// isolated holds or heals the connections between one server and the others.
func (p *onThreeNATS) isolated(server int, set func(*kafkatest.Proxy)) {
	for ends, proxy := range p.between {
		if ends[0] == server || ends[1] == server {
			set(proxy)
		}
	}
}

// damaged changes the blocks of all of the system's streams on one server, which is restarted then.
func (p *onThreeNATS) damaged(c *chaos, change func(data []byte)) {
	for _, name := range []string{"shop_decisions_0", "shop_decisions_1", "shop_feedback_0", "shop_outcomes_0",
		"shop_contexts_1"} {
		p.damage(1, name, change)
	}
	c.goesOn()
	p.servers[1].Kill()
	c.goesOn()
	p.servers[1].Restart()
	c.goesOn()
	p.servers[0].Kill() // the damaged one is needed
	c.goesOn()
	p.servers[0].Restart()
}

// clocks gives the servers clocks that are an hour apart, and has each of them lead in turn: log time jumps forward
// by an hour, and stands still where a leader's clock is behind.
func (p *onThreeNATS) clocks(c *chaos) {
	exe := natstest.OtherClock(p.t)
	for turn := range 2 {
		for i, s := range p.servers {
			if turn == 0 {
				s.SetClock(exe, time.Duration(1-i)*time.Hour)
			}
			s.Kill()
			c.goesOn()
			s.Restart()
			c.goesOn()
		}
	}
}

// auditClocks holds that nothing is gone, and that verify finds nothing else than the clocks.
func auditClocks(c *chaos) {
	c.rest()
	c.order = func(*stream.Record) int64 { return 0 } // log times do not tell
	c.judge(c.check(c.log, c.load.replies))
	out, err := c.verify().CombinedOutput()
	c.t.Logf("replayer verify: %v\n%s", err, lastLines(string(out), 14))
	verify := c.verify("--clock-skew", "3h")
	if out, err = verify.CombinedOutput(); err != nil || !strings.Contains(string(out), "identical") {
		c.t.Errorf("replayer verify --clock-skew 3h: %v\n%s", err, out)
	}
}

var lossAudit = (*chaos).auditLoss

// TestForeignNATS strikes three nats-servers.
func TestForeignNATS(t *testing.T) {
	if long(0, 1) == 0 {
		t.Skip("three servers take their time: HINDSIGHT_LONG=1")
	}
	minutes := natstest.Options{SyncInterval: 2 * time.Minute} // a server's own default
	var p *onThreeNATS
	for _, f := range []struct {
		foreignFault
		o natstest.Options
	}{
		{foreignFault{name: "power cut of one", strike: func(c *chaos) {
			p.cut(c, 1, votes)
			c.goesOn()
			p.servers[0].Restart()
		}}, minutes},
		{foreignFault{name: "power cut of two and the third comes last", audit: lossAudit, strike: func(c *chaos) {
			p.cut(c, 2, votes)
			p.servers[2].Kill()
			p.servers[0].Restart()
			p.servers[1].Restart()
			c.goesOn()
			p.servers[2].Restart()
			p.rebuild()
		}}, minutes},
		{foreignFault{name: "power cut of all with sync_interval always", strike: func(c *chaos) {
			p.cut(c, 3, journals)
			for _, s := range p.servers {
				s.Restart()
			}
		}}, natstest.Options{SyncAlways: true}},
		{foreignFault{name: "bits flip on one", strike: func(c *chaos) {
			p.damaged(c, func(data []byte) { data[len(data)/2] ^= 1 })
		}}, natstest.Options{}},
		{foreignFault{name: "blocks are zeros on one", strike: func(c *chaos) {
			p.damaged(c, func(data []byte) { clear(data[len(data)/3 : len(data)/2]) })
		}}, natstest.Options{}},
		{foreignFault{name: "a partition that heals", strike: func(c *chaos) {
			for i := range p.servers {
				p.isolated(i, (*kafkatest.Proxy).Hold)
				c.wait(true)
				c.wait(true)
				p.isolated(i, (*kafkatest.Proxy).Heal)
				c.goesOn()
			}
		}}, natstest.Options{}},
		{foreignFault{name: "clocks an hour apart", audit: auditClocks, strike: func(c *chaos) { p.clocks(c) }},
			natstest.Options{}},
	} {
		t.Run(f.name, func(t *testing.T) {
			p = newOnThreeNATS(t, f.o)
			place := chaosPlace(p)
			if f.o.SyncInterval > 0 && f.audit != nil {
				place = &onLossyNATS{p}
			}
			runForeign(t, place, &f.foreignFault)
			p.alike()
		})
	}
	t.Run("power cut of two", majority)
}

// majority cuts the power of two servers while the third keeps running: each of the two may lead streams without
// what the third has of them, and the replicas may differ for good. Then a process says so.
func majority(t *testing.T) {
	p := &onLossyNATS{newOnThreeNATS(t, natstest.Options{SyncInterval: 2 * time.Minute})}
	c := newChaos(t, p, shop, testSeed(t), foreignPace)
	c.goesOn()
	p.cut(c, 2, votes)
	p.servers[0].Restart()
	p.servers[1].Restart()
	for limit := time.Now().Add(4 * patience); ; <-time.After(5 * time.Second) {
		var said []string
		for _, text := range []string{"have lost their tails", "lacks records that the stream's leader has",
			"no longer holds what a cut took"} {
			for _, q := range c.byPID {
				if q.said(text) > 0 {
					said = append(said, text)
				}
			}
		}
		if len(said) > 0 {
			t.Logf("processes say: %q", said)
			return
		}
		if len(p.differences()) == 0 {
			c.goesOn()
			t.Log("no replica differs")
			return
		}
		if time.Now().After(limit) {
			t.Fatalf("replicas differ, and nobody says so: %v", p.differences())
		}
	}
}
