package daemon

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/pflag"

	"hindsight/internal/secret"
)

// defaultAdmin is where the admin pages are when nothing else is said.
const defaultAdmin = "127.0.0.1:9464"

// Limits of the admin server. A scrape is one small request.
const (
	adminRead    = 5 * time.Second
	adminWrite   = 30 * time.Second
	adminIdle    = 2 * time.Minute
	adminHeader  = 16 << 10
	adminBody    = 64 << 10
	adminScrapes = 4               // at once
	adminConns   = 64              // at once; for another one the longest unused is closed
	adminProfile = 2 * time.Minute // what a profile may take
)

// AdminFlag is the value of --admin, and of the flags that restrict access to its pages.
type AdminFlag struct {
	Getenv func(string) string // of [AdminTokenEnv]; nil: there is none

	address       string
	token         string // file
	cert, key, ca string // files
	pprof         bool
	flag          *pflag.Flag
}

// Add adds the flags.
func (a *AdminFlag) Add(flags *pflag.FlagSet) {
	flags.StringVar(&a.address, "admin", defaultAdmin, "address of the admin pages: / for people and its /state and "+
		"/explain, /metrics, /healthz, /readyz, /mode, /guard, and of a decider /certificate and /models; port 0 for "+
		"a free one; none: off; others than loopback need a token or --admin-ca")
	flags.StringVar(&a.token, "admin-token-file", "", "file, mode 0600, with the token of the admin pages, sent as "+
		"Bearer or as a password (or the environment variable "+AdminTokenEnv+")")
	flags.StringVar(&a.cert, "admin-cert", "", "file with the certificate of the admin pages, which then speak TLS")
	flags.StringVar(&a.key, "admin-key", "", "file with the key of --admin-cert")
	flags.StringVar(&a.ca, "admin-ca", "", "file with the authorities of client certificates; a client with one sees "+
		"the admin pages")
	flags.BoolVar(&a.pprof, "pprof", false, "profiles at /debug/pprof/ of the admin pages; they show what is in memory")
	a.flag = flags.Lookup("admin")
}

// Check judges the flags' values.
func (a *AdminFlag) Check() error {
	if a.off() {
		return nil
	}
	host, port, err := net.SplitHostPort(a.address)
	switch {
	case err != nil || port == "":
		return Usagef("--admin %q: expected HOST:PORT, for example %s, or none", a.address, defaultAdmin)
	case (a.cert == "") != (a.key == ""):
		return Usagef("--admin-cert and --admin-key go together")
	case a.ca != "" && a.cert == "":
		return Usagef("--admin-ca asks for the certificates of clients, which needs --admin-cert and --admin-key")
	case !IsLoopback(host) && a.ca == "" && a.token == "" && a.getenv(AdminTokenEnv) == "":
		return Usagef("--admin %s is reached by other machines: give --admin-token-file (or %s), or --admin-ca for "+
			"client certificates, or listen on %s", a.address, AdminTokenEnv, defaultAdmin)
	}
	return nil
}

func (a *AdminFlag) getenv(name string) string {
	if a.Getenv == nil {
		return ""
	}
	return a.Getenv(name)
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
	Path   string           // without parameters
	Answer http.HandlerFunc // to GET; nil: there is nothing to see
	Post   http.HandlerFunc // nil: there is nothing to change
}

// Admin is the HTTP server of a process for its operators. It has a
// registry and a mux of its own: several can be in one process.
type Admin struct {
	Registry *prometheus.Registry
	logger   *slog.Logger
	pages    []Page
	guard    guard
	pprof    bool
	listener net.Listener // nil: off
	server   *http.Server
	ended    chan struct{}
}

// Open starts the server, before the work that it tells of. A port that is taken is
// an error if the address was given, else a free port is used.
func (a *AdminFlag) Open(logger *slog.Logger, p Probes, pages ...Page) (*Admin, error) {
	admin := &Admin{Registry: prometheus.NewRegistry(), logger: logger, pages: pages, pprof: a.pprof}
	admin.Registry.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), collectors.NewBuildInfoCollector())
	if a.off() {
		return admin, nil
	}
	if err := a.Check(); err != nil {
		return nil, err
	}
	secret.Warn(logger, a.key, "--admin-key")
	secure, err := a.guard(&admin.guard, logger)
	if err != nil {
		return nil, err
	}
	given := a.flag != nil && a.flag.Changed
	l, err := Listen(logger, "admin", a.address, given, "admin pages")
	if err != nil {
		return nil, err
	}
	l = newLimitedListener(l, adminConns)
	scheme := "http"
	if secure != nil {
		l, scheme = tls.NewListener(l, secure), "https"
	} else if host, _, _ := net.SplitHostPort(a.address); !IsLoopback(host) {
		logger.Warn("the admin token goes over the network as it is: give --admin-cert and --admin-key")
	}
	admin.serve(l, p)
	logger.Info("admin pages", "page", scheme+"://"+l.Addr().String()+"/", "metrics",
		scheme+"://"+l.Addr().String()+"/metrics")
	return admin, nil
}

// guard reads what lets people in, and how to speak TLS, nil if not at all.
func (a *AdminFlag) guard(g *guard, logger *slog.Logger) (*tls.Config, error) {
	token, err := readToken(a.token, a.Getenv)
	if err != nil {
		return nil, err
	}
	*g = guard{byToken: token != "", token: sha256.Sum256([]byte(token)), byCert: a.ca != ""}
	return Certificates("admin", a.cert, a.key, a.ca, logger)
}

func (a *Admin) serve(l net.Listener, p Probes) {
	a.listener, a.ended = l, make(chan struct{})
	a.server = &http.Server{
		ReadTimeout: adminRead, ReadHeaderTimeout: adminRead, WriteTimeout: adminWrite,
		IdleTimeout: adminIdle, MaxHeaderBytes: adminHeader, ConnContext: withLimited,
		ErrorLog: slog.NewLogLogger(a.logger.Handler(), slog.LevelDebug),
	}
	a.server.Handler = noteUse(http.MaxBytesHandler(a.guard.wrap(a.mux(p)), adminBody))
	go func() {
		defer close(a.ended)
		if err := a.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			a.logger.Error("the server of the admin pages has stopped", "error", err)
		}
	}()
}

// mux has no profiles unless they are asked for: they show what is in memory.
func (a *Admin) mux(p Probes) *http.ServeMux {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(a.Registry, promhttp.HandlerOpts{
		MaxRequestsInFlight: adminScrapes, ErrorLog: slog.NewLogLogger(a.logger.Handler(), slog.LevelWarn)}))
	mux.HandleFunc("GET /healthz", a.page(p.Alive, "alive"))
	mux.HandleFunc("GET /readyz", a.page(p.Ready, "ready"))
	for _, p := range a.pages {
		for method, h := range map[string]http.HandlerFunc{"GET": p.Answer, "POST": p.Post} {
			if h == nil {
				continue
			}
			mux.HandleFunc(method+" "+p.Path, func(w http.ResponseWriter, r *http.Request) {
				noStore(w)
				h(w, r)
			})
		}
	}
	if a.pprof {
		a.server.WriteTimeout = adminProfile
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
		mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	}
	return mux
}

// page answers 200 and a word if all is well, else 503 and one line: why it is not, or to a client that is not admitted
// only that.
func (a *Admin) page(probe func() error, well string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		noStore(w)
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		line := well
		if err := probe(); err != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			if line = "not " + well; a.guard.lets(r) {
				line = firstLine(err.Error())
			}
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

// Close ends the server after the work that it tells of, when the pages under way are answered.
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
