// Package engine opens what the flag --log names: a log, and the bus for requests beside it. It links the embedded
// server; processes that must not use package attach.
package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"hindsight/internal/access"
	"hindsight/internal/join"
	"hindsight/internal/secret"
	"hindsight/internal/service"
	"hindsight/internal/watch"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/attach"
	"hindsight/pkg/stream/embedded"
	"hindsight/pkg/stream/mem"
	"hindsight/pkg/stream/nats"
)

// DefaultLog is the log of a system that is started without a word.
const DefaultLog = "embedded:./hindsight-data"

// SeedName and ModelName are the files beside an embedded log.
const (
	SeedName  = "seed"
	ModelName = "model.yaml"
)

// Options say what to open.
type Options struct {
	Log string // embedded:DIR, nats://…, kafka://… or mem:
	// address of the embedded server, port 0: a free one; "": 127.0.0.1:4222, or a free port if that is taken
	Listen     string
	Requesters string // file with names and passwords of the embedded server's clients; "": all on this machine
	Sync       string // of an embedded log: embedded.SyncAlways or embedded.SyncInterval; "": the latter
	Access     access.Flags
	Requests   string // beside Kafka or memory: nats://…, [access.None], or "" for a server inside the process
	// the log is only read: an embedded one that another process serves is joined, and one without a server stays as
	// it is
	Read   bool
	Logger *slog.Logger
}

// Engine is an open log with its bus.
type Engine struct {
	Log      stream.Log
	Bus      stream.Bus // nil: no requests
	BusApart bool       // other processes on the log have buses of their own
	URL      string     // where requests are answered; "" if nowhere
	Dir      string     // of the embedded log; "" for others
	Joined   bool       // another process serves it

	ClockSkew time.Duration // by how much the clocks may differ that give log times; 0: they are of one

	Usage watch.StoreUsage // of the embedded log that this process serves; nil: none

	// nil: no other process can do the work
	sharing func(ctx context.Context, name, holder string) (service.Sharing, error)
	close   func() error
}

// Sharing returns what shares the work on a model with other processes, nil on a log
// that this process has to itself. holder names this process for people.
func (e *Engine) Sharing(ctx context.Context, name, holder string) (service.Sharing, error) {
	if e.sharing == nil {
		return nil, nil
	}
	return e.sharing(ctx, name, holder)
}

// Close releases everything.
func (e *Engine) Close() error { return e.close() }

// Spec is a parsed --log.
type Spec struct {
	Kind string // embedded, nats, kafka or mem
	Dir  string // of embedded
}

// SeedFile returns where the secret seed lies unless it is said otherwise; "" for a log in memory.
func (s Spec) SeedFile() string {
	switch s.Kind {
	case "embedded":
		return filepath.Join(s.Dir, SeedName)
	case "nats", "kafka":
		return access.SeedFile
	}
	return ""
}

// Parse reads the value of --log.
func Parse(s string) (Spec, error) {
	kind, rest, _ := strings.Cut(s, ":")
	switch {
	case kind == "embedded" && rest != "":
		return Spec{Kind: kind, Dir: filepath.Clean(rest)}, nil
	case kind == "embedded":
		return Spec{}, fmt.Errorf("--log %q: which folder? For example --log %s", s, DefaultLog)
	case s == "mem:" || s == "mem":
		return Spec{Kind: "mem"}, nil
	case access.IsNATS(s):
		return Spec{Kind: "nats"}, access.Check(s)
	case access.IsKafka(s):
		return Spec{Kind: "kafka"}, access.Check(s)
	}
	return Spec{}, fmt.Errorf("--log %q: expected embedded:DIR, nats://HOST, kafka://HOST or mem:; for example --log "+
		"%s", nats.Redact(s), DefaultLog)
}

// ParseListen reads the value of --listen. Port 0 means any that is free.
func ParseListen(s string) (host string, port int, err error) {
	host, number, err := net.SplitHostPort(s)
	if err != nil {
		return "", 0, fmt.Errorf("--listen %q: expected HOST:PORT, for example 127.0.0.1:4222", s)
	}
	if port, err = strconv.Atoi(number); err != nil || port < 0 || port > 65535 {
		return "", 0, fmt.Errorf("--listen %q: %q is not a port", s, number)
	}
	return host, port, nil
}

