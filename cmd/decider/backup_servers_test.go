package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	natsgo "github.com/nats-io/nats.go"

	"hindsight/internal/check"
	"hindsight/internal/daemon"
	"hindsight/internal/join"
	"hindsight/pkg/stream/nats"
)

// TestBackupServers does what docs/backup.md says about backups on NATS servers,
// by the interface that the servers' own tools use: with the processes stopped it takes
// snapshots of the model's streams, and another server, on which they are restored,
// goes on as from the state that was copied.
func TestBackupServers(t *testing.T) {
	notShort(t)
	t.Parallel()
	seed := testSeed(t)
	dir := t.TempDir()
	model, seedFile := writeModel(t, dir, shop), filepath.Join(dir, "seed")
	startOn := func(s *natsProgram) *process {
		return start(t, decider(t, "--log", s.url, "--model", model, "--seed-file", seedFile)).ready()
	}
	use := func(s *natsProgram, prefix string) *load {
		c, err := (&nats.Access{URL: s.url}).Dial("test", nats.Options{})
		if err != nil {
			t.Fatal(err)
		}
		l := newLoadOf(t, "", "shop", seed, loadOptions{prefix: prefix})
		l.set(&link{t.Context(), c.Log(), c.Bus(), func() { c.Close() }})
		eventually(t, "users are at work", func() bool {
			l.mu.Lock()
			defer l.mu.Unlock()
			return len(l.replies) >= 30
		})
		l.stop()
		settle(t, l)
		return l
	}
	old, other := startNATS(t, "shop", "first"), startNATS(t, "shop", "second")
	p := startOn(old)
	before := use(old, "before-")
	p.stop(patience)
	backup := takeSnapshots(t, old.url)
	p = startOn(old)
	was := decideOnce(t, old.url, "probe")
	p.stop(patience)
	old.kill()

	restoreSnapshots(t, other.url, backup)
	p = startOn(other)
	if is := decideOnce(t, other.url, "probe"); !reflect.DeepEqual(is, was) {
		t.Errorf("the restored system decides\n%+v, the old one decided\n%+v", is, was)
	}
	then := use(other, "then-")
	p.stop(patience)
	log := then.link().log
	auditUsers(t, log, before)
	auditUsers(t, log, then)
	secret, err := daemon.SeedFile(seedFile)
	if err != nil {
		t.Fatal(err)
	}
	r, err := check.Run(t.Context(), log, "shop", 1,
		check.Options{Seed: secret, Rules: rulesOf, Replies: append(before.replies, then.replies...)})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range r.Violations {
		t.Error(v)
	}
	verifyLogs(t.Context(), t, log, "shop", secret, join.ClockSkew)
	t.Logf("%d streams, decision %d is the same before and after; %s", len(backup), was.N, figures(r))
}

// streamSnapshot is the backup of one stream.
type streamSnapshot struct {
	name          string
	config, state json.RawMessage
	chunks        [][]byte
}

// ask asks the server's interface for streams.
func ask(t *testing.T, conn *natsgo.Conn, subject string, request, answer any) {
	t.Helper()
	data, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	m, err := conn.Request("$JS.API."+subject, data, patience)
	if err == nil {
		err = json.Unmarshal(m.Data, answer)
	}
	if err != nil || strings.Contains(string(m.Data), `"error"`) {
		t.Fatalf("%s: %v %s", subject, err, m.Data)
	}
}

func admin(t *testing.T, url string) *natsgo.Conn {
	t.Helper()
	conn, err := natsgo.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}

// takeSnapshots takes one of each stream of the model.
func takeSnapshots(t *testing.T, url string) (all []streamSnapshot) {
	t.Helper()
	conn := admin(t, url)
	var list struct {
		Streams []string `json:"streams"`
	}
	ask(t, conn, "STREAM.NAMES", struct{}{}, &list)
	for _, name := range list.Streams {
		if !strings.HasPrefix(name, "shop_") { // KV_shop_leases is not needed
			continue
		}
		inbox := conn.NewInbox()
		sub, err := conn.SubscribeSync(inbox)
		if err != nil {
			t.Fatal(err)
		}
		s := streamSnapshot{name: name}
		var head struct {
			Config json.RawMessage `json:"config"`
			State  json.RawMessage `json:"state"`
		}
		ask(t, conn, "STREAM.SNAPSHOT."+name, map[string]any{"deliver_subject": inbox, "no_consumers": true,
			"chunk_size": 64 << 10}, &head)
		s.config, s.state = head.Config, head.State
		for {
			m, err := sub.NextMsg(patience)
			if err != nil {
				t.Fatalf("snapshot of %s: %v", name, err)
			}
			if len(m.Data) == 0 {
				if status := m.Header.Get("Status"); status != "" && status != "204" {
					t.Fatalf("snapshot of %s: %v", name, m.Header)
				}
				break
			}
			s.chunks = append(s.chunks, m.Data)
			if m.Reply == "" {
				continue
			}
			if err := m.Respond(nil); err != nil { // the server waits for it now and then
				t.Fatal(err)
			}
		}
		all = append(all, s)
	}
	if len(all) != 6 {
		t.Fatalf("%d streams: %v", len(all), list.Streams)
	}
	return all
}

// restoreSnapshots makes streams from snapshots.
func restoreSnapshots(t *testing.T, url string, all []streamSnapshot) {
	t.Helper()
	conn := admin(t, url)
	for _, s := range all {
		var to struct {
			Subject string `json:"deliver_subject"`
		}
		ask(t, conn, "STREAM.RESTORE."+s.name, map[string]any{"config": s.config, "state": s.state}, &to)
		for _, chunk := range append(s.chunks, nil) { // an empty one is the end
			m, err := conn.Request(to.Subject, chunk, patience)
			if err != nil || strings.Contains(string(m.Data), `"error"`) {
				t.Fatal(fmt.Errorf("restore %s: %v %s", s.name, err, m.Data))
			}
		}
	}
}
