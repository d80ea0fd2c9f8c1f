// Package embedded runs a NATS server with JetStream inside the process, on a
// local folder: a log and a bus with nothing to install.
//
// The folder is locked: two servers on one folder would hand out the same offsets
// and lose records without a word. Other processes join through connect.json; see
// package attach.
//
// # Durability
//
// An acknowledged record survives the death of the process: it has been written
// to the file. It survives a power cut once it is synced: every second by default,
// or with Sync "always" before anybody is told of it; one sync serves all records
// that wait for one.
package embedded

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"

	"hindsight/pkg/stream"
	"hindsight/pkg/stream/attach"
	"hindsight/pkg/stream/nats"
)

// Defaults of [Options].
const (
	DefaultHost = "127.0.0.1"
	DefaultPort = 4222
	DefaultSync = "1s" // between syncs, unless Sync is SyncAlways
)

// The users of the server, beside requesters with names. Whoever connects without a name
// is anonymous.
const (
	serviceUser   = "service"
	clientUser    = "client"
	anonymousUser = "anonymous"
)

// Limits of the server.
const (
	// DefaultMaxConns is how many connections it takes; the next one is refused by name. Half of
	// them are kept for the service's own user.
	DefaultMaxConns = 2048
	maxSubs         = 1000    // subscriptions of a connection
	maxSubTokens    = 8       // parts of a subject that is subscribed to: each takes memory of its own
	maxPayload      = 1 << 20 // of a message, its headers included
	maxControlLine  = 1 << 10 // of a subject with its inbox, or of who one is
	// bytes that wait for a client that does not read; then it is cut off. A reader of logs asks for 16 MiB
	maxUnread = 32 << 20
	loginTime = 2 * time.Second
)

// Options configure an engine. Only Dir is needed.
type Options struct {
	Dir        string
	Host       string       // an address of this machine; others than loopback are refused
	Port       int          // 0 means DefaultPort
	StrictPort bool         // a taken port is an error; otherwise a free one is chosen
	ReadOnly   bool         // the folder is only read: see [Open]
	DontListen bool         // for tests: only in-process connections, and no connect.json
	Logger     *slog.Logger // the server's log; nil: none
	MaxBytes   int64        // limit of the store; 0: 80 % of the disk that was free when it was created
	Sync       string       // SyncAlways, SyncInterval or a duration; "" means SyncInterval
	MaxConns   int          // connections at once; 0: DefaultMaxConns
	Requesters []Requester  // who may ask for decisions; nil: anybody on this machine
	Name       string       // of the process, shown by the server's tools; "": that of the command
	Log        nats.Options // of the log

	bare bool // no log: see OpenBus
}

// Engine is a running server with a log and a bus on it.
type Engine struct {
	o      Options
	so     *server.Options
	server *server.Server
	client *nats.Client
	gate   *gate // nil: what the server sends passes at once
	url    string
	access attach.Connect
	view   string // folder of its own in place of Dir; "": none

	closers []func() error // of Close; the last one begins
}

// Open locks the folder, making it if needed, and starts the server on it. Unless the
// last one was closed that takes longer the more the log holds: half a second for a
// million records. ctx
// bounds the wait for the server to be ready, but not the reading of the store.
//
// With ReadOnly the folder must hold a log, and nothing of it changes, however old its
// records are: whoever asks this process sees it through links in a temporary folder, and
// cannot append. Nobody else can connect. Several may read a folder at once; meanwhile
// nobody can serve it. Every record is read once before Open returns.
func Open(ctx context.Context, o Options) (*Engine, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	if o.ReadOnly {
		return openReadOnly(ctx, o)
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("folder %s cannot be made: %w", o.Dir, err)
	}
	unlock, err := attach.Lock(o.Dir)
	if err != nil {
		return nil, advise(err)
	}
	e := &Engine{o: o, closers: []func() error{unlock}}
	_ = os.Remove(filepath.Join(o.Dir, attach.ConnectFile)) // left by a process that crashed
	if err = completeStreams(o.Dir); err == nil {
		err = e.start(ctx)
	}
	if err != nil {
		_ = e.Close()
		if e.lostPort() {
			return Open(ctx, o)
		}
		return nil, advise(err)
	}
	return e, nil
}

