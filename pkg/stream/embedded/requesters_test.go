package embedded_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"hindsight/pkg/stream"
	"hindsight/pkg/stream/attach"
	"hindsight/pkg/stream/embedded"
)

func TestParseRequesters(t *testing.T) {
	for _, c := range []struct{ text, want, says string }{
		{"shop secret-1\n# a comment\n\n  app\tsecret-2", "shop app", ""},
		{"shop secret-1\r\n", "shop", ""},
		{"shop $2a$11$secretsecretsecretsecret\n", "shop", ""},
		{"", "", "nobody is named"},
		{"# shop secret-1", "", "nobody is named"},
		{"shop", "", "line 1: expected a name"},
		{"shop secret-1\nshop secret-1", "", "line 2: the name shop is taken"},
		{"service secret-1", "", "the name service is taken"},
		{"client secret-1", "", "the name client is taken"},
		{"a.b secret-1", "", "line 1: the name may have"},
		{"> secret-1", "", "line 1: the name may have"},
		{"shop secret-1 secret-2", "", "line 1: expected a name"},
	} {
		all, err := embedded.ParseRequesters([]byte(c.text))
		var names []string
		for _, r := range all {
			names = append(names, r.Name)
			if !strings.Contains(r.Password, "secret") {
				t.Errorf("%q: password %q", c.text, r.Password)
			}
		}
		switch {
		case c.says == "" && (err != nil || strings.Join(names, " ") != c.want):
			t.Errorf("%q: %q, %v", c.text, names, err)
		case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(),
			"secret-")):
			t.Errorf("%q: %v, want %q", c.text, err, c.says)
		}
	}
}

func FuzzParseRequesters(f *testing.F) {
	f.Add([]byte("shop secret\n# x\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		all, err := embedded.ParseRequesters(text)
		if (err == nil) != (len(all) > 0) {
			t.Errorf("%q: %v, %v", text, all, err)
		}
		for _, r := range all {
			if r.Name == "" || r.Password == "" || strings.ContainsAny(r.Name, ".*> ") || r.Name == "service" {
				t.Errorf("%q: %+v", text, r)
			}
		}
	})
}

// TestRequesters has clients with names. Each asks, reports, and reads its own inbox; none
// reads another's, or the one that all share, or touches the store; nobody else gets in.
func TestRequesters(t *testing.T) {
	all := []embedded.Requester{{Name: "shop", Password: "a"}, {Name: "app", Password: "b"}}
	e := open(t, embedded.Options{Dir: t.TempDir(), Port: -1, Requesters: all})
	defer closeEngine(t, e)
	for _, s := range []string{"m.decide", "m.outcome"} {
		stop, err := e.Bus().Serve(s, "q", func(m stream.Message) { _ = m.Respond([]byte("answer")) })
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
	}
	for _, o := range []natsgo.Option{natsgo.Name("nobody"), natsgo.UserInfo("shop", "b"),
		natsgo.UserInfo("anonymous", ""), natsgo.UserInfo("", "")} {
		if _, err := natsgo.Connect(e.URL(), o); !errors.Is(err, natsgo.ErrAuthorization) {
			t.Errorf("somebody else: %v", err)
		}
	}
	for i, r := range all {
		other := all[1-i].Name
		conn, refused := user(t, e, natsgo.UserInfo(r.Name, r.Password),
			natsgo.CustomInboxPrefix(embedded.RequesterInbox(r.Name)))
		for _, s := range []string{"m.decide", "m.outcome"} {
			if m, err := conn.Request(s, nil, 30*time.Second); err != nil || string(m.Data) != "answer" {
				t.Errorf("%s may not ask %s: %v", r.Name, s, err)
			}
		}
		for _, s := range []string{"_INBOX.>", "_INBOX_" + other + ".>", "_INBOX_" + other + ".*", "*.>", ">",
			attach.ClientInbox + ".>", attach.ServiceInbox + ".>", "m.decide", "$JS.>"} {
			if _, err := conn.SubscribeSync(s); err != nil {
				t.Error(err)
			}
			if err := <-refused; !errors.Is(err, natsgo.ErrPermissionViolation) {
				t.Errorf("%s reads %s: %v", r.Name, s, err)
			}
		}
		for _, s := range []string{"m.contexts.0", "m.outcomes.0", "m.decisions.0", "$JS.API.INFO",
			"_INBOX_" + other + ".x"} {
			if err := conn.Publish(s, nil); err != nil {
				t.Error(err)
			}
			if err := <-refused; !errors.Is(err, natsgo.ErrPermissionViolation) {
				t.Errorf("%s writes %s: %v", r.Name, s, err)
			}
		}
	}
}

