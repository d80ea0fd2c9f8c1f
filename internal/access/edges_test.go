package access

import (
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go/sasl/plain"
	"github.com/spf13/pflag"

	"hindsight/pkg/stream/kafka"
	"hindsight/pkg/stream/tlstest"
)

// refused compares an error with a text that it has; "": there is none.
func refused(t *testing.T, what any, err error, want string) {
	t.Helper()
	if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("%+v: %v, want %q", what, err, want)
	}
}

func no(string) string { return "" }

func secretFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestKinds: which servers a --log names, and what is wrong with it.
func TestKinds(t *testing.T) {
	for log, want := range map[string][2]bool{"nats://h": {true, false}, "tls://h": {true, false},
		"kafka://h":  {false, true},
		"kafkas://h": {false, true}, "./data": {}, "": {}, "natsx://h": {}, "kafkax://h": {}, "http://h": {}} {
		if IsNATS(log) != want[0] || IsKafka(log) != want[1] || Remote(log) != (want[0] || want[1]) {
			t.Errorf("%q: %t, %t, %t", log, IsNATS(log), IsKafka(log), Remote(log))
		}
	}
	for log, want := range map[string]string{"kafka://h": "", "kafka://h:0": `--log kafka://h:0: "0" is not a port`,
		"nats://h": "", "nats://h:x": "--log nats://h:x: ", "kafka://": "a broker has no name"} {
		refused(t, log, Check(log), want)
	}
	for requests, want := range map[string]string{"": "", None: "", "nats://h": "",
		"nats://h:x": "--nats nats://h:x: "} {
		refused(t, requests, CheckRequests(requests), want)
	}
	if got := Show("kafka://u:planted@h"); strings.Contains(got, "planted") || !strings.Contains(got, "@h") {
		t.Errorf("shown as %s", got)
	}
}

// TestFlags: each flag sets its own field, and numbers have bounds.
func TestFlags(t *testing.T) {
	f := New(no)
	fs := pflag.NewFlagSet("x", pflag.ContinueOnError)
	f.Register(fs)
	var requests string
	RegisterRequests(fs, &requests)
	if f.Kafka.Mechanism != mechanismScram512 || f.Kafka.Replication != 0 || f.Kafka.MinISR != 0 ||
		f.NATS.Replicas != 1 {
		t.Errorf("without flags %+v, %+v", f.Kafka, f.NATS)
	}
	var args []string
	fs.VisitAll(func(f *pflag.Flag) {
		value := f.Name
		if f.Value.Type() == "int" {
			value = fmt.Sprint(len(args) + 1)
			if f.Annotations == nil {
				t.Errorf("--%s has no bounds", f.Name)
			}
		}
		args = append(args, "--"+f.Name+"="+value)
	})
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct{ got, want any }{{f.Kafka.User, "kafka-user"}, {f.Kafka.PasswordFile,
		"kafka-password-file"},
		{f.Kafka.Mechanism, "kafka-sasl"}, {f.Kafka.TokenCommand, "kafka-token-command"}, {f.Kafka.CA, "kafka-ca"},
		{f.Kafka.Cert, "kafka-cert"}, {f.Kafka.Key, "kafka-key"}, {f.NATS.User, "nats-user"},
		{f.NATS.PasswordFile, "nats-password-file"}, {f.NATS.Creds, "nats-creds"}, {f.NATS.NKey, "nats-nkey"},
		{f.NATS.CA, "nats-ca"}, {f.NATS.Cert, "nats-cert"}, {f.NATS.Key, "nats-key"}, {requests, "nats"}} {
		if c.got != c.want {
			t.Errorf("%d: %v, want %v", i, c.got, c.want)
		}
	}
	got := []string{fmt.Sprint("--kafka-replication=", f.Kafka.Replication), fmt.Sprint("--kafka-min-isr=",
		f.Kafka.MinISR),
		fmt.Sprint("--nats-replicas=", f.NATS.Replicas)}
	for _, one := range got {
		if !strings.Contains(strings.Join(args, " ")+" ", one+" ") {
			t.Errorf("%s, of %s", one, args)
		}
	}
	for name, want := range map[string][]string{"kafka-replication": {"0", "1000"}, "kafka-min-isr": {"0", "1000"},
		"nats-replicas": {"1", "5"}} {
		for _, at := range fs.Lookup(name).Annotations {
			if !reflect.DeepEqual(at, want) {
				t.Errorf("--%s is in %s, want %s", name, at, want)
			}
		}
	}
}

