package nats

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"hindsight/pkg/stream"
)

var (
	// ErrRefused reports servers that do not let us in as we are.
	ErrRefused = errors.New("the server refuses this user, password or credentials")
	// ErrCertificate reports a TLS connection that one side does not trust.
	ErrCertificate = errors.New("the TLS certificates do not fit")
)

var errURL = errors.New("expected nats://[USER:PASSWORD@]HOST[:PORT][,HOST[:PORT]…], with what is special in a " +
	"password percent-encoded")

// maxFile bounds a file of credentials or certificates.
const maxFile = 1 << 20

// dialWait bounds one attempt to connect to one server.
const dialWait = 5 * time.Second

// Access says how to reach servers of one's own, and as whom.
type Access struct {
	URL      string       // nats://[user:password@]host[:port][,more], or tls:// instead
	User     string       // unless it is in the URL
	Password string       // of User
	Creds    string       // file with a JWT and its seed
	NKey     string       // file with the seed of an nkey
	CA       string       // file with the certificates that sign the servers'
	Cert     string       // file with a certificate of our own
	Key      string       // file with its key
	Log      *slog.Logger // logs connections lost and restored; nil: disabled
}

// Redact returns a text in which users and passwords of URLs are masked: all between
// the first :// and the last @, which is rather too much than too little.
func Redact(text string) string {
	from, to := strings.Index(text, "://"), strings.LastIndexByte(text, '@')
	if from < 0 || to < from {
		return text
	}
	return text[:from+len("://")] + "***" + text[to:]
}

// servers parses the URL into one for each server. The first user stands for those without one.
func (a *Access) servers() (urls []string, hosts string, err error) {
	var user *url.Userinfo
	var names []string
	scheme := "nats"
	for part := range strings.SplitSeq(a.URL, ",") {
		part = strings.TrimSpace(part)
		if !strings.Contains(part, "://") {
			part = scheme + "://" + part
		}
		u, err := url.Parse(part)
		switch {
		case err != nil: // its text may hold a password in a wrong place
			return nil, "", errURL
		case u.Scheme != "nats" && u.Scheme != "tls":
			return nil, "", fmt.Errorf("%s: expected nats:// or tls://", Redact(part))
		case u.Hostname() == "" || u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "":
			return nil, "", errURL
		}
		scheme = u.Scheme
		if u.Port() == "" {
			u.Host += ":4222"
		}
		if u.User == nil {
			u.User = user
		} else if user == nil {
			user = u.User
		}
		names = append(names, u.Host)
		urls = append(urls, strings.ReplaceAll(u.String(), ",", "%2C")) // the client library splits at commas
	}
	return urls, strings.Join(names, ","), nil
}

// Check reports what is wrong with the access without connecting.
func (a *Access) Check() error {
	if _, _, err := a.servers(); err != nil {
		return err
	}
	switch {
	case (a.Cert == "") != (a.Key == ""):
		return errors.New("a client certificate and its key go together")
	case a.Creds != "" && a.NKey != "":
		return errors.New("credentials and an nkey exclude each other")
	case a.User != "" && (a.Creds != "" || a.NKey != ""):
		return errors.New("a user with a password, and credentials or an nkey, exclude each other")
	case a.User != "" && Redact(a.URL) != a.URL:
		return errors.New("the URL names a user already")
	}
	for _, f := range []struct{ what, name string }{
		{"credentials", a.Creds}, {"nkey seed", a.NKey}, {"CA", a.CA}, {"certificate", a.Cert}, {"key", a.Key},
	} {
		if f.name == "" {
			continue
		}
		if info, err := os.Stat(f.name); err == nil && (!info.Mode().IsRegular() || info.Size() > maxFile) {
			return fmt.Errorf("%s: %s is not a plain file of at most %d bytes", f.what, f.name, maxFile)
		}
		if _, err := os.ReadFile(f.name); err != nil {
			return fmt.Errorf("%s: %w", f.what, err)
		}
	}
	return nil
}

// Dial connects. name is shown by the server's tools. Errors name the servers and what is wrong, never a password:
// [stream.ErrUnavailable], [ErrRefused], [ErrCertificate].
func (a *Access) Dial(name string, o Options) (*Client, error) {
	if err := a.Check(); err != nil {
		return nil, err
	}
	urls, hosts, _ := a.servers()
	options, err := a.options()
	if err != nil {
		return nil, err
	}
	o.Logger = cmp.Or(o.Logger, a.Log)
	c, err := dial(strings.Join(urls, ","), name, o, options...)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", hosts, explain(err))
	}
	return c, nil
}

