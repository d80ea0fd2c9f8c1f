package access

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"hindsight/pkg/stream/nats"
)

// defaultPort is that of a broker.
const defaultPort = "9092"

// address is what a --log says.
type address struct {
	tls                 bool
	user, password      string
	brokers             []string // host:port
	replication, minISR int      // 0: it does not say
	session             time.Duration
	hasPassword         bool
}

var errURL = errors.New(
	"expected kafka://[USER:PASSWORD@]HOST[:PORT][,HOST[:PORT]…][?replication=N&min_isr=N&session=DURATION], or " +
		"kafkas:// for TLS, with what is special in a user or password percent-encoded")

// parse reads a --log. Its errors hold neither user nor password.
func parse(log string) (*address, error) {
	scheme, rest, ok := strings.Cut(log, "://")
	if !ok || scheme != "kafka" && scheme != "kafkas" {
		return nil, errURL
	}
	a := &address{tls: scheme == "kafkas"}
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		if err := a.readUser(rest[:at]); err != nil {
			return nil, err
		}
		rest = rest[at+1:]
	}
	rest, query, _ := strings.Cut(rest, "?")
	if err := a.readBrokers(strings.TrimSuffix(rest, "/")); err != nil {
		return nil, err
	}
	return a, a.readQuery(query)
}

func (a *address) readUser(text string) (err error) {
	user, password, has := strings.Cut(text, ":")
	if strings.ContainsAny(text, "/?#@") {
		return errURL
	}
	if a.user, err = url.PathUnescape(user); err != nil || a.user == "" {
		return errURL
	}
	if a.password, err = url.PathUnescape(password); err != nil {
		return errURL
	}
	a.hasPassword = has
	return nil
}

func (a *address) readBrokers(text string) error {
	for part := range strings.SplitSeq(text, ",") {
		host, port, err := net.SplitHostPort(part)
		if err != nil { // no port, or nonsense
			host, port = strings.TrimSuffix(strings.TrimPrefix(part, "["), "]"), defaultPort
		}
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return fmt.Errorf("%q is not a port", port)
		}
		if host == "" {
			return fmt.Errorf("a broker has no name; %w", errURL)
		}
		if strings.ContainsAny(host, "/#[] ") || strings.Contains(host, ":") && net.ParseIP(host) == nil {
			return fmt.Errorf("%q is not the name of a host; %w", host, errURL)
		}
		a.brokers = append(a.brokers, net.JoinHostPort(host, port))
	}
	return nil
}

// The keys that a --log may have after its question mark.
var queryKeys = []string{"min_isr", "replication", "session"}

func (a *address) readQuery(text string) error {
	query, err := url.ParseQuery(text)
	if err != nil {
		return fmt.Errorf("what follows the question mark cannot be read: %w", err)
	}
	for key, values := range query {
		switch {
		case !slices.Contains(queryKeys, key):
			return fmt.Errorf("there is no setting %q; there are %s", key, strings.Join(queryKeys, ", "))
		case len(values) > 1:
			return fmt.Errorf("the setting %s is given %d times", key, len(values))
		}
	}
	if a.replication, err = count(query, "replication"); err != nil {
		return err
	}
	if a.minISR, err = count(query, "min_isr"); err != nil {
		return err
	}
	if s := query.Get("session"); query.Has("session") {
		if a.session, err = time.ParseDuration(s); err != nil || a.session < time.Second || a.session > 24*time.Hour {
			return fmt.Errorf("session=%s: expected a duration of at least 1s and at most 24h (brokers refuse less "+
				"than 6s by default)", s)
		}
	}
	return nil
}

// maxCopies is more than any cluster keeps of a record.
const maxCopies = 1000

func count(query url.Values, key string) (int, error) {
	if !query.Has(key) {
		return 0, nil
	}
	n, err := strconv.Atoi(query.Get(key))
	if err != nil || n < 1 || n > maxCopies {
		return 0, fmt.Errorf("%s=%s: expected a number from 1 on, at most %d", key, query.Get(key), maxCopies)
	}
	return n, nil
}

// IsKafka reports whether a --log names Kafka brokers.
func IsKafka(log string) bool {
	return strings.HasPrefix(log, "kafka:") || strings.HasPrefix(log, "kafkas:")
}

func checkKafka(log string) error {
	if _, err := parse(log); err != nil {
		return fmt.Errorf("--log %s: %w", nats.Redact(log), err)
	}
	return nil
}
