package service

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"hindsight/internal/certify"
	"hindsight/internal/follow"
	"hindsight/internal/latelosses"
	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/learner"
)

// Insight answers what the learner of a process guarantees and knows, by the pages /certificate and /models. All
// methods are safe for concurrent use; those of a nil *Insight do nothing.
type Insight struct {
	mu       sync.Mutex
	deciders []*Decider // at work
	late     *latelosses.Comparison
}

// NewInsight returns the insight of a process.
func NewInsight() *Insight { return &Insight{} }

// enter adds a decider that is at work.
func (i *Insight) enter(d *Decider) (leave func()) {
	if i == nil {
		return func() {}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.deciders = append(i.deciders, d)
	return func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.deciders = slices.DeleteFunc(i.deciders, func(x *Decider) bool { return x == d })
	}
}

func (i *Insight) atWork() []*Decider {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Clone(i.deciders)
}

// Definition returns the model that the process decides by, nil if it decides by none. It must not be changed.
func (i *Insight) Definition() *follow.Definition {
	if i == nil {
		return nil
	}
	for _, d := range i.atWork() {
		if m := d.at.definition.Load(); m != nil {
			return m
		}
	}
	return nil
}

// see notes the late losses of the joiner of this process, those of the worst outcome.
func (i *Insight) see(all latelosses.ByOutcome) {
	if i == nil {
		return
	}
	name, worst := all.Worst()
	c := latelosses.Compare(worst)
	c.Outcome = name
	i.mu.Lock()
	defer i.mu.Unlock()
	i.late = &c
}

// CertificatePage is the JSON of /certificate.
type CertificatePage struct {
	Epoch          int64 `json:"epoch"`
	LearnedThrough int64 `json:"learned_through"` // feedback of all partitions
	// decided here: what is outstanding elsewhere is not in the bounds
	Partitions  []int               `json:"partitions"`
	Certificate certify.Certificate `json:"certificate"`
}

// ModelsPage is the JSON of /models: the functions of the class that survive at level alpha,
// the one with the least loss first.
type ModelsPage struct {
	Epoch          int64       `json:"epoch"`
	LearnedThrough int64       `json:"learned_through"`
	Alpha          float64     `json:"alpha"`
	Functions      int         `json:"functions"` // of the class
	Surviving      int         `json:"surviving"`
	Models         []ModelLine `json:"models"` // at most limit of them
}

// ModelLine is one function that survives.
type ModelLine struct {
	Function int     `json:"function"` // its place in the class file, from 0
	PValue   float64 `json:"p_value"`  // it survives at every level below
	Loss     float64 `json:"loss"`     // cumulative square loss over the least
	Regret   float64 `json:"regret"`   // of the rounds so far if it is the truth
}

var (
	errNobody   = errors.New("no decider is at work here, or no epoch has begun")
	errNoModels = errors.New("this learner keeps no models: they are those of dafa over a hedge oracle with a " +
		"certificate, and with order: arrival in one partition only")
)

var errBusy = errors.New("the decider waits for its log")

// pageWait is how long a page waits for deciders, all together: one may be busy for as long as its log is away.
const pageWait = time.Second

// hold takes d.mu, if that is free by a time.
func (d *Decider) hold(until time.Time) bool {
	for !d.mu.TryLock() {
		if !time.Now().Before(until) {
			return false
		}
		time.Sleep(5 * time.Millisecond)
	}
	return true
}

// ask calls f on a decider that is at work, while nothing is learned, if it is free by a time.
func (i *Insight) ask(until time.Time, f func(d *Decider, ep *loop.Epoch)) error {
	if i == nil {
		return errNobody
	}
	for _, d := range i.atWork() {
		if !d.hold(until) {
			return errBusy
		}
		ep := d.follower.Replica().Epoch()
		if ep != nil {
			f(d, ep)
		}
		d.mu.Unlock()
		if ep != nil {
			return nil
		}
	}
	return errNobody
}

// outstanding returns the decisions of this process without feedback, records of those that can be evaluated,
// and their partitions; of deciders that are free by a time, one after the other.
func (i *Insight) outstanding(until time.Time) (n int64, records [][]byte, partitions []int) {
	for _, d := range i.atWork() {
		if d.hold(until) {
			n, records = n+d.outstanding(), d.appendOpen(records, mostValues)
			d.mu.Unlock()
			partitions = append(partitions, d.cfg.Partition)
		}
	}
	slices.Sort(partitions)
	return n, records, partitions
}

// How many values of functions a certificate computes for the rounds of a partition without feedback, on a page
// and each second for metrics: some 20 ms and 1 ms. The rounds beyond are charged 1 each.
const (
	mostValues     = 1 << 18
	valuesOfSecond = 1 << 14
)