// TestURLBounds: the numbers of a URL at their bounds and beyond.
func TestURLBounds(t *testing.T) {
	for query, want := range map[string]string{"replication=1&min_isr=1": "", "replication=1000&min_isr=1000": "",
		"replication=0": "replication=0: expected", "min_isr=0": "min_isr=0: expected",
		"replication=1001": "at most 1000",
		"min_isr=1001":     "at most 1000", "replication=x": "replication=x", "session=1s": "", "session=24h": "",
		"session=999ms": "session=999ms", "session=24h1ns": "session=24h1ns", "session=x": "session=x",
		"session=": "session=:", "other=1": `no setting "other"`, "session=2s&session=2s": "given 2 times",
		"%": "cannot be read",
		"":  ""} {
		_, err := parse("kafka://h?" + query)
		refused(t, query, err, want)
	}
	for log, want := range map[string]address{
		"kafka://h":     {brokers: []string{"h:9092"}},
		"kafkas://h/":   {tls: true, brokers: []string{"h:9092"}},
		"kafka://h:1":   {brokers: []string{"h:1"}},
		"kafka://[::1]": {brokers: []string{"[::1]:9092"}},
		"kafka://u@h,[::1]:65535?replication=3&min_isr=2&session=7s": {user: "u", brokers: []string{"h:9092",
			"[::1]:65535"},
			replication: 3, minISR: 2, session: 7 * time.Second},
		"kafka://u%40:p%2f@h": {user: "u@", password: "p/", hasPassword: true, brokers: []string{"h:9092"}},
		"kafka://u:@h":        {user: "u", hasPassword: true, brokers: []string{"h:9092"}},
	} {
		if a, err := parse(log); err != nil || !reflect.DeepEqual(*a, want) {
			t.Errorf("%s: %+v, %v", log, a, err)
		}
	}
	for log, want := range map[string]string{"kafka:h": "expected kafka://", "nats://h": "expected kafka://",
		"kafka://h:65536": "not a port", "kafka://h:0": "not a port", "kafka://h:x": "not a port",
		"kafka://h,":  "no name",
		"kafka://h#x": "not the name", "kafka://a b": "not the name", "kafka://1:2:3": "not the name",
		"kafka://@h":    "expected",
		"kafka://%zz@h": "expected", "kafka://u:%zz@h": "expected", "kafka://u/x@h": "expected"} {
		_, err := parse(log)
		refused(t, log, err, want)
	}
}

// TestCopies: how many copies there are, by the URL and by flags, and that as many can be had as must have a record.
func TestCopies(t *testing.T) {
	for _, c := range []struct {
		url, flags [2]int
		want       [2]int
		err        string
	}{
		{[2]int{}, [2]int{}, [2]int{}, ""}, {[2]int{3, 2}, [2]int{}, [2]int{3, 2}, ""},
		{[2]int{}, [2]int{3, 2}, [2]int{3, 2}, ""}, {[2]int{3, 2}, [2]int{3, 2}, [2]int{3, 2}, ""},
		{[2]int{3, 0}, [2]int{0, 3}, [2]int{3, 3}, ""}, {[2]int{0, 2}, [2]int{}, [2]int{0, 2}, ""},
		{[2]int{1, 0}, [2]int{0, 1}, [2]int{1, 1}, ""}, {[2]int{1, 2}, [2]int{}, [2]int{},
			"2 copies must have a record"},
		{[2]int{3, 0}, [2]int{2, 0}, [2]int{}, "replication=3 in --log and --kafka-replication 2 contradict"},
		{[2]int{0, 2}, [2]int{0, 3}, [2]int{}, "min_isr=2 in --log and --kafka-min-isr 3 contradict"},
		{[2]int{}, [2]int{-1, 0}, [2]int{}, "--kafka-replication -1: it must be at least 1"},
		{[2]int{}, [2]int{0, -1}, [2]int{}, "--kafka-min-isr -1: it must be at least 1"},
	} {
		f := Kafka{Replication: c.flags[0], MinISR: c.flags[1], Getenv: no}
		o, err := f.options(t.Context(), &address{brokers: []string{"h:1"}, replication: c.url[0],
			minISR: c.url[1]}, nil)
		refused(t, c, err, c.err)
		if err == nil && (o.Replication != c.want[0] || o.MinISR != c.want[1] || !reflect.DeepEqual(o.Brokers,
			[]string{"h:1"}) || o.TLS != nil || o.SASL != nil) {
			t.Errorf("%+v: %+v", c, o)
		}
	}
}

