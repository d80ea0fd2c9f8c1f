package service

import (
	"encoding/json"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"hindsight/internal/certify"
	"hindsight/internal/latelosses"
	"hindsight/internal/loop"
	"hindsight/internal/words"
	"hindsight/pkg/codec"
	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
	"hindsight/pkg/stream"
)

// ask gets a page of the insight.
func ask(t *testing.T, page func(i *Insight, w *httptest.ResponseRecorder), i *Insight, into any) (code int,
	body string) {
	t.Helper()
	w := httptest.NewRecorder()
	page(i, w)
	if err := json.Unmarshal(w.Body.Bytes(), into); err != nil {
		t.Fatalf("%v in %s", err, w.Body)
	}
	return w.Code, w.Body.String()
}

func certificateOf(i *Insight, w *httptest.ResponseRecorder) {
	i.Certificate(w, httptest.NewRequest("GET", "/certificate", nil))
}

func modelsAt(query string) func(i *Insight, w *httptest.ResponseRecorder) {
	return func(i *Insight, w *httptest.ResponseRecorder) {
		i.Models(w, httptest.NewRequest("GET", "/models"+query, nil))
	}
}

// classed makes a rig's model DA-FA over ten constant functions, of which that which says 1 of
// x and 0 of y is the truth.
func classed(r *rig) {
	build := func(rec *codec.Epoch, _ map[string][]byte) (loop.Epoch, error) {
		var w [][][]float64
		for i := range 10 {
			v := float64(i) / 9
			w = append(w, [][]float64{{v}, {1 - v}})
		}
		class, err := oracle.NewLinearClass(nil, []string{"x", "y"}, w)
		if err != nil {
			return loop.Epoch{}, err
		}
		h, err := oracle.NewHedge(class, oracle.HedgeOptions{})
		if err != nil {
			return loop.Epoch{}, err
		}
		m, err := learner.NewModels(class, learner.ModelsOptions{Alarm: true})
		if err != nil {
			return loop.Epoch{}, err
		}
		d := learner.NewDAFA(h, learner.Anytime{C: learner.Balanced})
		ep := loop.Epoch{Number: rec.Epoch, Learner: d, Rules: &r.rules}
		if r.rules.Arrival {
			return ep, d.WatchArrivals(m)
		}
		return ep, d.Watch(m)
	}
	r.dc.Build, r.jc.Build = build, build
}

