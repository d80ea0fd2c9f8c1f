package see

import (
	"context"
	_ "embed" // the page
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hindsight/internal/daemon"
	"hindsight/internal/explain"
	"hindsight/internal/service"
	"hindsight/internal/style"
	"hindsight/internal/watch"
)

// The page's own files.
var (
	//go:embed assets/page.html
	page string
	//go:embed assets/page.css
	sheet string
	//go:embed assets/page.js
	script string
)

// Options are what a See knows from the start.
type Options struct {
	Program string
	Version string
	Model   string
	Health  *watch.Health
	Insight *service.Insight // nil: no decider is here
	Control *service.Control // nil: no joiner is here
}

// See answers the pages of one process.
type See struct {
	o     Options
	began time.Time
	past  history
	watch *watchman
	live  atomic.Pointer[live]
	cert  certificate
	rounds
}

// certificate is the last one computed: it takes the decider's time.
type certificate struct {
	mu   sync.Mutex
	at   time.Time
	page *service.CertificatePage
}

// look returns a certificate that is no older than a sample, and its age.
func (c *certificate) look(i *service.Insight, now time.Time) (*service.CertificatePage, time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.page == nil || now.Sub(c.at) >= sampleEvery {
		c.page, _ = i.Look() // nil: no decider is at work here
		c.at = now
	}
	return c.page, max(0, now.Sub(c.at)) // another look may have come between
}

// live is what there is once the process has its metrics.
type live struct {
	gather prometheus.Gatherer
	scope  *watch.Scope
}

// New returns one that knows nothing yet but whether the process is ready.
func New(o Options) *See {
	s := &See{o: o, began: time.Now(), watch: newWatchman()}
	s.rounds.room = make(chan struct{}, 1)
	return s
}

// Watch looks at the metrics from now until the context ends.
func (s *See) Watch(ctx context.Context, g prometheus.Gatherer, scope *watch.Scope) {
	s.past.add(take(g, time.Now()))
	s.live.Store(&live{g, scope})
	go func() {
		tick := time.NewTicker(sampleEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case now := <-tick.C:
				m := &moment{take(g, now), &s.past}
				s.watch.judge(m)
				s.past.add(m.sample)
			}
		}
	}()
}

// Pages returns the pages for the admin port.
func (s *See) Pages() []daemon.Page {
	return []daemon.Page{
		{Path: "/{$}", Answer: file(page, "text/html; charset=utf-8")},
		{Path: "/look.css", Answer: file(style.Sheet, "text/css; charset=utf-8")},
		{Path: "/page.css", Answer: file(sheet, "text/css; charset=utf-8")},
		{Path: "/chart.js", Answer: file(style.Script, "text/javascript; charset=utf-8")},
		{Path: "/page.js", Answer: file(script, "text/javascript; charset=utf-8")},
		{Path: "/state", Answer: s.answerState},
		{Path: "/explain", Answer: s.answerExplain},
	}
}

// policy lets the page load its own files and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri " +
	"'none'; form-action 'none'; frame-ancestors 'none'"

func file(text, kind string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.Header().Set("Content-Security-Policy", policy)
		w.Header().Set("Referrer-Policy", "no-referrer")
		io.WriteString(w, text) // an error is the client's: it is gone
	}
}

func (s *See) answerState(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, s.state(time.Now()))
}

// answer writes JSON.
func answer(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(code)
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.Encode(v) // an error is the client's: it is gone
}

// rounds explains rounds, one at a time.
type rounds struct {
	config atomic.Pointer[explain.Config]
	room   chan struct{}
}

// explainLimit is how long the explanation of a round may take.
const explainLimit = 20 * time.Second

// maxID is the longest id that is looked for.
const maxID = 256

// Explain makes rounds of a log explainable. Their features are never shown.
func (s *See) Explain(c explain.Config) {
	c.Features = false
	s.config.Store(&c)
}

// answerExplain answers GET /explain?id=ID, in JSON, or with format=text for people.
func (s *See) answerExplain(w http.ResponseWriter, r *http.Request) {
	id := r.URL.Query().Get("id")
	refuse := func(code int, message string) {
		answer(w, code, map[string]any{"error": map[string]any{"code": code, "message": message, "id": id}})
	}
	c := s.config.Load()
	switch {
	case id == "" || len(id) > maxID:
		id = ""
		refuse(http.StatusBadRequest, "give the id of a round: /explain?id=ID")
		return
	case c == nil:
		refuse(http.StatusServiceUnavailable, "not ready: the log is not open yet")
		return
	}
	select {
	case s.room <- struct{}{}:
		defer func() { <-s.room }()
	default:
		refuse(http.StatusServiceUnavailable, "another round is being explained: ask again")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), explainLimit)
	defer cancel()
	e, err := explain.Round(ctx, *c, id)
	switch {
	case errors.Is(err, explain.ErrNotFound):
		refuse(http.StatusNotFound, explain.ErrNotFound.Error())
	case errors.Is(err, context.DeadlineExceeded):
		refuse(http.StatusServiceUnavailable, "it takes longer than "+explainLimit.String()+" to find: use replayer "+
			"explain, which may take its time")
	case err != nil:
		refuse(http.StatusInternalServerError, err.Error())
	case r.URL.Query().Get("format") == "text":
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		e.Write(w) // an error is the client's: it is gone
	default:
		answer(w, http.StatusOK, e)
	}
}
