package see

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"hindsight/internal/certify"
	"hindsight/internal/service"
	"hindsight/internal/watch"
	"hindsight/internal/words"
)

// The state of a system that has played tells what was played, and no feature or secret.
func TestState(t *testing.T) {
	w := newWorld(t, "window: 200 rounds\n")
	w.play(399, 1)
	last, _ := w.ask(rand.New(rand.NewPCG(0, 0)))
	w.report(`{"id":%q,"loss":7}`, last) // out of range
	w.put(`{"id":"bad","features":{"hour":[%q]},"actions":["red"]}`, planted)
	w.until("what is malformed", func(s *state) bool { return s.Refused["malformed"] == 2 })
	for i := range 25 { // more than are kept
		w.report(`{"id":"nobody-%d","loss":1}`, i)
	}
	s := w.until("what was played", func(s *state) bool { // each part is told when it is known
		return s.Refused["orphan"] > 25 && len(s.Rejects) > 0 && s.Fates["observed"] > 100 && s.Losses.Rounds >= 100 &&
			s.Delays.Seconds.N >= 100 && s.Delays.Rounds.N >= 100 && s.Actions.Decisions == 400 &&
			s.Exploration.Draws == 400 && s.Waiting.Head != nil && s.Certificate != nil &&
			s.Certificate.Certificate.T > 0
	})
	if !s.Ready || s.Program != "decider" || s.Model != "shop" || len(s.Deciders) != 1 || !s.Joiner ||
		s.UpSeconds <= 0 {
		t.Errorf("%+v", s)
	}
	if s.Actions.Decisions != 400 || len(s.Actions.Most) != 4 || s.Exploration.Draws != 400 ||
		*s.Exploration.Evidence < 1 || s.Exploration.Refuted || *s.Exploration.Gamma <= 0 {
		t.Errorf("%+v %+v", s.Actions, s.Exploration)
	}
	if s.Waiting.Provisional != nil {
		t.Errorf("%v rounds are learned early", *s.Waiting.Provisional)
	}
	if s.Apprentice.Rounds != 0 || s.Apprentice.Match != nil {
		t.Errorf("an apprentice: %+v", s.Apprentice)
	}
	rounds, sum, share := 0, 0.0, 0.0
	for _, a := range s.Actions.Most {
		if share += a.Share; a.Share != float64(a.Decisions)/400 {
			t.Errorf("%+v", a)
		}
		if rounds += a.Rounds; a.Rounds > 0 {
			sum += *a.Mean * float64(a.Rounds)
		}
	}
	if rounds != s.Losses.Rounds || math.Abs(share-1) > 1e-9 || math.Abs(sum/float64(rounds)-*s.Losses.Mean) > 1e-9 {
		t.Errorf("%d rounds of actions with a mean of %v: %+v", rounds, sum/float64(rounds), s.Losses)
	}
	if l := s.Losses; l.Of != "loss" || *l.Mean != *l.Loss || *l.UniformMean != *l.Uniform {
		t.Errorf("%+v", l)
	}
	if s.Losses.Rounds < 100 || *s.Losses.Loss <= 0 || *s.Losses.Uniform <= 0 || len(s.Losses.Buckets) == 0 ||
		s.Losses.Start == nil || *s.Losses.JoinRatio <= 0 {
		t.Errorf("%+v", s.Losses)
	}
	if s.Delays.Seconds.N < 100 || *s.Delays.Seconds.P99 < *s.Delays.Seconds.P50 || s.Delays.Rounds.N < 100 ||
		s.Waiting.Head == nil || *s.Waiting.Pending == 0 {
		t.Errorf("%+v %+v", s.Delays, s.Waiting)
	}
	if s.Refused["orphan"] == 0 || len(s.Rejects) == 0 || s.Rejects[0].Means == "" || s.Certificate == nil ||
		s.Certificate.Certificate.T == 0 {
		t.Errorf("%v %+v %+v", s.Refused, s.Rejects, s.Certificate)
	}
	for topic, detail := range map[string]string{"contexts": "context: features.hour[0]: ",
		"outcomes": "out of the model's range: 7 is not in [0, 1]"} {
		if !slices.ContainsFunc(s.Rejects, func(r reject) bool {
			return r.Topic == topic && r.Reason == "malformed" && strings.HasPrefix(r.Detail, detail)
		}) {
			t.Errorf("%s: %q is not told: %+v", topic, detail, s.Rejects)
		}
	}
	if slices.ContainsFunc(s.Alarms, func(a alarmState) bool { return a.Firing }) || len(s.Elsewhere) == 0 {
		t.Errorf("alarms %+v", s.Alarms)
	}
	for _, path := range []string{"/", "/state", "/page.js", "/page.css", "/look.css", "/chart.js", "/explain?id=" +
		url.QueryEscape(last), "/explain?format=text&id=" + url.QueryEscape(last)} {
		code, body := w.get(path)
		if code != 200 || len(body) < 200 || strings.Contains(body, planted) {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	if code, body := w.get("/explain?format=text&id=" + url.QueryEscape(last)); code != 200 ||
		!strings.Contains(body, "recomputed   identical") {
		t.Errorf("%d %s", code, body)
	}
}

// Where outcomes are rewards, the state and metrics tell rewards on the model's own range, whether
// the model says so or only those who report; losses stay as they are.
func TestRewardState(t *testing.T) {
	for yaml, want := range map[string]words.Rewards{"reward: {min: -1, max: 3}\n": {Min: -1, Max: 3},
		"": {Min: 0, Max: 1}} {
		w := newWorld(t, "window: 20 rounds\n"+yaml)
		r := rand.New(rand.NewPCG(1, 1))
		for range 30 {
			id, _ := w.ask(r)
			w.report(`{"id":%q,"reward":%v}`, id, want.Max)
		}
		s := w.until("rewards", func(s *state) bool { return s.Losses.Rounds == 30 && s.Losses.Of == "reward" })
		if l := s.Losses; *l.Mean != want.Max || *l.Loss != 0 || *l.UniformMean != want.Max || len(l.Buckets) == 0 ||
			*l.Buckets[0].Mean != want.Max {
			says, _ := json.Marshal(l)
			t.Errorf("all earn %v in the range %+v, and the page says %s", want.Max, want, says)
		}
		m := take(w.see.live.Load().gather, s.Time)
		if m.values["hindsight_recent_reward"].sum() != want.Max ||
			m.values["hindsight_recent_uniform_reward"].sum() != want.Max ||
			m.values["hindsight_recent_loss"].sum() != 0 {
			t.Errorf("%v of %+v", m.values["hindsight_recent_reward"].sum(), want)
		}
	}
}

// In shadow the page tells how often the learner would have done what the baseline did, and
// what it would have been worth; of what was not made in shadow it tells nothing.
func TestShadowState(t *testing.T) {
	w := newWorld(t, "window: 20 rounds\nmode: shadow\nbaseline: uniform\n")
	if s := w.state(); s.Shadow.Agreement != nil || s.Shadow.Uncovered != nil || s.Shadow.Excess != nil {
		t.Errorf("of nothing: %+v", s.Shadow)
	}
	w.play(300, 1)
	s := w.until("the shadow", func(s *state) bool {
		return s.Shadow.Decisions == 300 && s.Shadow.Rounds >= 100 && s.Certificate != nil && s.Mode == "shadow"
	})
	x := s.Shadow
	if *x.Agreement < .1 || *x.Agreement > .5 || *x.Uncovered != 0 || *x.Excess < -.5 || *x.Excess > .5 ||
		*x.Error <= 0 || *x.Error > .1 {
		t.Errorf("agreement %v, uncovered %v, excess %v ± %v", *x.Agreement, *x.Uncovered, *x.Excess, *x.Error)
	}
	m := take(w.see.live.Load().gather, s.Time)
	for name, want := range map[string]*float64{"agreement_ratio": x.Agreement, "uncovered_ratio": x.Uncovered} {
		if got := m.values["hindsight_shadow_"+name].sum(); got != *want {
			t.Errorf("%s is %v, the page says %v", name, got, *want)
		}
	}
	if s.CertAge < 0 || s.CertAge > sampleEvery.Seconds()+1 {
		t.Errorf("the certificate is %v s old", s.CertAge)
	}
}

// The match rate of an apprentice: of a learner that always plays what its baseline does 1, of one
// that never does 0; and it is none of a model that was never in that mode.
func TestApprenticeState(t *testing.T) {
	for baseline, want := range map[string]float64{"red": 1, "blue": 0} {
		w := newWorld(t, "window: 5 rounds\nmode: apprentice\nlearner: {fixed: red}\nbaseline: {fixed: "+baseline+"}\n")
		w.play(40, 1)
		s := w.until("rounds of an apprentice", func(s *state) bool { return s.Apprentice.Rounds >= 20 })
		if *s.Apprentice.Match != want {
			t.Errorf("baseline %s: %v, want %v", baseline, *s.Apprentice.Match, want)
		}
		if m := take(w.see.live.Load().gather, s.Time); m.values["hindsight_apprentice_match_ratio"].sum() != want {
			t.Errorf("the metric says %v", m.values["hindsight_apprentice_match_ratio"].sum())
		}
	}
}

// Rounds that are learned early and wait for their feedback are counted, where the model has early.
func TestStateEarly(t *testing.T) {
	w := newWorld(t, "window: 200 rounds\nmissing: impute\nearly: {after: 2 rounds}\n")
	r := rand.New(rand.NewPCG(0, 0))
	for range 12 {
		w.ask(r)
	}
	w.until("rounds learned early", func(s *state) bool {
		return s.Waiting.Provisional != nil && *s.Waiting.Provisional >= 9
	})
}

// The state says by name that the bounds of a class are void when the data refute it.
func TestStateRefuted(t *testing.T) {
	class := `{"hindsight_class":1,"kind":"linear","features":["hour"],"actions":["red","green","blue","none"]}
{"prior":1,"w":[[0,1],[0,1],[0,1],[0,1]]}
`
	yaml := "window: 10 rounds\noracle: {kind: hedge, eta: 0.5, class: c.jsonl}\n"
	w := newWorldOf(t, yaml, map[string][]byte{"c.jsonl": []byte(class)})
	w.play(150, 1)
	s := w.until("a refuted class", func(s *state) bool {
		w.see.cert.mu.Lock()
		w.see.cert.page = nil // the next look computes it anew
		w.see.cert.mu.Unlock()
		return s.Certificate != nil && s.Certificate.Certificate.PlausibleSet.Void != ""
	})
	c := &s.Certificate.Certificate
	for _, b := range []*certify.Bound{&c.PlausibleSet.Bound, c.MeasuredDrift, c.APriori} {
		if b.Value != nil || b.Void != certify.ClassRefuted {
			t.Errorf("%+v", b)
		}
	}
}

// A certificate is kept for a sample's time, and says how old it is.
func TestCertificateAge(t *testing.T) {
	now := time.Now()
	c := certificate{at: now, page: &service.CertificatePage{}}
	for _, after := range []time.Duration{-time.Second, 0, sampleEvery - 1} {
		if page, age := c.look(nil, now.Add(after)); page == nil || age != max(0, after) {
			t.Errorf("after %v: %v, %v", after, page, age)
		}
	}
	if page, age := c.look(service.NewInsight(), now.Add(sampleEvery)); page != nil || age != 0 {
		t.Errorf("a decider that is gone: %v, %v", page, age)
	}
}

func TestExplainRefuses(t *testing.T) {
	w := newWorld(t, "window: 200 rounds\n")
	for path, want := range map[string]int{"/explain": 400, "/explain?id=": 400,
		"/explain?id=" + strings.Repeat("x", maxID+1): 400, "/explain?id=nobody": 404} {
		if code, body := w.get(path); code != want || !strings.Contains(body, `"message"`) {
			t.Errorf("%.40s: %d %s", path, code, body)
		}
	}
	w.see.room <- struct{}{}
	if code, body := w.get("/explain?id=x"); code != 503 || !strings.Contains(body, "ask again") {
		t.Errorf("%d %s", code, body)
	}
	if code, _ := w.get("/nothing"); code != 404 {
		t.Errorf("a page that is not there: %d", code)
	}
}

// The alarm of a process that is not ready says why, as /readyz does.
func TestNotReadySays(t *testing.T) {
	w := newWorld(t, "window: 20 rounds\n")
	w.see.o.Health = watch.NewHealth(watch.RoleDecider) // of nothing
	for i := range w.see.watch.alarms {
		if a := &w.see.watch.alarms[i]; a.Name == notReady {
			a.query = func(*moment) vector { return vector{"": 1} }
		}
	}
	s := w.state()
	if i := slices.IndexFunc(s.Alarms, func(a alarmState) bool { return a.Name == notReady }); i < 0 || s.Why == "" ||
		!strings.HasSuffix(s.Alarms[i].Says, "It says: "+s.Why) {
		t.Errorf("%q: %+v", s.Why, s.Alarms)
	}
}

// Before there are metrics the page tells why the process is not ready.
func TestStateBefore(t *testing.T) {
	s := New(Options{Program: "feedback-joiner", Model: "shop", Health: watch.NewHealth(watch.RoleJoiner)})
	for _, p := range s.Pages() {
		if p.Path == "/state" || p.Path == "/explain" {
			r := httptest.NewRecorder()
			p.Answer(r, httptest.NewRequest(http.MethodGet, p.Path+"?id=x", nil))
			if p.Path == "/state" && (r.Code != 200 || !strings.Contains(r.Body.String(), "starting, or "+
				"shutting down")) || p.Path == "/explain" && r.Code != 503 {
				t.Errorf("%s: %d %s", p.Path, r.Code, r.Body)
			}
		}
	}
}

// The verdict says what the learner's rounds were worth beside uniform play, in shadow what they
// would have been worth beside the baseline, and that it is not known where it is not.
func TestVerdict(t *testing.T) {
	nan := math.NaN()
	live := watch.Worth{Losses: 1000, Loss: .72, Excess: -.06, StdErr: .01, Effective: .5}
	few := live
	few.Effective = .02
	shadow := func(excess float64) *watch.View {
		v := &watch.View{Rewards: &words.Rewards{Max: 1}, Recent: watch.Recent{Worth: watch.Worth{Losses: 50,
			Loss: .75}}}
		v.Shadow.Rounds, v.Shadow.Excess, v.Shadow.StdErr = 50, excess, .01
		return v
	}
	for want, v := range map[string]*watch.View{
		"Whether the learner is worth having is not known yet: no outcome of a round that it decided has come.": {},
		"The learner's last 1,000 rounds earned 28% of the best possible; 27% more than uniform play (95% " +
			"interval: 17% to 40%).": {Rewards: &words.Rewards{Max: 2}, Live: live},
		"The learner's last 1,000 rounds earned 28% of the best possible; how that compares with uniform play is " +
			"not known yet.": {Rewards: &words.Rewards{Max: 2}, Live: few},
		"The baseline answers. In its last 50 rounds the learner would have earned 31% of the best possible; 24% " +
			"more than the baseline (95% interval: 15% to 35%).": shadow(-.06),
		"Whether the learner is worth having is not known yet: no outcome of a round that it decided " +
			"has come. ": shadow(nan),
	} {
		if got := verdict(v); got != strings.TrimSpace(want) {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
	excess := -.0123
	if got := guarded(&words.Rewards{Max: 2}, nil) + guarded(&words.Rewards{Max: 2}, &excess); got !=
		" Beside its baseline the guard counts 0.025 more reward a round, without an interval." {
		t.Error(got)
	}
	rounds := 1234.
	if got := heldBack(&words.Rewards{Max: 2}, nil, nil) + heldBack(&words.Rewards{Max: 2}, &rounds, &excess); got !=
		" The guard held it back in 1,234 rounds, where by itself it would have had 0.025 less reward in all, "+
			"without an interval." {
		t.Error(got)
	}
	w := newWorld(t, "window: 10 rounds\nguard: {worse_by: 0.1}\n")
	w.play(40, 1)
	w.until("the guard", func(s *state) bool { return strings.Contains(s.Verdict, "the guard counts") })
}