// TestInsight follows a system with a class from its first round to the one function that is
// left.
func TestInsight(t *testing.T) {
	i := NewInsight()
	var page CertificatePage
	if code, body := ask(t, certificateOf, i, &page); code != 503 || !strings.Contains(body, "no decider is at work") {
		t.Errorf("with nobody at work: %d %s", code, body)
	}
	r := newRig(t, func(r *rig) {
		classed(r)
		r.dc.Insight, r.jc.Insight = i, i
	})
	leave := i.enter(r.d)
	for n := range 64 {
		id := string(rune('A'+n/26)) + string(rune('a'+n%26))
		r.put(r.topics.Contexts, `{"id":%q,"actions":["x","y"]}`, id)
		r.must(r.settle())
		loss := 0
		if decided(t, r, id) == "x" {
			loss = 1
		}
		if n < 60 {
			r.put(r.topics.Outcomes, `{"id":%q,"loss":%d}`, id, loss)
			r.must(r.settle())
		}
	}
	r.look()
	if code, body := ask(t, certificateOf, i, &page); code != 200 || page.Epoch != 1 || page.LearnedThrough != 60 ||
		!slices.Equal(page.Partitions, []int{0}) {
		t.Fatalf("%d %s", code, body)
	}
	c := page.Certificate
	if c.T != 64 || c.PlausibleSet == nil || c.PlausibleSet.Vacuous || c.PlausibleSet.Functions != 10 ||
		c.PlausibleSet.Surviving >= 10 || c.MeasuredDrift == nil {
		t.Errorf("%+v", c)
	}
	// The four that are outstanding cost what the functions that survive say, not 1 each.
	if p := r.d.Replica().Epoch().Learner.(*learner.DAFA).Certificate().Plausible; *c.PlausibleSet.Value <= p.Bound ||
		*c.PlausibleSet.Value >= p.Bound+4 {
		t.Errorf("the bound is %v with 4 rounds outstanding, %v without", *c.PlausibleSet.Value, p.Bound)
	}
	state := func(name string) string {
		at := slices.IndexFunc(c.Assumptions, func(a certify.Assumption) bool { return a.Name == name })
		return c.Assumptions[at].State
	}
	if state(certify.Losses) != certify.Enforced || state(certify.Realizability) != certify.NotRefuted ||
		state(certify.Order) != certify.Enforced || state(certify.LateLosses) != certify.Holds {
		t.Errorf("%+v", c.Assumptions)
	}
	r.expect(map[string]float64{
		`hindsight_regret_rounds{partition="0"}`: 64, `hindsight_models{partition="0"}`: 10,
		`hindsight_class_refuted{partition="0"}`:                     0,
		`hindsight_models_surviving{partition="0"}`:                  float64(c.PlausibleSet.Surviving),
		`hindsight_regret_bound{kind="plausible_set",partition="0"}`: *c.PlausibleSet.Value,
	})
	var models ModelsPage
	if code, body := ask(t, modelsAt(""), i, &models); code != 200 || models.Surviving != c.PlausibleSet.Surviving ||
		models.Alpha != .05 || models.Functions != 10 || models.Models[0].Function != 9 {
		t.Errorf("%d %s", code, body)
	}
	if code, body := ask(t, modelsAt("?alpha=0.001&limit=1"), i, &models); code != 200 ||
		models.Surviving < c.PlausibleSet.Surviving || models.Alpha != .001 || len(models.Models) != 1 {
		t.Errorf("%d %s", code, body)
	}
	for _, bad := range []string{"?alpha=x", "?alpha=0", "?alpha=NaN", "?alpha=2", "?alpha=1e-9", "?limit=-1",
		"?limit=x"} {
		if code, body := ask(t, modelsAt(bad), i, &struct{}{}); code != 400 || !strings.Contains(body, `"code": 400`) {
			t.Errorf("%s: %d %s", bad, code, body)
		}
	}
	late := latelosses.ByOutcome{}
	late.Of("").AddObserved(1, .5)
	late.Of("").AddLate(1, &r.rules, codec.Loss, 1)
	i.see(late)
	if code, body := ask(t, certificateOf, i, &page); code != 200 ||
		!strings.Contains(strings.ReplaceAll(body, words.NoBreak, " "),
			"mean loss 1.000 of 1, against 0.500 of 1 in time") {
		t.Errorf("with one late loss: %d %s", code, body)
	}
	leave()
	if code, _ := ask(t, modelsAt(""), i, &struct{}{}); code != 503 {
		t.Errorf("after it left: %d", code)
	}
}

// TestInsightOnEarly holds that rounds before one that did not wait for its turn are outstanding,
// and that the certificate says so of the order.
func TestInsightOnEarly(t *testing.T) {
	i := NewInsight()
	r := newRig(t, func(r *rig) {
		r.rules.Early, r.rules.Window.Rounds = true, 200
		r.dc.Insight, r.jc.Insight = i, i
	})
	defer i.enter(r.d)()
	for n := range 4 {
		r.put(r.topics.Contexts, `{"id":%q,"actions":["x","y"]}`, strconv.Itoa(n))
	}
	r.must(r.settle())
	r.put(r.topics.Outcomes, `{"id":"3","loss":1}`)
	r.must(r.settle())
	var page CertificatePage
	ask(t, certificateOf, i, &page)
	if n := r.d.outstanding(); n != 3 || page.LearnedThrough != 1 || page.Certificate.T != 4 {
		t.Errorf("%d outstanding, learned through %d, T %d", n, page.LearnedThrough, page.Certificate.T)
	}
	at := slices.IndexFunc(page.Certificate.Assumptions, func(a certify.Assumption) bool {
		return a.Name == certify.Order
	})
	if at < 0 || page.Certificate.Assumptions[at].State != certify.Measured {
		t.Errorf("%+v", page.Certificate.Assumptions)
	}
}