// lostPort reports whether another process has taken the port that had been free when this one looked.
func (e *Engine) lostPort() bool {
	if e.so == nil || e.o.Port <= 0 || e.so.Port != e.o.Port {
		return false
	}
	port, err := e.choosePort()
	return port != e.o.Port || err != nil
}

// complete checks the options and fills in the defaults.
func (o *Options) complete() error {
	if o.Dir == "" && !o.bare {
		return errors.New("embedded log: no folder given")
	}
	o.Host = cmp.Or(o.Host, DefaultHost)
	if ip := net.ParseIP(o.Host); o.Host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("embedded log: host %s is not a loopback address; run a NATS server to serve other machines",
			o.Host)
	}
	o.Port = cmp.Or(o.Port, DefaultPort)
	if o.Sync == "" || o.Sync == SyncInterval {
		o.Sync = DefaultSync
	}
	o.Name = cmp.Or(o.Name, filepath.Base(os.Args[0]))
	o.MaxConns = cmp.Or(o.MaxConns, DefaultMaxConns)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return nil
}

// start runs the server and connects to it.
func (e *Engine) start(ctx context.Context) error {
	var err error
	if e.so, err = e.serverOptions(); err != nil {
		return err
	}
	if e.serves() {
		if err := checkStopped(e.o.Dir); err != nil {
			return err
		}
		if err := e.startGate(); err != nil {
			return err
		}
	}
	if e.server, err = server.NewServer(e.so); err != nil {
		return fmt.Errorf("embedded server: %w", err)
	}
	inOrder := false
	e.atClose(func() error {
		e.server.Shutdown()
		e.server.WaitForShutdown()
		if inOrder {
			return noteStopped(e.o.Dir)
		}
		return nil
	})
	log := &serverLog{log: e.o.Logger, faults: make(chan error, 1)}
	e.server.SetLoggerV2(log, false, false, false)
	e.server.Start()
	for !e.server.ReadyForConnections(10 * time.Millisecond) {
		if ctx.Err() != nil {
			return fmt.Errorf("embedded server: not ready: %w", ctx.Err())
		}
		if err := log.fatal(); err != nil {
			return err
		}
	}
	if err := log.fatal(); err != nil { // ready or not: a store that cannot be used is told only here
		return err
	}
	if len(e.o.Requesters) > 0 {
		if err := e.connectAccounts(); err != nil {
			return err
		}
	}
	lo := e.o.Log
	lo.MaxStore = e.so.JetStreamMaxStore
	if lo.Logger == nil {
		lo.Logger = e.o.Logger
	}
	var inside natsgo.InProcessConnProvider = e.server
	if e.gate != nil {
		e.gate.server, inside = e.server, e.gate
	} else if !e.o.bare {
		lo.State = newStates(e.server).of
	}
	e.client, err = nats.Dial("", e.o.Name, lo, natsgo.InProcessServer(inside),
		natsgo.UserInfo(serviceUser, e.access.Password), natsgo.CustomInboxPrefix(attach.ServiceInbox))
	if err != nil {
		return err
	}
	e.atClose(func() error {
		inOrder = e.serves() && e.client.Log().Held() == nil && (e.gate == nil || e.gate.pass() == nil)
		return e.client.Close()
	})
	if e.serves() {
		e.atClose(startMender(e, log.faults))
	}
	if e.o.DontListen {
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	var keeping sync.WaitGroup
	keeping.Go(func() { e.keepConnections(ctx) })
	e.atClose(func() error {
		cancel()
		keeping.Wait()
		return nil
	})
	addr, err := e.listen()
	if err != nil {
		return err
	}
	e.url = "nats://" + addr.String()
	if at, ok := addr.(*net.TCPAddr); ok && e.o.Port > 0 && at.Port != e.o.Port {
		e.o.Logger.Warn("the usual port is taken by another process, which answers clients there; using "+
			"another one", "taken", net.JoinHostPort(e.o.Host, strconv.Itoa(e.o.Port)), "used", e.url)
	}
	if e.o.bare {
		return nil
	}
	return e.writeConnect()
}

// serverOptions are the options of the server. See the package comment of server
// for what must not be left at its default.
func (e *Engine) serverOptions() (*server.Options, error) {
	port, err := e.choosePort()
	if err != nil {
		return nil, err
	}
	e.access = attach.Connect{User: serviceUser, Password: rand.Text(), Inbox: attach.ServiceInbox,
		ClientUser: clientUser, ClientPassword: rand.Text(), ClientInbox: attach.ClientInbox, PID: os.Getpid()}
	so := &server.Options{
		ServerName: "hindsight-embedded", Host: e.o.Host, Port: port, DontListen: e.o.DontListen,
		NoSigs:                 true, // else the server exits the process on its own at SIGINT
		DisableJetStreamBanner: true,
		MaxPayload:             maxPayload, MaxControlLine: maxControlLine, MaxPending: maxUnread,
		MaxConn: e.o.MaxConns, MaxSubs: maxSubs, MaxSubTokens: maxSubTokens, AuthTimeout: loginTime.Seconds(),
	}
	e.users(so)
	if e.o.bare {
		return so, nil
	}
	so.JetStream, so.StoreDir, so.JetStreamMaxMemory = true, e.o.Dir, 64<<20
	if so.JetStreamMaxStore, err = storeLimit(e.o.Dir, e.o.MaxBytes); err != nil {
		return nil, err
	}
	if e.o.Sync == SyncAlways {
		so.SyncAlways = true // unless there is a gate
		return so, nil
	}
	so.SyncInterval, err = time.ParseDuration(e.o.Sync)
	if err != nil || so.SyncInterval <= 0 {
		return nil, fmt.Errorf(`embedded log: sync %q is neither always, interval, nor a positive duration`, e.o.Sync)
	}
	return so, nil
}

// choosePort returns the port to listen on, -1 for any.
func (e *Engine) choosePort() (int, error) {
	if e.o.DontListen || e.o.Port < 0 {
		return -1, nil
	}
	l, err := net.Listen("tcp", net.JoinHostPort(e.o.Host, strconv.Itoa(e.o.Port)))
	if err == nil {
		return e.o.Port, l.Close()
	}
	if e.o.StrictPort {
		return 0, fmt.Errorf("embedded server: %w; give another port, or none to have a free one chosen", err)
	}
	return -1, nil
}

// writeConnect writes connect.json in one step.
func (e *Engine) writeConnect() error {
	e.access.URL = e.url
	data, err := json.MarshalIndent(&e.access, "", "  ")
	if err != nil {
		return err
	}
	name := filepath.Join(e.o.Dir, attach.ConnectFile)
	e.atClose(func() error { return os.Remove(name) })
	return writeFile(name, append(data, '\n'))
}

// writeFile replaces a file, readable by its owner only, and not with an empty one should the
// power fail. Nothing that is there is written to: it may be a link to another file.
func writeFile(name string, data []byte) error {
	_ = os.Remove(name + ".new") // left by a process that crashed
	f, err := os.OpenFile(name+".new", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

// Log returns the log.
func (e *Engine) Log() *nats.Log { return e.client.Log() }

// Bus returns the bus.
func (e *Engine) Bus() stream.Bus { return e.client.Bus() }

// URL returns where the server listens, "" if it does not.
func (e *Engine) URL() string { return e.url }

// Close drains the bus, closes the log, stops the server, and unlocks the folder.
func (e *Engine) Close() error {
	var errs []error
	for _, f := range slices.Backward(e.closers) {
		errs = append(errs, f())
	}
	e.closers, e.url = nil, ""
	return errors.Join(errs...)
}

// atClose has f called by Close, before what was given earlier.
func (e *Engine) atClose(f func() error) { e.closers = append(e.closers, f) }

// serves reports whether the engine serves the folder of a log.
func (e *Engine) serves() bool { return !e.o.bare && e.view == "" }