// Open opens a log, making it if needed.
func Open(ctx context.Context, o Options) (*Engine, error) {
	spec, err := Parse(o.Log)
	if err != nil {
		return nil, err
	}
	switch spec.Kind {
	case "mem":
		return openMemory(ctx, o)
	case "nats", "kafka":
		return reach(ctx, o)
	}
	if o.Read {
		if _, held, err := attach.Locked(spec.Dir); err == nil && held {
			return joinServer(spec.Dir)
		}
	}
	eo, err := o.server()
	if err != nil {
		return nil, err
	}
	eo.Dir, eo.ReadOnly, eo.Sync = spec.Dir, o.Read, o.Sync
	e, err := embedded.Open(ctx, eo)
	if err != nil {
		return nil, err
	}
	return &Engine{Log: e.Log(), Bus: e.Bus(), URL: e.URL(), Dir: spec.Dir, Usage: e.Usage, close: e.Close}, nil
}

// openMemory makes a log in memory, with a server inside the process for requests, which need no folder.
func openMemory(ctx context.Context, o Options) (*Engine, error) {
	r, err := o.requests(ctx)
	if err != nil {
		return nil, err
	}
	l := mem.New(mem.Options{Clock: func() int64 { return time.Now().UnixNano() }})
	return &Engine{Log: l, Bus: r.bus, URL: r.url, close: func() error { return errors.Join(r.close(), l.Close()) }},
		nil
}

// maxRequesters bounds the bytes of the file with names and passwords.
const maxRequesters = 1 << 20

// server says how a server inside the process is to run.
func (o *Options) server() (eo embedded.Options, err error) {
	eo.Logger = o.Logger
	if o.Requesters != "" {
		text, err := secret.Read(o.Requesters, "requesters", maxRequesters)
		if err != nil {
			return eo, err
		}
		if eo.Requesters, err = embedded.ParseRequesters(text); err != nil {
			return eo, fmt.Errorf("requesters file %s: %w", o.Requesters, err)
		}
	}
	if o.Listen == "" {
		return eo, nil
	}
	if eo.Host, eo.Port, err = ParseListen(o.Listen); err != nil {
		return eo, err
	}
	eo.StrictPort = true
	if eo.Port == 0 {
		eo.Port = -1 // a free one
	}
	return eo, nil
}

// reach connects to servers, or to brokers and to what carries requests beside them.
func reach(ctx context.Context, o Options) (*Engine, error) {
	s, err := o.Access.Dial(ctx, o.Log, filepath.Base(os.Args[0]), o.Logger)
	if err != nil {
		return nil, err
	}
	if s.Bus != nil {
		return &Engine{Log: s.Log, Bus: s.Bus, URL: access.Show(o.Log), ClockSkew: time.Duration(join.ClockSkew),
			sharing: s.Sharing, close: s.Close}, nil
	}
	r, err := o.requests(ctx)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return &Engine{Log: s.Log, Bus: r.bus, BusApart: r.apart, URL: r.url, ClockSkew: time.Duration(join.ClockSkew),
		sharing: s.Sharing,
		close:   func() error { return errors.Join(r.close(), s.Close()) }}, nil
}

// joinServer connects to the process that serves a folder.
func joinServer(dir string) (*Engine, error) {
	c, err := attach.Dial(dir, filepath.Base(os.Args[0]), nats.Options{})
	if err != nil {
		return nil, err
	}
	return &Engine{Log: c.Log(), Bus: c.Bus(), Dir: dir, Joined: true, close: c.Close}, nil
}

// Models returns the names of the models that a log holds.
func Models(ctx context.Context, log stream.Log) ([]string, error) {
	l, ok := log.(stream.Lister)
	if !ok {
		return nil, errors.New("this log cannot list its topics: name the model")
	}
	topics, err := l.Topics(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, t := range topics {
		if name, ok := strings.CutSuffix(t, join.TopicsOf("").Feedback); ok {
			names = append(names, name)
		}
	}
	return names, nil
}

// Exists reports whether an embedded log is in a folder already.
func Exists(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "jetstream"))
	return err == nil
}
