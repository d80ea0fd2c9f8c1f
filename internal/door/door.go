package door

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/spf13/pflag"

	"hindsight/internal/daemon"
	"hindsight/internal/follow"
	"hindsight/internal/secret"
	"hindsight/internal/watch"
	"hindsight/pkg/stream"
)

// defaultAddress is where HTTP is answered when nothing else is said.
const defaultAddress = "127.0.0.1:8080"

// Limits of the server.
const (
	readHeader  = 5 * time.Second
	readRequest = 10 * time.Second // its body included: a client that sends slowly is cut off
	writeReply  = 30 * time.Second // since the request's header
	idle        = 2 * time.Minute
	maxHeader   = 16 << 10
	maxConns    = 10_240
	stopping    = 10 * time.Second // to answer what is under way at the end
)

// Flags are the values of --http and of the flags beside it.
type Flags struct {
	address       string
	keys          string // file
	cert, key, ca string // files
	plain         bool
	origins       []string
	flag          *pflag.Flag
	slow          time.Duration    // that a request may take to come; 0: readRequest
	now           func() time.Time // nil: time.Now
}

// Add adds the flags.
func (f *Flags) Add(flags *pflag.FlagSet) {
	flags.StringVar(&f.address, "http", defaultAddress, "address of HTTP for decisions and outcomes; port 0 for a "+
		"free one; none: off, as with --nats none unless this is given; others than loopback need --keys or "+
		"--http-ca, and TLS")
	flags.StringVar(&f.keys, "keys", "", "file, mode 0600, with a line NAME ROLE sha256:HEX for each client of HTTP; "+
		"decider keys add makes them (default: every client on this machine)")
	flags.StringVar(&f.cert, "http-cert", "", "file with the certificate of HTTP, which then speaks TLS")
	flags.StringVar(&f.key, "http-key", "", "file with the key of --http-cert")
	flags.StringVar(&f.ca, "http-ca", "", "file with the authorities of client certificates for HTTP; a client with "+
		"one may do everything")
	flags.BoolVar(&f.plain, "http-plain", false, "HTTP without TLS beyond loopback, behind a proxy that speaks TLS")
	flags.StringSliceVar(&f.origins, "http-origin", nil, "origins whose web pages may call HTTP, such as "+
		"https://shop.example (default: none)")
	f.flag = flags.Lookup("http")
}

// Check judges the flags' values.
func (f *Flags) Check() error {
	if f.address == "none" {
		return nil
	}
	host, port, err := net.SplitHostPort(f.address)
	switch {
	case err != nil || port == "":
		return daemon.Usagef("--http %q: expected HOST:PORT, for example %s, or none", f.address, defaultAddress)
	case (f.cert == "") != (f.key == ""):
		return daemon.Usagef("--http-cert and --http-key go together")
	case f.ca != "" && f.cert == "":
		return daemon.Usagef("--http-ca asks for the certificates of clients, which needs --http-cert and --http-key")
	case daemon.IsLoopback(host):
	case f.keys == "" && f.ca == "":
		return daemon.Usagef("--http %s is reached by other machines: give --keys, or --http-ca for client "+
			"certificates, or listen on %s", f.address, defaultAddress)
	case f.cert == "" && !f.plain:
		return daemon.Usagef("--http %s is reached by other machines: give --http-cert and --http-key, or "+
			"--http-plain if a proxy before it speaks TLS", f.address)
	}
	_, err = newGuard(f.origins)
	return err
}

// Options are what a door opens to.
type Options struct {
	Model    string        // its name
	Bus      stream.Bus    // nil: requests come by HTTP only
	Requests bool          // somebody may ask: without, HTTP is off unless --http is given
	Pages    []daemon.Page // of the admin port
	Metrics  *watch.Metrics
	Logger   *slog.Logger

	Log        stream.Log                // of the model
	Definition func() *follow.Definition // of the model that decides here, nil if none does; nil: none ever does
}