// TestInsightOnArrival holds that in the order of arrival the set takes rounds in the order of
// decisions: what came before its turn is charged and is no evidence until the first outcome
// is there, and what has none is outstanding.
func TestInsightOnArrival(t *testing.T) {
	i := NewInsight()
	r := newRig(t, func(r *rig) {
		r.rules.Arrival, r.rules.Window.Rounds = true, 200
		classed(r)
		r.dc.Insight, r.jc.Insight = i, i
	})
	defer i.enter(r.d)()
	outcome := func(n int) {
		id := strconv.Itoa(n)
		loss := 0
		if decided(t, r, id) == "x" {
			loss = 1
		}
		r.put(r.topics.Outcomes, `{"id":%q,"loss":%d}`, id, loss)
		r.must(r.settle())
	}
	for n := range 64 {
		r.put(r.topics.Contexts, `{"id":%q,"actions":["x","y"]}`, strconv.Itoa(n))
	}
	r.must(r.settle())
	for n := 59; n > 0; n-- { // of the first and the last four there is none yet
		outcome(n)
	}
	var before, after CertificatePage
	if code, body := ask(t, certificateOf, i, &before); code != 200 || before.Certificate.T != 64 ||
		before.Certificate.PlausibleSet == nil {
		t.Fatalf("%d %s", code, body)
	}
	if p := before.Certificate.PlausibleSet; *p.Value >= 64 || *p.Value < 5 || p.Surviving >= 10 {
		t.Errorf("before the first outcome: %+v", p) // which cannot save functions that the others refute
	}
	outcome(0)
	r.look()
	ask(t, certificateOf, i, &after)
	if p := after.Certificate.PlausibleSet; after.Certificate.T != 64 || p.Surviving >= 10 ||
		*p.Value >= *before.Certificate.PlausibleSet.Value {
		t.Errorf("after it: %+v of %d", p, after.Certificate.T)
	}
	at := slices.IndexFunc(after.Certificate.Assumptions, func(a certify.Assumption) bool {
		return a.Name == certify.Order
	})
	if a := after.Certificate.Assumptions[at]; a.State != certify.Measured || !strings.HasSuffix(a.Detail,
		"until then: 0") {
		t.Errorf("%+v", a)
	}
	r.expect(map[string]float64{`hindsight_regret_rounds{partition="0"}`: 64, `hindsight_models{partition="0"}`: 10})
	outcome(62) // of the last four, two without an outcome stand before two with one
	outcome(63)
	ask(t, certificateOf, i, &after)
	if !slices.ContainsFunc(after.Certificate.Notes, func(n string) bool {
		return strings.HasPrefix(n, "rounds decided and not yet released: 2") &&
			strings.Contains(n, "plausible set 2 of them")
	}) {
		t.Errorf("two are outstanding: %q", after.Certificate.Notes)
	}
}

// decided returns the action of a decision.
func decided(t *testing.T, r *rig, id string) (action string) {
	t.Helper()
	var d codec.Decision
	err := stream.Scan(t.Context(), r.log, r.topics.Decisions, 0, stream.Earliest, math.MaxInt64,
		func(rec *stream.Record) error {
			if rec.Type != "" {
				return nil
			}
			err := codec.ParseDecision(&d, rec.Value)
			if d.ID == id {
				action = strings.Clone(d.Actions[d.Action])
			}
			return err
		})
	if err != nil {
		t.Fatal(err)
	}
	return action
}