func (a *Access) options() ([]natsgo.Option, error) {
	options := []natsgo.Option{natsgo.Timeout(dialWait), natsgo.IgnoreAuthErrorAbort()}
	if a.User != "" {
		options = append(options, natsgo.UserInfo(a.User, a.Password))
	}
	if a.Creds != "" {
		options = append(options, natsgo.UserCredentials(a.Creds))
	}
	if a.NKey != "" {
		o, err := natsgo.NkeyOptionFromSeed(a.NKey)
		if err != nil {
			return nil, fmt.Errorf("nkey seed %s: %w", a.NKey, err)
		}
		options = append(options, o)
	}
	if a.CA != "" {
		options = append(options, natsgo.RootCAs(a.CA))
	}
	if a.Cert != "" {
		options = append(options, natsgo.ClientCert(a.Cert, a.Key))
	}
	if a.Log != nil {
		options = append(options, watcher(a.Log)...)
	}
	return options, nil
}

// watcher tells of connections that are lost and found. Of those of one client it tells once for all.
func watcher(log *slog.Logger) []natsgo.Option {
	var mu sync.Mutex
	last := ""
	first := func(state string) bool {
		mu.Lock()
		defer mu.Unlock()
		was := last
		last = state
		return was != state
	}
	return []natsgo.Option{
		natsgo.DisconnectErrHandler(func(c *natsgo.Conn, err error) {
			if !c.IsClosed() && err != nil && first("lost") {
				log.Warn("connection to the log lost; connecting again", "error", Redact(explain(err).Error()))
			}
		}),
		natsgo.ReconnectErrHandler(func(c *natsgo.Conn, err error) {
			if why := explain(err); !errors.Is(why, stream.ErrUnavailable) && first(why.Error()) {
				log.Error("the log's servers refuse to reconnect this process", "error", Redact(why.Error()))
			}
		}),
		natsgo.ReconnectHandler(func(c *natsgo.Conn) {
			if first("back") {
				log.Info("connected to the log again", "server", c.ConnectedAddr())
			}
		}),
		natsgo.ErrorHandler(func(c *natsgo.Conn, _ *natsgo.Subscription, err error) {
			if errors.Is(err, natsgo.ErrPermissionViolation) && first(err.Error()) {
				log.Error("the log's servers forbid something", "error", Redact(err.Error()))
			}
		}),
	}
}

// explain classifies an error of connecting. Its text holds no password.
func explain(err error) error {
	text := errors.New(Redact(err.Error()))
	var unknown x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	var check *tls.CertificateVerificationError
	var alert tls.AlertError
	var record tls.RecordHeaderError
	switch {
	case errors.Is(err, natsgo.ErrAuthorization), errors.Is(err, natsgo.ErrAuthExpired),
		errors.Is(err, natsgo.ErrAuthRevoked), errors.Is(err, natsgo.ErrAccountAuthExpired),
		strings.Contains(err.Error(), "Authentication"): // an -ERR has no code, and the library no error for some
		return fmt.Errorf("%w: %w", ErrRefused, text)
	case errors.As(err, &unknown), errors.As(err, &host), errors.As(err, &invalid), errors.As(err, &check):
		return fmt.Errorf("%w: the server's is not what the given CA and the host's name ask for: %w", ErrCertificate,
			text)
	case errors.As(err, &alert), errors.As(err, &record), strings.Contains(err.Error(), "tls: "),
		strings.Contains(err.Error(), "tls error"), // the server may hang up before its alert is read
		errors.Is(err, natsgo.ErrSecureConnRequired), errors.Is(err, natsgo.ErrSecureConnWanted):
		return fmt.Errorf("%w: %w", ErrCertificate, text)
	case errors.Is(err, natsgo.ErrNoServers):
		return fmt.Errorf("%w: no server answers there: %w", stream.ErrUnavailable, text)
	case errors.Is(err, os.ErrNotExist), errors.Is(err, os.ErrPermission):
		return text
	}
	return fmt.Errorf("%w: %w", stream.ErrUnavailable, text)
}