// TestLogin: by which mechanism, user and password, and what of them contradicts or lacks what.
func TestLogin(t *testing.T) {
	file, empty, env := secretFile(t, "pass\n"), secretFile(t, "\n"), func(string) string { return "env" }
	for name, c := range map[string]struct {
		f    Kafka
		a    address
		want string
		err  string
	}{
		"nobody": {Kafka{Getenv: env}, address{}, "", ""},
		"plain":  {Kafka{User: "u", PasswordFile: file, Mechanism: mechanismPlain}, address{}, "PLAIN", ""},
		"scram 256": {Kafka{User: "u", PasswordFile: file, Mechanism: mechanismScram256}, address{},
			"SCRAM-SHA-256", ""},
		"scram 512": {Kafka{User: "u", PasswordFile: file, Mechanism: mechanismScram512}, address{},
			"SCRAM-SHA-512", ""},
		"by default":    {Kafka{User: "u", PasswordFile: file}, address{}, "SCRAM-SHA-512", ""},
		"the same user": {Kafka{User: "u", Getenv: env}, address{user: "u"}, "SCRAM-SHA-512", ""},
		"two users":     {Kafka{User: "u", Getenv: env}, address{user: "v"}, "", "name two users"},
		"no user":       {Kafka{PasswordFile: file}, address{}, "", "--kafka-password-file without a user"},
		"no password":   {Kafka{User: "u", Getenv: no}, address{}, "", "which password has the user"},
		"empty": {Kafka{User: "u", Getenv: no}, address{hasPassword: true}, "",
			"the password in --log is empty"},
		"empty file": {Kafka{User: "u", PasswordFile: empty}, address{}, "", "secret"},
		"no file":    {Kafka{User: "u", PasswordFile: file + "x"}, address{}, "", "no such file"},
		"unknown": {Kafka{User: "u", Getenv: env, Mechanism: "x"}, address{}, "",
			`--kafka-sasl "x": expected`},
		"command":            {Kafka{TokenCommand: "x"}, address{}, "", "is for --kafka-sasl oauthbearer"},
		"token":              {Kafka{Mechanism: mechanismBearer, PasswordFile: file}, address{}, "OAUTHBEARER", ""},
		"token of a command": {Kafka{Mechanism: mechanismBearer, TokenCommand: "echo x"}, address{}, "OAUTHBEARER", ""},
		"token of two": {Kafka{Mechanism: mechanismBearer, PasswordFile: file, TokenCommand: "x"}, address{},
			"", "not both"},
		"token of nothing": {Kafka{Mechanism: mechanismBearer}, address{}, "", "where is the token from"},
		"token of no file": {Kafka{Mechanism: mechanismBearer, PasswordFile: file + "x"}, address{}, "",
			"no such file"},
		"token of an empty": {Kafka{Mechanism: mechanismBearer, PasswordFile: empty}, address{}, "", "holds none"},
	} {
		m, err := c.f.login(t.Context(), &c.a)
		refused(t, name, err, c.err)
		if err == nil && (m == nil) != (c.want == "") || m != nil && err == nil && m.Name() != c.want {
			t.Errorf("%s: %v", name, m)
		}
		if p, ok := m.(plain.Mechanism); ok && (p.Username != "u" || p.Password != "pass") {
			t.Errorf("%s: %+v", name, p)
		}
	}
	for name, c := range map[string]struct {
		f         NATS
		want, err string
	}{
		"nobody":      {NATS{Getenv: env}, "", ""},
		"file":        {NATS{User: "u", PasswordFile: file, Getenv: env}, "pass", ""},
		"env":         {NATS{User: "u", Getenv: env}, "env", ""},
		"no password": {NATS{User: "u", Getenv: no}, "", "which password has the user for NATS"},
		"no user":     {NATS{PasswordFile: file}, "", "--nats-password-file without a user"},
		"no file":     {NATS{User: "u", PasswordFile: file + "x"}, "", "no such file"},
	} {
		got, err := c.f.password()
		if refused(t, name, err, c.err); err == nil && got != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestTLSAsked: what asks for TLS, with which authorities and certificate.
func TestTLSAsked(t *testing.T) {
	a := tlstest.NewAuthority(t)
	cert, key := a.Issue("client")
	for name, c := range map[string]struct {
		f             Kafka
		tls           bool
		is, roots, of bool
		err           string
	}{
		"nothing": {}, "by URL": {tls: true, is: true}, "authorities": {f: Kafka{CA: a.CA}, is: true, roots: true},
		"certificate": {f: Kafka{Cert: cert, Key: key}, is: true, of: true},
		"no key":      {f: Kafka{Cert: cert}, err: "go together"}, "no certificate": {f: Kafka{Key: key},
			err: "go together"},
		"bad CA": {f: Kafka{CA: key}, err: "CA: "}, "bad certificate": {f: Kafka{Cert: key, Key: cert},
			err: "client certificate: "},
	} {
		got, err := c.f.tls(&address{tls: c.tls}, nil)
		refused(t, name, err, c.err)
		if err == nil && ((got != nil) != c.is || got != nil && ((got.RootCAs != nil) != c.roots ||
			(got.GetClientCertificate != nil) != c.of || got.MinVersion != tls.VersionTLS12)) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestAdvice: which flags an error of a broker leads to.
func TestAdvice(t *testing.T) {
	other, secure, user := errors.New("other"), kafka.Options{TLS: &tls.Config{}},
		kafka.Options{SASL: plain.Mechanism{}}
	away, broken := &net.OpError{Op: "dial", Err: other}, &net.OpError{Op: "read", Err: other}
	for _, c := range []struct {
		err  error
		o    kafka.Options
		want string
	}{{kafka.ErrAuthentication, secure, "--kafka-sasl"}, {kafka.ErrTLS, secure, "kafkas://"},
		{kafka.ErrAuthorization, kafka.Options{}, "is --kafka-user missing?"}, {kafka.ErrAuthorization, secure, ""},
		{kafka.ErrAuthorization, user, ""}, {other, kafka.Options{}, ""}, {away, user, "start the brokers, or give an"},
		{broken, user, ""}} {
		got := advise(c.err, c.o)
		if !errors.Is(got, c.err) || !strings.Contains(got.Error(), c.want) || c.want == "" && got != c.err {
			t.Errorf("%v: %v, want %q", c.err, got, c.want)
		}
	}
}

// TestExpiry: a token's own end, and the time after which any token of a command is asked for anew.
func TestExpiry(t *testing.T) {
	most := time.Unix(1000, 0)
	token := func(claims string) string { return "h." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".s" }
	for text, want := range map[string]int64{token(`{"exp":999}`): 999, token(`{"exp":1000}`): 1000,
		token(`{"exp":1001}`): 1000,
		token(`{"exp":1}`):    1, token(`{"exp":0}`): 1000, token(`{"exp":-5}`): 1000, token(`{}`): 1000,
		token(`x`): 1000,
		"h.!.s":    1000, "opaque": 1000, "h." + strings.Split(token(`{"exp":9}`), ".")[1]: 1000,
		token(`{"exp":9}`) + ".x": 1000} {
		if got := expiry(text, most); got.Unix() != want {
			t.Errorf("%s: %d, want %d", text, got.Unix(), want)
		}
	}
}