// TestInsightRefuted holds what /certificate and the metrics say of the bounds of a class that
// the data refute: everything loses, as no function has it.
func TestInsightRefuted(t *testing.T) {
	i := NewInsight()
	r := newRig(t, func(r *rig) {
		classed(r)
		r.dc.Insight, r.jc.Insight = i, i
	})
	defer i.enter(r.d)()
	for n := range 96 {
		id := strconv.Itoa(n)
		r.put(r.topics.Contexts, `{"id":%q,"actions":["x","y"]}`, id)
		r.put(r.topics.Outcomes, `{"id":%q,"loss":1}`, id)
		r.must(r.settle())
	}
	r.look()
	var page CertificatePage
	if code, body := ask(t, certificateOf, i, &page); code != 200 || page.Certificate.T != 96 ||
		strings.Count(body, `"void": "class refuted"`) != 3 {
		t.Fatalf("%d %s", code, body)
	}
	c := page.Certificate
	for _, b := range []*certify.Bound{&c.PlausibleSet.Bound, c.MeasuredDrift, c.APriori} {
		if b.Value != nil || b.Void != certify.ClassRefuted {
			t.Errorf("%+v", b)
		}
	}
	r.expect(map[string]float64{
		`hindsight_class_refuted{partition="0"}`:                      1,
		`hindsight_regret_bound{kind="plausible_set",partition="0"}`:  math.Inf(1),
		`hindsight_regret_bound{kind="measured_drift",partition="0"}`: math.Inf(1),
		`hindsight_regret_bound{kind="a_priori",partition="0"}`:       math.Inf(1),
	})
}

// TestInsightWithoutModels holds what a linear model has and has not.
func TestInsightWithoutModels(t *testing.T) {
	i := NewInsight()
	r := newRig(t, func(r *rig) { r.dc.Insight = i })
	i.enter(r.d)
	r.contexts("1", "2")
	r.must(r.settle())
	r.look()
	var page CertificatePage
	if code, body := ask(t, certificateOf, i, &page); code != 200 || page.Certificate.PlausibleSet != nil ||
		page.Certificate.MeasuredDrift == nil || page.Certificate.T != 2 ||
		!strings.Contains(body, "the joiner measures them") {
		t.Errorf("%d %s", code, body)
	}
	if code, body := ask(t, modelsAt(""), i, &struct{}{}); code != 404 || !strings.Contains(body, "keeps no models") {
		t.Errorf("%d %s", code, body)
	}
	r.expect(map[string]float64{`hindsight_regret_rounds{partition="0"}`: 2})
	var none *Insight
	if code, _ := ask(t, certificateOf, none, &struct{}{}); code != 503 {
		t.Errorf("of no insight: %d", code)
	}
}

// TestInsightMeanwhile asks while the decider decides and learns; the race detector looks on.
func TestInsightMeanwhile(t *testing.T) {
	i := NewInsight()
	r := newRig(t, func(r *rig) {
		classed(r)
		r.dc.Insight, r.jc.Insight = i, i
	})
	i.enter(r.d)
	end, first, ended := make(chan struct{}), make(chan struct{}), make(chan int)
	go func() {
		asked := 0
		for {
			select {
			case <-end:
				ended <- asked
				return
			default:
			}
			certificateOf(i, httptest.NewRecorder())
			modelsAt("?alpha=0.5")(i, httptest.NewRecorder())
			if asked++; asked == 1 {
				close(first)
			}
		}
	}()
	<-first
	for n := range 40 {
		id := strconv.Itoa(n)
		r.put(r.topics.Contexts, `{"id":%q,"actions":["x","y"]}`, id)
		r.must(r.settle())
		r.put(r.topics.Outcomes, `{"id":%q,"loss":1}`, id)
		r.must(r.settle())
		r.look()
	}
	close(end)
	t.Logf("asked %d times", <-ended)
}

// TestCertificateIsRefusedSoon holds that the page of a process whose deciders all wait for their log
// answers within a second, however many they are.
func TestCertificateIsRefusedSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := NewInsight()
		for range 8 {
			d := new(Decider)
			d.mu.Lock()
			i.enter(d)
		}
		began := time.Now()
		w := httptest.NewRecorder()
		i.Certificate(w, nil)
		if took := time.Since(began); took > 1100*time.Millisecond || w.Code != http.StatusServiceUnavailable {
			t.Errorf("%d after %v", w.Code, took)
		}
	})
}