// appendOpen appends the records of rounds of the partition that have no feedback, as far as they are at hand and
// their evaluation takes no more than so many values.
func (d *Decider) appendOpen(dst [][]byte, values int) [][]byte {
	ep := d.follower.Replica().Epoch()
	if ep == nil {
		return dst
	}
	l, ok := ep.Learner.(*learner.DAFA)
	if !ok || l.Models() == nil {
		return dst
	}
	from, each := d.heart.Next()-d.outstanding(), max(1, len(d.dec.Actions)*l.Models().Left())
	if ep.Rules.Arrival {
		from = l.Turn()
	}
	for n := max(1, from); from > 0 && n < d.heart.Next() && values > 0; n++ {
		if value, _, _ := d.recent.get(n); value != nil {
			dst = append(dst, value)
			values -= each
		}
	}
	return dst
}

// rounds yields what records of decisions say.
func (d *Decider) rounds(records [][]byte) iter.Seq[*learner.Round] {
	return func(yield func(*learner.Round) bool) {
		var dec codec.Decision
		for _, b := range records {
			if codec.ParseDecision(&dec, b) != nil {
				continue
			}
			if r, err := d.follower.Replica().Decided(&dec); err == nil && !yield(r) {
				return
			}
		}
	}
}

// lateLosses returns what the joiner of this process saw, nil if there is none.
func (i *Insight) lateLosses() *latelosses.Comparison {
	if i == nil {
		return nil
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.late
}

// Look returns what the certificate says now.
func (i *Insight) Look() (*CertificatePage, error) {
	if i == nil {
		return nil, errNobody
	}
	page, until := &CertificatePage{}, time.Now().Add(pageWait)
	o := certify.Options{Late: i.lateLosses()}
	var records [][]byte
	o.Outstanding, records, page.Partitions = i.outstanding(until)
	err := i.ask(until, func(d *Decider, ep *loop.Epoch) {
		o.Arrival, o.Early = ep.Rules.Arrival, ep.Rules.Early
		page.Epoch, page.LearnedThrough = ep.Number, d.follower.Replica().LearnedThrough()
		o.Decided = d.rounds(records)
		page.Certificate = certify.Of(ep.Learner, o)
	})
	if err != nil {
		return nil, err
	}
	return page, nil
}

// Certificate answers GET /certificate.
func (i *Insight) Certificate(w http.ResponseWriter, _ *http.Request) {
	page, err := i.Look()
	answer(w, http.StatusServiceUnavailable, err, page)
}

// mostModels is how many functions a page lists unless it is asked for more.
const mostModels = 1000

// Models answers GET /models?alpha=0.05&limit=1000.
func (i *Insight) Models(w http.ResponseWriter, r *http.Request) {
	page := ModelsPage{Models: []ModelLine{}}
	q := r.URL.Query()
	limit := mostModels
	var err error
	if s := q.Get("alpha"); s != "" {
		if page.Alpha, err = strconv.ParseFloat(s, 64); err != nil || page.Alpha == 0 || math.IsNaN(page.Alpha) {
			answer(w, http.StatusBadRequest, fmt.Errorf("alpha is %q: give a level in (0,1)", s), nil)
			return
		}
	}
	if s := q.Get("limit"); s != "" {
		if limit, err = strconv.Atoi(s); err != nil || limit < 0 {
			answer(w, http.StatusBadRequest, fmt.Errorf("limit is %q: give a whole number of at least 0", s), nil)
			return
		}
	}
	var models []learner.Model
	code := http.StatusServiceUnavailable
	asked := i.ask(time.Now().Add(pageWait), func(d *Decider, ep *loop.Epoch) {
		l, ok := ep.Learner.(interface{ Models() *learner.Models })
		if !ok || l.Models() == nil {
			code, err = http.StatusNotFound, errNoModels
			return
		}
		page.Epoch, page.LearnedThrough = ep.Number, d.follower.Replica().LearnedThrough()
		p := l.Models().Plausible()
		page.Functions = p.Functions
		if page.Alpha == 0 {
			page.Alpha = p.Alpha
		}
		code = http.StatusBadRequest
		models, err = l.Models().Append(nil, page.Alpha)
	})
	page.Surviving = len(models)
	slices.SortStableFunc(models, func(a, b learner.Model) int { return cmp.Compare(a.Loss, b.Loss) })
	for _, m := range models[:min(limit, len(models))] {
		page.Models = append(page.Models, ModelLine(m))
	}
	answer(w, code, cmp.Or(asked, err), &page)
}

// answer writes a page, or an error as JSON.
func answer(w http.ResponseWriter, code int, err error, page any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	if err != nil {
		w.WriteHeader(code)
		page = map[string]any{"error": map[string]any{"code": code, "message": err.Error()}}
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.Encode(page) // an error is the client's: it is gone
}