// TestRepliesToTheAsker holds that a requester cannot have an answer sent to another one's
// inbox, or to the service's; that who asks in vain is told; and that a log is the same with
// requesters and without.
func TestRepliesToTheAsker(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	all := []embedded.Requester{{Name: "shop", Password: "a"}, {Name: "app", Password: "b"}}
	dir := t.TempDir()
	for i, requesters := range [][]embedded.Requester{nil, all, nil} {
		e := open(t, embedded.Options{Dir: dir, Port: -1, Requesters: requesters})
		if i == 0 {
			if err := e.Log().Create(ctx, "m.decisions", 1, stream.TopicOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		w, err := e.Log().Writer(ctx, "m.decisions", 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Append(ctx, &stream.Record{Value: []byte{byte(i)}}); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		n := 0
		count := func(*stream.Record) error { n++; return nil }
		if err := stream.Scan(ctx, e.Log(), "m.decisions", 0, stream.Earliest, 100, count); err != nil || n != i+1 {
			t.Errorf("with %d requesters %d records, %v", len(requesters), n, err)
		}
		if requesters != nil {
			crossReplies(t, e, all)
		}
		closeEngine(t, e)
	}
}

func crossReplies(t *testing.T, e *embedded.Engine, all []embedded.Requester) {
	var froms []string
	stop, err := e.Bus().Serve("m.decide", "q", func(m stream.Message) {
		froms = append(froms, m.From)
		_ = m.Respond([]byte("answer"))
	})
	if err != nil {
		t.Fatal(err)
	}
	var conns []*natsgo.Conn
	var heard []*natsgo.Subscription
	for _, r := range all {
		conn, _ := user(t, e, natsgo.UserInfo(r.Name, r.Password),
			natsgo.CustomInboxPrefix(embedded.RequesterInbox(r.Name)))
		sub, err := conn.SubscribeSync(embedded.RequesterInbox(r.Name) + ".>")
		if err == nil {
			err = conn.Flush()
		}
		if err != nil {
			t.Fatal(err)
		}
		conns, heard = append(conns, conn), append(heard, sub)
	}
	own, other := embedded.RequesterInbox("shop"), embedded.RequesterInbox("app")
	for _, inbox := range []string{other + ".x", attach.ServiceInbox + ".x", "m.decisions.0", own + ".x"} {
		if err := conns[0].PublishRequest("m.decide", inbox, nil); err != nil {
			t.Fatal(err)
		}
	}
	if m, err := heard[0].NextMsg(30 * time.Second); err != nil || string(m.Data) != "answer" {
		t.Errorf("the asker's own inbox: %v", err)
	}
	if m, err := conns[1].Request("m.decide", nil, 30*time.Second); err != nil || string(m.Data) != "answer" {
		t.Errorf("the other's request: %v", err)
	}
	for { // its library hears of that by another subscription than this one
		m, err := heard[1].NextMsg(time.Second)
		if err != nil {
			t.Fatal("its own answer is not heard")
		}
		if strings.HasSuffix(m.Subject, ".x") {
			t.Errorf("the answer to another one's request: %s", m.Subject)
			continue
		}
		break
	}
	stop()
	if froms[0] != froms[1] || froms[0] == froms[len(froms)-1] || froms[0] == "" {
		t.Errorf("requests of two clients are from %q", froms)
	}
	plain, _ := user(t, e, natsgo.UserInfo("shop", "a"), natsgo.CustomInboxPrefix(embedded.RequesterInbox("shop")))
	if _, err := plain.Request("m.outcome", nil, 30*time.Second); !errors.Is(err, natsgo.ErrNoResponders) {
		t.Errorf("asked in vain: %v", err)
	}
}
