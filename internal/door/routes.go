package door

import (
	"fmt"
	"net/http"
)

// route is one call that is answered.
type route struct {
	method, path string
	needs        role   // or one of several; 0: none, anybody may ask
	subject      string // decide or outcome: what its requests are counted as; "": they are not
	answer       handler
}

// handler answers a client's request, unless there is a problem.
type handler func(w http.ResponseWriter, r *http.Request, c client) *problem

// calls are all calls that are answered.
func (d *Door) calls() []route {
	return []route{
		{"POST", "/v1/decide", mayDecide, "decide", d.decide},
		{"POST", "/v1/models/{model}/decide", mayDecide, "decide", d.decide},
		{"POST", "/v1/assignments", mayDecide, "decide", d.assign},
		{"POST", "/v1/outcome", mayOutcome, "outcome", d.outcome},
		{"POST", "/v1/batch", mayDecide | mayOutcome, "", d.batch},
		{"POST", "/ofrep/v1/evaluate/flags/{key}", mayDecide, "decide", d.evaluateFlag},
		{"POST", "/ofrep/v1/evaluate/flags", mayDecide, "decide", d.evaluateFlags},
		{"POST", "/ofrep/v1/track/{key}", mayOutcome, "outcome", d.track},
		{"GET", "/v1/rounds/{id}", mayRead, "", d.round},
		{"GET", "/v1/state", mayRead, "", d.page("/state")},
		{"GET", "/v1/certificate", mayRead, "", d.page("/certificate")},
		{"GET", "/v1/policies", mayRead, "", d.page("/models")},
		{"GET", "/v1/candidates", mayRead, "", d.page("/candidates")},
		{"GET", "/openapi.yaml", 0, "", d.description},
		{"GET", "/docs", 0, "", d.docs},
		{"GET", "/schemas/{file}", 0, "", d.schema},
	}
}

func (d *Door) routes() http.Handler {
	mux, known := http.NewServeMux(), http.NewServeMux()
	for _, t := range append(d.calls(), d.personalizer()...) {
		known.Handle(t.method+" "+t.path, http.NotFoundHandler())
		mux.HandleFunc(t.method+" "+t.path, func(w http.ResponseWriter, r *http.Request) { d.answer(&t, w, r) })
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		other := &recorder{header: w.Header()} // says which methods the path has
		known.ServeHTTP(other, r)
		p := newProblem(http.StatusNotFound, "there is no such path; /docs lists the calls of /v1 and /ofrep")
		if allow := w.Header().Get("Allow"); allow != "" {
			p = newProblem(http.StatusMethodNotAllowed, fmt.Sprintf("%.256s takes %s", r.URL.Path, allow))
		}
		refuse(w, r, p)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()["X-Content-Type-Options"] = noSniff
		if r.Method != http.MethodPost { // whose answers nobody caches
			w.Header()["Cache-Control"] = noStore
		}
		if d.guard.proxied && r.TransferEncoding != nil { // the proxy may have gone by a Content-Length beside it
			w.Header()["Connection"] = closed
		}
		if p := d.guard.check(r); p != nil {
			refuse(w, r, p)
			return
		}
		if d.guard.share(w, r) {
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// Headers of answers, which are not allocated.
var (
	noStore = []string{"no-store"}
	noSniff = []string{"nosniff"}
	closed  = []string{"close"}
)

// answer answers a request, and counts it with those of the bus if it is refused here.
func (d *Door) answer(t *route, w http.ResponseWriter, r *http.Request) {
	c, p := client{}, (*problem)(nil)
	if t.needs != 0 {
		c, p = d.guard.client(r, t.needs)
	}
	if p == nil {
		p = t.answer(w, r, c)
	}
	if p == nil {
		return
	}
	if t.subject != "" && !p.counted {
		d.o.Metrics.Refuse(t.subject, p.Status)
	}
	refuse(w, r, p)
}
