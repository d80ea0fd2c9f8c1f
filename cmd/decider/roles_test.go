package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hindsight/pkg/codec"
)

// startConfigured runs the server of compose/nats.conf, on a port and a folder of its own.
func startConfigured(t *testing.T) *server.Server {
	t.Helper()
	for _, role := range []string{"service", "pipeline", "requester"} {
		t.Setenv(strings.ToUpper(role)+"_PASSWORD", role+"-secret")
	}
	o, err := server.ProcessConfigFile("../../compose/nats.conf")
	if err != nil {
		t.Fatal(err)
	}
	o.Host, o.Port, o.StoreDir, o.NoSigs, o.NoLog = "127.0.0.1", -1, t.TempDir(), true, true
	s, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(patience) {
		t.Fatal("the server is not ready")
	}
	return s
}

// role is somebody on that server, and what it is refused.
type role struct {
	t       *testing.T
	name    string
	conn    *natsgo.Conn
	refused chan error
}

func as(t *testing.T, s *server.Server, name string) *role {
	t.Helper()
	r := &role{t: t, name: name, refused: make(chan error, 16)}
	var err error
	r.conn, err = natsgo.Connect("nats://"+s.Addr().String(), natsgo.UserInfo(name, name+"-secret"),
		natsgo.CustomInboxPrefix("_INBOX_"+name),
		natsgo.ErrorHandler(func(_ *natsgo.Conn, _ *natsgo.Subscription, err error) { r.refused <- err }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.conn.Close)
	return r
}

// mayNot tries what is forbidden.
func (r *role) mayNot(write, read []string) {
	r.t.Helper()
	for i, subject := range append(write, read...) {
		var err error
		if i < len(write) {
			err = r.conn.PublishRequest(subject, r.conn.NewInbox(), []byte("x"))
		} else {
			_, err = r.conn.SubscribeSync(subject)
		}
		if err != nil {
			r.t.Fatal(err)
		}
		select {
		case err := <-r.refused:
			if !errors.Is(err, natsgo.ErrPermissionViolation) || !strings.Contains(err.Error(), subject) {
				r.t.Errorf("%s, %s: %v", r.name, subject, err)
			}
		case <-time.After(patience):
			r.t.Errorf("%s may use %s", r.name, subject)
		}
	}
}

const deputyHeaders = 10 // outcomes with headers that mean something to the server or to us

// deputy lets the decider try what the requester may not: by the subjects on which it wants
// its replies, and by headers of outcomes. Nothing of it is stored, and the next outcome is.
func (r *role) deputy() {
	r.t.Helper()
	for i, reply := range []string{"shop.feedback.0", "shop.decisions.0", "shop.contexts.0",
		"$JS.API.STREAM.PURGE.shop_snapshots_0", "$KV.shop_leases.joiner", "orders.new"} {
		if err := r.conn.PublishRequest("shop.decide", reply, fmt.Appendf(nil, `{"id":"deputy-%d","actions":["x","y"]}`,
			i)); err != nil {
			r.t.Fatal(err)
		}
	}
	headers := [deputyHeaders]string{"Nats-Expected-Last-Sequence", "Nats-Expected-Last-Msg-Id", "Nats-Msg-Id",
		"Nats-Msg-Id", "Nats-Expected-Stream", "Nats-Rollup", "Nats-TTL", "Nats-Batch-Id", "nats-msg-id",
		"hindsight-type"}
	for i, header := range headers {
		m := &natsgo.Msg{Subject: "shop.outcome", Data: fmt.Appendf(nil, `{"id":"none-%d","loss":0.5}`, i),
			Header: natsgo.Header{header: {"7"}, "traceparent": {"00-1"}}}
		if a, err := r.conn.RequestMsg(m, patience); err != nil || a.Header.Get("Nats-Service-Error-Code") != "" {
			r.t.Errorf("an outcome with the header %s: %v %v", header, a, err)
		}
	}
}

const trampolined = 2 // contexts, and outcomes, that the pipeline writes in [role.trampoline]

// trampoline lets the server try what the pipeline may not, by the subjects on which it
// wants to be answered: a server writes its answers to any subject of the account in
// which they are made, so that must not be the log's. It returns what was stored so.
func (r *role) trampoline(service jetstream.JetStream) (stored func() int) {
	r.t.Helper()
	ctx := r.t.Context()
	canary, err := service.CreateStream(ctx, jetstream.StreamConfig{Name: "canary", Subjects: []string{"canary.>"}})
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := canary.CreateConsumer(ctx, jetstream.ConsumerConfig{Durable: "pipeline",
		AckPolicy: jetstream.AckExplicitPolicy}); err != nil {
		r.t.Fatal(err)
	}
	const controls = 3 // answers to one who is in the log's account
	for range controls {
		if err := service.Conn().PublishRequest("$JS.API.INFO", "canary.control", nil); err != nil {
			r.t.Fatal(err)
		}
	}
	for i, reply := range [trampolined]string{"canary.reply", "shop.feedback.0"} {
		for subject, data := range map[string]string{
			"shop.contexts.0":                           fmt.Sprintf(`{"id":"trampoline-%d","actions":["x","y"]}`, i),
			"shop.outcomes.0":                           fmt.Sprintf(`{"id":"trampoline-%d","loss":0.5}`, i),
			"JS.shop.CONSUMER.INFO.canary.pipeline":     "",
			"JS.shop.CONSUMER.MSG.NEXT.canary.pipeline": `{"batch":1,"expires":60000000000}`,
			"$JS.ACK.canary.pipeline.1.1.1.1.0":         "+NXT",
		} {
			if err := r.conn.PublishRequest(subject, reply, []byte(data)); err != nil {
				r.t.Fatal(err)
			}
		}
	}
	return func() int {
		i, err := canary.Info(ctx)
		if err != nil {
			r.t.Fatal(err)
		}
		return int(i.State.Msgs) - controls
	}
}

// foreign counts the records of feedback that the service did not write: its own have ids.
func foreign(t *testing.T, service jetstream.JetStream) (n int) {
	t.Helper()
	s, err := service.Stream(t.Context(), "shop_feedback_0")
	if err != nil {
		t.Fatal(err)
	}
	for seq := uint64(1); seq <= s.CachedInfo().State.LastSeq; seq++ {
		m, err := s.GetMsg(t.Context(), seq)
		if err != nil {
			t.Fatal(err)
		}
		if m.Header.Get("Nats-Msg-Id") == "" {
			n++
		}
	}
	return n
}

// TestNATSRoles runs a decider on a server with the users of compose/nats.conf: each role
// can do its work, and is refused what is another's.
func TestNATSRoles(t *testing.T) {
	s := startConfigured(t)
	dir := t.TempDir()
	p := start(t, decider(t, "--log", "nats://"+s.Addr().String(), "--nats-user", "service", "--nats-password-file",
		plant(t, dir, "password", "service-secret"),
		"--model", writeModel(t, dir, shop), "--seed-file", filepath.Join(dir, "seed"), "--admin", "none")).ready()
	requester, pipeline := as(t, s, "requester"), as(t, s, "pipeline")
	for subject, data := range map[string]string{"shop.decide": `{"id":"a","actions":["x","y"]}`,
		"shop.decide.0": `{"id":"b","actions":["x","y"]}`} {
		if m, err := requester.conn.Request(subject, []byte(data), patience); err != nil ||
			m.Header.Get("Nats-Service-Error-Code") != "" {
			t.Errorf("%s: %v", subject, err)
		}
	}
	if m, err := requester.conn.Request("shop.outcome", []byte(`{"id":"a","loss":0.5}`), patience); err != nil ||
		m.Header.Get("Nats-Service-Error-Code") != "" {
		t.Error(err)
	}
	requester.deputy()
	requester.mayNot([]string{"shop.contexts.0", "shop.outcomes.0", "shop.decisions.0", "shop.feedback.0",
		"$JS.API.INFO", "$JS.API.STREAM.INFO.shop_decisions_0", "$KV.shop_leases.joiner"},
		[]string{"shop.decide", "shop.contexts.*", ">", "_INBOX.>", "_INBOX_pipeline.>", "$KV.>"})
	ctx := t.Context()
	service, err := jetstream.New(as(t, s, "service").conn)
	if err != nil {
		t.Fatal(err)
	}
	for _, stream := range []string{"shop_decisions_0", "shop_rejects_0"} { // as nats.conf says
		if _, err := service.CreateConsumer(ctx, stream, jetstream.ConsumerConfig{Durable: "pipeline",
			AckPolicy: jetstream.AckExplicitPolicy}); err != nil {
			t.Fatal(err)
		}
	}
	js, err := jetstream.NewWithAPIPrefix(pipeline.conn, "JS.shop")
	if err != nil {
		t.Fatal(err)
	}
	stored := pipeline.trampoline(service)
	if _, err := js.Publish(ctx, "shop.contexts.0", []byte(`{"id":"c","actions":["x","y"]}`)); err != nil {
		t.Error(err)
	}
	decisions, err := js.Consumer(ctx, "shop_decisions_0", "pipeline")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	soon, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for !seen["a"] || !seen["b"] || !seen["c"] { // c comes after what is not to be
		m, err := decisions.Next(jetstream.FetchContext(soon))
		if err != nil {
			t.Errorf("saw %v: %v", seen, err)
			break
		}
		if err := m.DoubleAck(ctx); err != nil {
			t.Fatal(err)
		}
		var d codec.Decision
		if m.Headers().Get(codec.TypeHeader) == "" {
			if err := codec.ParseDecision(&d, m.Data()); err != nil {
				t.Fatal(err)
			}
			seen[strings.Clone(d.ID)] = true
			if strings.HasPrefix(d.ID, "deputy-") {
				t.Errorf("%s was decided, for a reply that is not to be sent", d.ID)
			}
		}
	}
	if _, err := js.Publish(ctx, "shop.outcomes.0", []byte(`{"id":"c","loss":0.5}`)); err != nil {
		t.Error(err)
	}
	pipeline.mayNot([]string{"shop.decisions.0", "shop.feedback.0", "shop.snapshots.0",
		"$JS.API.STREAM.DELETE.shop_decisions_0", "$JS.API.STREAM.PURGE.shop_contexts_0",
		"$JS.API.STREAM.UPDATE.shop_decisions_0",
		"$JS.API.STREAM.MSG.GET.shop_feedback_0", "$JS.API.CONSUMER.CREATE.shop_decisions_0.mine", "$JS.API.INFO",
		"$KV.shop_leases.joiner"}, []string{"shop.decide", "shop.contexts.*", ">", "_INBOX.>", "_INBOX_requester.>"})
	for stream, want := range map[string]uint64{"shop_contexts_0": 1 + trampolined, "shop_outcomes_0": 1 +
		deputyHeaders + trampolined + 1} {
		if i, err := service.Stream(ctx, stream); err != nil || i.CachedInfo().State.Msgs != want {
			t.Errorf("%s holds %+v, want %d records: %v", stream, i.CachedInfo().State, want, err)
		}
	}
	if n, in := stored(), foreign(t, service); n != 0 || in != 0 {
		t.Errorf("the server stored %d of its answers to the pipeline where it was told to, and %d in feedback", n, in)
	}
	if !strings.Contains(p.log(), "its reply subject is no inbox") {
		t.Error("the log does not name the requests that were refused")
	}
	p.stop(patience)
}
