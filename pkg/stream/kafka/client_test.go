package kafka

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/segmentio/kafka-go/sasl"
	saslplain "github.com/segmentio/kafka-go/sasl/plain"
	"github.com/segmentio/kafka-go/sasl/scram"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"hindsight/pkg/stream"
	"hindsight/pkg/stream/tlstest"
)

// counted is a connection that is counted while it is open.
type counted struct {
	net.Conn
	open   *atomic.Int64
	closed atomic.Bool
}

func (c *counted) Close() error {
	if c.closed.CompareAndSwap(false, true) {
		c.open.Add(-1)
	}
	return c.Conn.Close()
}

// counting makes connections, of which so many are open.
func counting(open *atomic.Int64) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		cn, err := dialNet(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		open.Add(1)
		return &counted{Conn: cn, open: open}, nil
	}
}

// After Close no goroutine and no connection is left, whatever was open.
func TestNothingIsLeft(t *testing.T) {
	k := fake(t, kfake.NumBrokers(3))
	before := goleak.IgnoreCurrent()
	var open atomic.Int64
	c := client(t, k, Options{Dial: counting(&open)})
	ctx := context.Background()
	if err := c.Log().Create(ctx, "t", 6, stream.TopicOptions{}); err != nil {
		t.Fatal(err)
	}
	for p := range 6 {
		a, _, err := c.Log().Open(ctx, "t", p, stream.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		w, err := c.Log().Writer(ctx, "t", p, nil)
		if err != nil {
			t.Fatal(err)
		}
		fill(t, w, "w", 1)
		for range 3 {
			if _, err := a.Append(ctx, &stream.Record{Value: []byte("on its way")}); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			r, err := c.Log().Read(ctx, "t", p, stream.Earliest)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := r.Next(ctx, nil); err != nil {
				t.Fatal(err)
			}
			if p%2 == 0 {
				r.Close()
			}
		}
	}
	if open.Load() < 10 {
		t.Errorf("%d connections: they are not counted", open.Load())
	}
	start := time.Now()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if d := time.Since(start); d > 10*time.Second {
		t.Errorf("Close took %v", d)
	}
	if n := open.Load(); n != 0 {
		t.Errorf("%d connections are left", n)
	}
	goleak.VerifyNone(t, before, goleak.IgnoreAnyFunction("github.com/twmb/franz-go/pkg/kfake.(*broker).listen"),
		ignoreFake)
	if _, _, err := c.Log().Bounds(ctx, "t", 0); !errors.Is(err, stream.ErrClosed) {
		t.Errorf("bounds after Close: %v", err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// ignoreFake leaves the in-process cluster's own goroutines out.
var ignoreFake = goleak.IgnoreTopFunction("github.com/twmb/franz-go/pkg/kfake.(*clientConn).read")

// dialError connects and must not be able to.
func dialError(t *testing.T, o Options) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, err := Dial(ctx, o)
	if err == nil {
		c.Close()
		t.Fatal("connected")
	}
	if !errors.Is(err, stream.ErrUnavailable) {
		t.Errorf("%v is no ErrUnavailable", err)
	}
	for _, addr := range o.Brokers {
		if !strings.Contains(err.Error(), addr) {
			t.Errorf("%v does not tell of %s", err, addr)
		}
	}
	if strings.Contains(err.Error(), "s3cret") {
		t.Errorf("%v tells the password", err)
	}
	return err
}

func TestDeadBroker(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead := l.Addr().String()
	l.Close()
	if err := dialError(t, Options{Brokers: []string{dead}}); !strings.Contains(err.Error(), "refused") ||
		strings.Contains(err.Error(), "SASL") {
		t.Error(err)
	}
	k := fake(t)
	c, err := Dial(context.Background(), Options{Brokers: append([]string{dead}, k.ListenAddrs()...)})
	if err != nil {
		t.Fatalf("one of two brokers is there: %v", err)
	}
	if good := c.cluster.good; good != k.ListenAddrs()[0] {
		t.Errorf("%q is asked first, though %s answered last", good, k.ListenAddrs()[0])
	}
	c.Close()
	if _, err := Dial(context.Background(), Options{}); err == nil {
		t.Error("connected to no broker")
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	start := time.Now()
	dialError(t, Options{Brokers: []string{silent.Addr().String()}, RequestTimeout: 50 * time.Millisecond})
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("a silent broker took %v", d)
	}
}

func TestPasswords(t *testing.T) {
	const password = "s3cret"
	k := fake(t, kfake.EnableSASL(), kfake.Superuser("PLAIN", "shop", password),
		kfake.Superuser("SCRAM-SHA-256", "shop", password), kfake.Superuser("SCRAM-SHA-512", "shop", password))
	plain := func(user, p string) sasl.Mechanism { return saslplain.Mechanism{Username: user, Password: p} }
	for name, m := range map[string]sasl.Mechanism{"plain": plain("shop", password),
		"scram 256": scramOf(t, scram.SHA256, "shop", password), "scram 512": scramOf(t, scram.SHA512, "shop",
			password)} {
		c := client(t, k, Options{SASL: m})
		a := open(t, c, "t"+strings.ReplaceAll(name, " ", "-"), 1)
		fill(t, a, "a", 3)
		want(t, values(t, c, "t"+strings.ReplaceAll(name, " ", "-")), "open a0 a1 a2")
		c.Close()
	}
	for name, m := range map[string]sasl.Mechanism{"plain": plain("shop", "s3cret2"),
		"plain user": plain("nobody", password),
		"scram 256":  scramOf(t, scram.SHA256, "shop", "s3cret2"), "scram 512": scramOf(t, scram.SHA512, "shop",
			"s3cret2")} {
		if err := dialError(t, Options{Brokers: k.ListenAddrs(), SASL: m}); !errors.Is(err, ErrAuthentication) {
			t.Errorf("%s with a wrong password: %v", name, err)
		}
	}
	if err := dialError(t, Options{Brokers: k.ListenAddrs()}); !strings.Contains(err.Error(), "SASL") {
		t.Errorf("without a login: %v", err)
	}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	ca, other := tlstest.NewAuthority(t), tlstest.NewAuthority(t)
	cert, key := ca.Issue("broker")
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	k := fake(t, kfake.TLS(&tls.Config{Certificates: []tls.Certificate{pair}}))
	good := trusting(t, ca.CA)
	c := client(t, k, Options{TLS: good})
	fill(t, open(t, c, "t", 1), "a", 2)
	want(t, values(t, c, "t"), "open a0 a1")
	bad := trusting(t, other.CA)
	if err := dialError(t, Options{Brokers: k.ListenAddrs(), TLS: bad}); !errors.Is(err, ErrTLS) {
		t.Errorf("another authority: %v", err)
	}
	if err := dialError(t, Options{Brokers: k.ListenAddrs()}); !errors.Is(err, ErrTLS) &&
		!strings.Contains(err.Error(), "TLS") {
		t.Errorf("no TLS to a broker that wants it: %v", err)
	}
	open := fake(t)
	if err := dialError(t, Options{Brokers: open.ListenAddrs(), TLS: good, RequestTimeout: time.Second}); !errors.Is(
		err, ErrTLS) {
		t.Errorf("TLS to a broker that has none: %v", err)
	}
}

// What a user may not do is told as that.
func TestRights(t *testing.T) {
	read := func(op kmsg.ACLOperation) kfake.ACL {
		return kfake.ACL{Resource: kmsg.ACLResourceTypeTopic, Name: "t", Pattern: kmsg.ACLResourcePatternTypeLiteral,
			Operation: op, Allow: true}
	}
	k := fake(t, kfake.EnableSASL(), kfake.EnableACLs(), kfake.Superuser("PLAIN", "admin", "s3cret"),
		kfake.User("PLAIN", "reader", "s3cret", read(kmsg.ACLOperationRead), read(kmsg.ACLOperationDescribe)))
	admin := client(t, k, Options{SASL: saslplain.Mechanism{Username: "admin", Password: "s3cret"}})
	fill(t, open(t, admin, "t", 1), "a", 2)
	c := client(t, k, Options{SASL: saslplain.Mechanism{Username: "reader", Password: "s3cret"},
		AckTimeout: 100 * time.Millisecond})
	want(t, values(t, c, "t"), "open a0 a1")
	ctx := context.Background()
	if err := c.Log().Create(ctx, "t", 1, stream.TopicOptions{}); err != nil {
		t.Errorf("a topic whose settings may not be seen: %v", err)
	}
	_, _, err := c.Log().Open(ctx, "t", 0, stream.OpenOptions{})
	if !errors.Is(err, ErrAuthorization) {
		t.Errorf("open: %v", err)
	}
	if err := c.Log().Create(ctx, "new", 1, stream.TopicOptions{}); !errors.Is(err, ErrAuthorization) {
		t.Errorf("create: %v", err)
	}
}
