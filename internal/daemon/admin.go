package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/pflag"
)

// DefaultAdmin is where the admin pages are when nothing else is said.
const DefaultAdmin = "127.0.0.1:9464"

// Limits of the admin server. A scrape is one small request.
const (
	adminRead    = 5 * time.Second
	adminWrite   = 30 * time.Second
	adminIdle    = 2 * time.Minute
	adminHeader  = 16 << 10
	adminScrapes = 4 // at once
)

// AdminFlag is the value of --admin.
type AdminFlag struct {
	address string
	flag    *pflag.Flag
}

// Add adds the flag --admin.
func (a *AdminFlag) Add(flags *pflag.FlagSet) {
	flags.StringVar(&a.address, "admin", DefaultAdmin, "address of /metrics, /healthz and /readyz, port 0 for a free one; none: off")
	a.flag = flags.Lookup("admin")
}

// Check judges the flag's value.
func (a *AdminFlag) Check() error {
	if a.off() {
		return nil
	}
	if _, port, err := net.SplitHostPort(a.address); err != nil || port == "" {
		return Usagef("--admin %q: expected HOST:PORT, for example %s, or none", a.address, DefaultAdmin)
	}
	return nil
}

func (a *AdminFlag) off() bool { return a.address == "none" }

// Probes tell how a process is. Both return nil if it is well, else an error of
// which the pages show the first line. They are called from many goroutines.
type Probes struct {
	Alive func() error // its loops are at work
	Ready func() error // it can do now what it is there for
}

// Page is a page beside metrics and probes.
type Page struct {
	Path   string // without parameters
	Answer http.HandlerFunc
}

// Admin is the HTTP server of a process for those who look after it. It has a
// registry and a mux of its own: several can be in one process.
type Admin struct {
	Registry *prometheus.Registry
	logger   *slog.Logger
	pages    []Page
	listener net.Listener // nil: off
	server   *http.Server
	ended    chan struct{}
}

// Open starts the server, before the work that it tells of. A port that is taken is
// an error if the address was given, else a free port is used.
func (a *AdminFlag) Open(logger *slog.Logger, p Probes, pages ...Page) (*Admin, error) {
	admin := &Admin{Registry: prometheus.NewRegistry(), logger: logger, pages: pages}
	admin.Registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		collectors.NewBuildInfoCollector())
	if a.off() {
		return admin, nil
	}
	l, err := net.Listen("tcp", a.address)
	if err != nil && (a.flag == nil || !a.flag.Changed) {
		host, _, splitErr := net.SplitHostPort(a.address)
		if splitErr != nil {
			return nil, splitErr
		}
		l, err = net.Listen("tcp", net.JoinHostPort(host, "0"))
	}
	if err != nil {
		return nil, fmt.Errorf("--admin %s: %w; choose another address, or none", a.address, err)
	}
	admin.serve(l, p)
	logger.Info("admin pages", "metrics", "http://"+l.Addr().String()+"/metrics")
	return admin, nil
}

func (a *Admin) serve(l net.Listener, p Probes) {
	a.listener, a.ended = l, make(chan struct{})
	a.server = &http.Server{
		Handler: a.mux(p), ReadTimeout: adminRead, ReadHeaderTimeout: adminRead, WriteTimeout: adminWrite,
		IdleTimeout: adminIdle, MaxHeaderBytes: adminHeader, ErrorLog: slog.NewLogLogger(a.logger.Handler(), slog.LevelDebug),
	}
	go func() {
		defer close(a.ended)
		if err := a.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			a.logger.Error("the admin pages are gone", "error", err)
		}
	}()
}

// mux has no profiles: they would show what is in memory.
func (a *Admin) mux(p Probes) *http.ServeMux {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(a.Registry, promhttp.HandlerOpts{
		MaxRequestsInFlight: adminScrapes, ErrorLog: slog.NewLogLogger(a.logger.Handler(), slog.LevelWarn)}))
	mux.HandleFunc("GET /healthz", page(p.Alive, "alive"))
	mux.HandleFunc("GET /readyz", page(p.Ready, "ready"))
	for _, p := range a.pages {
		mux.HandleFunc("GET "+p.Path, func(w http.ResponseWriter, r *http.Request) {
			noStore(w)
			p.Answer(w, r)
		})
	}
	return mux
}

// page answers 200 and a word if all is well, else 503 and one line.
func page(probe func() error, well string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		noStore(w)
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		line := well
		if err := probe(); err != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			line = firstLine(err.Error())
		}
		io.WriteString(w, line+"\n")
	}
}

func noStore(w http.ResponseWriter) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return strings.TrimRight(s, "\r")
}

// Addr returns where the pages are, "" if they are off.
func (a *Admin) Addr() string {
	if a.listener == nil {
		return ""
	}
	return a.listener.Addr().String()
}

// Close ends the server after the work that it tells of, when the pages under way are
// answered.
func (a *Admin) Close() error {
	if a.listener == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err := a.server.Shutdown(ctx)
	if err != nil {
		err = a.server.Close() // a client that reads slowly does not keep the process
	}
	<-a.ended
	return err
}