// Door is the HTTP server of a process.
type Door struct {
	o        Options
	bus      *bus
	subjects map[string]string // of the bus, by what they are for
	server   *http.Server
	listener net.Listener
	guard    guard
	now      func() time.Time
	held     atomic.Int64 // bytes of bodies
	conns    atomic.Int64
	ended    chan struct{}
	judged   evaluations
}

// Open starts the server. When ctx ends, it takes no more connections. [Door.Close] must follow.
func (f *Flags) Open(ctx context.Context, o Options) (*Door, error) {
	d := &Door{o: o, bus: newBus(o.Bus), subjects: map[string]string{"decide": o.Model + ".decide",
		"outcome": o.Model + ".outcome"}, now: time.Now, ended: make(chan struct{}),
		judged: evaluations{ctx: ctx, room: make(chan struct{}, 1)}}
	if f.now != nil {
		d.now = f.now
	}
	if f.address == "none" || !o.Requests && !f.flag.Changed {
		close(d.ended)
		return d, nil
	}
	var err error
	if d.guard, err = newGuard(f.origins); err != nil {
		return nil, err
	}
	if f.keys != "" {
		if d.guard.keys, err = readKeys(f.keys, o.Logger); err != nil {
			return nil, fmt.Errorf("--keys: %w", err)
		}
	}
	secret.Warn(o.Logger, f.key, "--http-key")
	secure, err := daemon.Certificates("http", f.cert, f.key, f.ca, o.Logger)
	if err != nil {
		return nil, err
	}
	d.guard.byCert, d.guard.proxied = f.ca != "", f.plain
	if d.listener, err = daemon.Listen(o.Logger, "http", f.address, f.flag.Changed, "requests by HTTP"); err != nil {
		return nil, err
	}
	scheme := "http"
	if secure != nil {
		d.listener, scheme = tls.NewListener(d.listener, secure), "https"
	}
	d.serve(ctx, cmp.Or(f.slow, readRequest))
	o.Logger.Info("requests by HTTP", "http", scheme+"://"+d.Addr())
	return d, nil
}

// Bus returns what to serve instead of the bus of the options: requests of both come by it. It is nil if there are
// none.
func (d *Door) Bus() stream.Bus {
	if d.server == nil {
		return d.o.Bus
	}
	return d.bus
}

// Addr returns where HTTP is answered, "" if it is off.
func (d *Door) Addr() string {
	if d.listener == nil {
		return ""
	}
	return d.listener.Addr().String()
}

func (d *Door) serve(ctx context.Context, slow time.Duration) {
	d.server = &http.Server{
		Handler: d.routes(), ReadHeaderTimeout: min(slow, readHeader), ReadTimeout: slow, WriteTimeout: writeReply,
		IdleTimeout: idle, MaxHeaderBytes: maxHeader, ConnState: d.count, Protocols: new(http.Protocols),
		ErrorLog: slog.NewLogLogger(d.o.Logger.Handler(), slog.LevelDebug),
	}
	d.server.Protocols.SetHTTP1(true)
	d.server.Protocols.SetHTTP2(true)
	d.server.Protocols.SetUnencryptedHTTP2(true)
	go func() {
		defer close(d.ended)
		if err := d.server.Serve(d.listener); !errors.Is(err, http.ErrServerClosed) {
			d.o.Logger.Error("the HTTP server has stopped: no more requests by HTTP", "error", err)
		}
	}()
	context.AfterFunc(ctx, func() { d.Close() })
}

// count cuts off connections beyond the limit: the log needs open files, too.
func (d *Door) count(c net.Conn, s http.ConnState) {
	switch s {
	case http.StateNew:
		if d.conns.Add(1) > maxConns {
			c.Close()
		}
	case http.StateClosed, http.StateHijacked:
		d.conns.Add(-1)
	}
}

// Close ends the server when the requests under way are answered.
func (d *Door) Close() error {
	if d.server == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopping)
	defer cancel()
	err := d.server.Shutdown(ctx)
	if err != nil {
		err = d.server.Close()
	}
	<-d.ended
	return err
}
