package replay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"hindsight/internal/loop"
	"hindsight/internal/model"
	"hindsight/internal/service"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/embedded"
	"hindsight/pkg/stream/mem"
)

// shopRig is a shop at work on a log: one joiner, one decider, users who ask and report, and
// an operator. Everything happens in one goroutine.
type shopRig struct {
	testing.TB
	ctx     context.Context
	log     stream.Log
	ts      service.Topics
	jc      service.JoinerConfig
	dc      service.DeciderConfig
	j       *service.Joiner
	d       *service.Decider
	in, out stream.Appender
	rng     *rand.Rand
	asked   int
	read    int64
	waiting []codec.Outcome
	worse   string // the action that loses most
}

const shopClass = `{"hindsight_class":1,"kind":"linear","features":["x"],"actions":["a","b","c","d"]}
{"prior":1,"w":[[0.1,0.5],[-0.2,0.5],[0,0.3],[0,0.2]]}
{"prior":2,"w":[[-0.1,0.5],[0.2,0.5],[0,0.9],[0.1,0.6]]}
`

const shopPolicies = `{"hindsight_policies":1,"actions":["a","b","c","d"]}
{"prior":1,"rules":[{"then":"a"}]}
{"prior":1,"rules":[{"then":"b"}]}
{"prior":1,"rules":[{"if":{"x":[0,2]},"then":"c"},{"then":"d"}]}
`

func newShop(t testing.TB, log stream.Log, text string) *shopRig {
	s := &shopRig{TB: t, ctx: t.Context(), log: log, ts: service.TopicsOf("m"), rng: rand.New(rand.NewPCG(4, 2)), read: stream.Earliest, worse: "a"}
	s.no(service.CreateTopics(s.ctx, log, "m", 1, service.Retention{}))
	var err error
	s.in, err = log.Writer(s.ctx, s.ts.Contexts, 0, nil)
	s.no(err)
	s.out, err = log.Writer(s.ctx, s.ts.Outcomes, 0, nil)
	s.no(err)
	logger := slog.New(slog.DiscardHandler)
	s.jc = service.JoinerConfig{Log: log, Build: model.Epoch, SeedHash: loop.SeedHash(worldSeed()), Partitions: 1, MaxPending: 1000, Dedup: 1000, MarkEvery: 7, Logger: logger}
	s.dc = service.DeciderConfig{Log: log, Name: "m", Build: model.Epoch, Seed: worldSeed(), Partitions: 1, Dedup: 1000, SnapshotEvery: 20, MaxInFlight: 100, Logger: logger}
	s.jc.Source = *s.source(text)
	s.open()
	return s
}

func (s *shopRig) no(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *shopRig) source(text string) *service.Source {
	s.Helper()
	m, err := model.Parse("model.yaml", []byte(text))
	s.no(err)
	m.Resolve(0, 0)
	src := &service.Source{Name: m.Name, Version: m.Version, Model: m.Canonical(), Order: m.Files(), Files: map[string][]byte{}}
	for _, name := range m.Files() {
		if src.Files[name] = []byte(shopClass); strings.Contains(name, "policies") {
			src.Files[name] = []byte(shopPolicies)
		}
	}
	return src
}

// open starts, or restarts, everything.
func (s *shopRig) open() {
	s.Helper()
	s.shut()
	var err error
	s.j, err = service.OpenJoiner(s.ctx, s.jc)
	s.no(err)
	s.d, err = service.OpenDecider(s.ctx, s.dc)
	s.no(err)
	s.pump()
}

func (s *shopRig) shut() {
	if s.j != nil {
		s.j.Close()
		s.d.Close()
	}
}

func (s *shopRig) pump() {
	s.Helper()
	for busy := true; busy; {
		b1, err := s.j.Step(s.ctx)
		s.no(err)
		b2, err := s.d.StepContexts(s.ctx, 5)
		s.no(err)
		b3, err := s.d.StepFeedback(s.ctx, 0)
		s.no(err)
		s.no(s.d.WriteSnapshots(s.ctx))
		busy = b1 || b2 || b3
	}
}

// rounds lets contexts come, with outcomes that come later.
func (s *shopRig) rounds(n int) {
	s.Helper()
	for range n {
		s.asked++
		body := fmt.Sprintf(`{"id":"c%d","features":{"x":%d}`, s.asked, s.rng.IntN(5))
		switch s.rng.IntN(4) {
		case 0:
			body += `,"baseline":"b"`
		case 1:
			body += `,"actions":["c","b",{"name":"a","features":{"y":1}}],"baseline":{"a":0.5,"b":0.25,"c":0.25}`
		}
		_, err := s.in.Append(s.ctx, &stream.Record{Value: []byte(body + "}")})
		s.no(err)
		s.no(s.in.Flush(s.ctx))
		s.pump()
		s.report()
	}
	s.pump()
}

// report sends outcomes of decisions of a while ago.
func (s *shopRig) report() {
	s.Helper()
	for _, d := range s.decisions(s.read) {
		o := codec.Outcome{ID: d.ID, Kind: codec.Loss, Value: float64(s.rng.IntN(5)) / 10}
		if d.Actions[d.Action] == s.worse {
			o.Value += .5
		}
		s.waiting = append(s.waiting, o)
	}
	_, s.read, _ = s.log.Bounds(s.ctx, s.ts.Decisions, 0)
	for len(s.waiting) > 6 {
		if s.rng.IntN(10) > 0 { // else it is lost
			_, err := s.out.Append(s.ctx, &stream.Record{Value: codec.AppendOutcome(nil, &s.waiting[0])})
			s.no(err)
			s.no(s.out.Flush(s.ctx))
		}
		s.waiting = s.waiting[1:]
	}
}

// decisions returns those of the log from an offset.
func (s *shopRig) decisions(from int64) (all []codec.Decision) {
	s.Helper()
	_, end, err := s.log.Bounds(s.ctx, s.ts.Decisions, 0)
	s.no(err)
	s.no(stream.Scan(s.ctx, s.log, s.ts.Decisions, 0, from, end, func(r *stream.Record) error {
		if r.Type != "" {
			return nil
		}
		var d codec.Decision
		err := codec.ParseDecision(&d, bytes.Clone(r.Value))
		if err == nil {
			err = d.Validate()
		}
		all = append(all, d)
		return err
	}))
	return all
}

func (s *shopRig) switchTo(mode codec.Mode) {
	s.Helper()
	_, err := s.j.Switch(s.ctx, mode, "admin: test")
	s.no(err)
	s.pump()
}

func (s *shopRig) verify() *VerifyReport {
	s.Helper()
	r, err := Verify(s.ctx, VerifyConfig{Log: s.log, Name: "m", Seed: worldSeed(), Build: model.Epoch, Dedup: 1000})
	s.no(err)
	return r
}

// fromStart returns the state that a follower of the whole log has, without snapshots.
func (s *shopRig) fromStart() []byte {
	s.Helper()
	a := service.NewAudit(s.log, "m", model.Epoch, 1)
	_, end, err := s.log.Bounds(s.ctx, s.ts.Feedback, 0)
	s.no(err)
	s.no(stream.Scan(s.ctx, s.log, s.ts.Feedback, 0, stream.Earliest, end, func(r *stream.Record) error { return a.Take(s.ctx, r) }))
	b, err := a.AppendState(nil)
	s.no(err)
	return b
}

// fromSnapshot returns the state that a restart has from the last snapshot.
func (s *shopRig) fromSnapshot() []byte {
	s.Helper()
	s.open()
	b, err := s.d.AppendState(nil)
	s.no(err)
	return b
}

func shopLogs(t *testing.T) map[string]func(t *testing.T) stream.Log {
	return map[string]func(t *testing.T) stream.Log{
		"mem": func(*testing.T) stream.Log { return mem.New(mem.Options{Step: 2}) },
		"embedded": func(t *testing.T) stream.Log {
			e, err := embedded.Open(t.Context(), embedded.Options{Dir: t.TempDir(), Port: -1})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { e.Close() })
			return e.Log()
		},
	}
}

// shopModels are the learners and oracles; an action list and a version follow.
var shopModels = map[string]string{
	"linear": "oracle: {kind: linear, beta: 0.5, lambda: 1}",
	"auto":   "oracle: {kind: auto, beta: 0.5, columns: 3, fourier: 8}",
	"shared": "oracle: {kind: shared, beta: 0.5, lambda: 1, hashed: 16}",
	"hybrid": "oracle: {kind: hybrid, beta: 0.5, lambda: 1, hashed: 16}",
	"hedge":  "oracle: {kind: hedge, class: class.jsonl}",
	"exp4":   "learner: {kind: exp4dale, policies: policies.jsonl}",
	"greedy": "learner: {egreedy: 0.2}\noracle: {kind: linear, beta: 0.5, lambda: 1}",
}

func shopModel(kind string, version int, rest string) string {
	return fmt.Sprintf("name: m\nversion: %d\nwindow: 9 rounds\nmax_actions: 9\n%s\n%s\n", version, shopModels[kind], rest)
}

// TestModesVerify takes each learner through all modes, with restarts, and new actions that
// it goes on with by name. The logs verify, a restart from a snapshot has the state of one
// from the start, and nothing is lost.
func TestModesVerify(t *testing.T) {
	for engine, open := range shopLogs(t) {
		for kind := range shopModels {
			if engine == "embedded" && (testing.Short() || kind != "linear" && kind != "hedge") {
				continue
			}
			t.Run(engine+"/"+kind, func(t *testing.T) {
				t.Parallel()
				s := newShop(t, open(t), shopModel(kind, 1, "actions: [a, b, c]"))
				defer s.shut()
				s.rounds(20)
				for _, mode := range []codec.Mode{codec.Shadow, codec.Apprentice, codec.Paused, codec.Live, codec.Paused, codec.Shadow, codec.Live} {
					s.switchTo(mode)
					s.rounds(8)
					if s.rng.IntN(2) == 0 {
						s.open()
					}
				}
				s.changeActions(kind)
				s.end()
				if r := s.verify(); r.ExitCode() != VerifyIdentical {
					t.Fatalf("does not verify: %+v\n%+v", r.First, r)
				}
				want, got := s.fromStart(), s.fromSnapshot()
				if !bytes.Equal(want, got) {
					t.Error("a restart from a snapshot has another state than one from the start")
				}
			})
		}
	}
}

// changeActions adds d, masks b and takes c out, one after the other.
func (s *shopRig) changeActions(kind string) {
	s.Helper()
	for i, actions := range []string{"actions: [a, b, c, d]", "actions: [a, b, c, d]\nmasked: [b]", "actions: [a, b, d]"} {
		if i == 2 {
			s.rng = rand.New(rand.NewPCG(9, 9))
		}
		src := s.source(shopModel(kind, 2+i, actions+"\nwarm: keep"))
		_, err := s.j.Renew(s.ctx, src)
		s.no(err)
		s.jc.Source = *src
		s.pump()
		from := s.read
		s.rounds(12)
		for _, d := range s.decisions(from) {
			for _, name := range d.Actions {
				if i == 1 && name == "b" || i == 2 && name == "c" && bytes.Contains(d.Context, []byte(`"c"`)) == false {
					s.Errorf("round %d has the action %s", d.N, name)
				}
			}
		}
		if i == 1 {
			s.open()
		}
	}
}

// end lets windows pass.
func (s *shopRig) end() {
	s.Helper()
	s.rounds(15)
	s.no(s.j.Tick(s.ctx, time.Now().Add(time.Hour)))
	s.pump()
}

// TestModesAnswer holds what users see in each mode, and what the log says of it.
func TestModesAnswer(t *testing.T) {
	s := newShop(t, mem.New(mem.Options{}), shopModel("linear", 1, "actions: [a, b, c]\nbaseline: {fixed: c}"))
	defer s.shut()
	for mode := codec.Live; mode <= codec.Paused; mode++ {
		s.switchTo(mode)
		var reply string
		s.d.Request(stream.Message{Data: fmt.Appendf(nil, `{"id":"q%d"}`, mode), Respond: func(b []byte, _ ...stream.Header) error {
			reply = string(b)
			return nil
		}})
		s.pump()
		if live := mode == codec.Live; strings.Contains(reply, `"mode"`) == live || !live && !strings.Contains(reply, `"action":"c","propensity":1,`) || !live && !strings.Contains(reply, `"mode":"`+mode.String()+`"`) {
			t.Errorf("%s: %s", mode, reply)
		}
	}
	all := s.decisions(stream.Earliest)
	if len(all) != 4 {
		t.Fatalf("%d decisions", len(all))
	}
	for i, d := range all {
		if d.Mode != codec.Mode(i) || (len(d.Would) == 3) != (d.Mode == codec.Shadow) || d.Epoch != int64(i+1) {
			t.Errorf("%+v", d)
		}
	}
}

// TestModeSurvivesRestart holds that the mode asked for last holds though the file says
// another, and that a file of a higher version brings its own.
func TestModeSurvivesRestart(t *testing.T) {
	s := newShop(t, mem.New(mem.Options{}), shopModel("linear", 1, "actions: [a, b]\nmode: shadow"))
	defer s.shut()
	mode := func() codec.Mode {
		s.rounds(1)
		all := s.decisions(stream.Earliest)
		return all[len(all)-1].Mode
	}
	if m := mode(); m != codec.Shadow {
		t.Fatal(m)
	}
	s.switchTo(codec.Paused)
	s.open()
	if m := mode(); m != codec.Paused {
		t.Errorf("after a restart: %s", m)
	}
	s.jc.Source = *s.source(shopModel("linear", 1, "actions: [a, b]\nmode: live"))
	s.open()
	if m := mode(); m != codec.Paused {
		t.Errorf("with another mode in a file of the same version: %s", m)
	}
	epoch := s.j.Epoch()
	if n, err := s.j.Switch(s.ctx, codec.Paused, ""); n != epoch || err != nil {
		t.Errorf("switched to the mode at work: epoch %d, %v; it was %d", n, err, epoch)
	}
	s.jc.Source = *s.source(shopModel("linear", 2, "actions: [a, b]\nwarm: keep"))
	s.open()
	if m := mode(); m != codec.Live {
		t.Errorf("with a new version: %s", m)
	}
	s.end()
	if r := s.verify(); r.ExitCode() != VerifyIdentical {
		t.Errorf("does not verify: %+v", r.First)
	}
}

// TestKeepIsRefused holds what may not go on with the learner at work, that the log is left
// as it was, and that the joiner goes on.
func TestKeepIsRefused(t *testing.T) {
	s := newShop(t, mem.New(mem.Options{}), shopModel("linear", 1, "actions: [a, b]"))
	defer s.shut()
	s.rounds(10)
	for text, want := range map[string]string{
		shopModel("linear", 2, "actions: [a, b]\nwarm: keep\nexplore: cautious"):            "explore differs",
		shopModel("auto", 2, "actions: [a, b]\nwarm: keep"):                                 "oracle differs",
		shopModel("linear", 2, "actions: [a, b]\nwarm: keep\nfeatures: {x: number}"):        "features differs",
		shopModel("linear", 2, "actions: [a, b]\nwarm: keep\nreward: {min: 0, max: 2}"):     "differs",
		shopModel("linear", 1, "actions: [a, b, c]"):                                        "same version 1",
		strings.Replace(shopModel("linear", 2, "actions: [a, b]"), "name: m", "name: n", 1): "the log belongs to",
	} {
		epoch := s.j.Epoch()
		if _, err := s.j.Renew(s.ctx, s.source(text)); !errors.Is(err, service.ErrModel) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
		if s.j.Epoch() != epoch {
			t.Fatalf("epoch %d after %s", s.j.Epoch(), text)
		}
		s.rounds(2)
	}
	s.switchTo(codec.Shadow)
	s.end()
	if r := s.verify(); r.ExitCode() != VerifyIdentical || r.Epochs.Records != 2 {
		t.Errorf("does not verify: %+v %+v", r.First, r.Epochs)
	}
}

// TestModesLiveEqualsBacktest holds that a backtest in a mode makes the decisions of a live
// run in it, to the bit, and ends in the same state.
func TestModesLiveEqualsBacktest(t *testing.T) {
	for _, c := range []struct {
		env    string
		mode   codec.Mode
		oracle string
	}{{"linear:3,4", codec.Shadow, model.Linear}, {"linear:3,4", codec.Apprentice, model.Hybrid}, {"sigmoid", codec.Shadow, ""}, {"linear:3,4", codec.Paused, model.Linear}} {
		t.Run(fmt.Sprint(c.env, c.mode), func(t *testing.T) {
			t.Parallel()
			env := environment(t, c.env, 1, 300)
			tr := trialOf(t, env, "dafa", "200", "exp:10")
			tr.Model.Mode, tr.Model.Baseline.Kind = c.mode, loop.UniformAction
			if c.oracle != "" {
				useOracle(t, tr, env, c.oracle)
			}
			if _, v := liveLog(t, tr, func(log stream.Log) { sameAsLive(t, tr, log) }); v.ExitCode() != VerifyIdentical {
				t.Errorf("the logs do not verify: %s", v.text())
			}
		})
	}
}

// TestModesBehindRetention holds that a log whose beginning is gone, with the record of the
// epoch in which the learner began, goes on from a snapshot and verifies from there.
func TestModesBehindRetention(t *testing.T) {
	log := mem.New(mem.Options{})
	if err := log.Create(t.Context(), service.TopicsOf("m").Feedback, 1, stream.TopicOptions{Trimmable: true}); err != nil {
		t.Fatal(err)
	}
	s := newShop(t, log, shopModel("linear", 1, "actions: [a, b, c]\nguard: {worse_by: 0.9, alpha: 0.1}\nbaseline: uniform"))
	defer s.shut()
	for i := range 12 {
		s.switchTo(codec.Mode(i % 3))
		s.rounds(12)
	}
	want := s.fromStart()
	_, end, err := log.Bounds(s.ctx, s.ts.Feedback, 0)
	s.no(err)
	s.no(log.Trim(s.ctx, s.ts.Feedback, 0, end-45))
	if got := s.fromSnapshot(); !bytes.Equal(want, got) {
		t.Error("another state")
	}
	s.switchTo(codec.Live)
	s.end()
	r := s.verify()
	if r.First != nil || r.ExitCode() != VerifyTooOld || r.Decisions.Checked < 20 {
		t.Errorf("%+v\n%+v", r.First, r)
	}
}

// TestRollbackOverModes holds that a rollback to a state in the middle of modes is the state
// that the learner had then.
func TestRollbackOverModes(t *testing.T) {
	s := newShop(t, mem.New(mem.Options{}), shopModel("linear", 1, "actions: [a, b, c]"))
	defer s.shut()
	states := map[int64][]byte{}
	learner := func() []byte {
		b, err := s.d.Replica().Epoch().Learner.AppendBinary(nil)
		s.no(err)
		return b
	}
	for _, mode := range []codec.Mode{codec.Live, codec.Shadow, codec.Paused, codec.Live, codec.Apprentice} {
		s.switchTo(mode)
		s.rounds(12)
		states[s.d.Replica().LearnedThrough()] = learner()
	}
	version := 2
	for n, want := range states {
		src := s.source(shopModel("linear", version, fmt.Sprintf("actions: [a, b, c]\nwarm: %d", n)))
		version++
		_, err := s.j.Renew(s.ctx, src)
		s.no(err)
		s.pump()
		if !bytes.Equal(learner(), want) {
			t.Errorf("rolled back to feedback %d: another state", n)
		}
	}
	s.jc.Source = *s.source(shopModel("linear", version, "actions: [c, d, a]\nwarm: refit"))
	s.open()
	if n := s.d.Replica().Epoch().Learner.Learned(); n < 20 {
		t.Errorf("%d rounds learned again by their names", n)
	}
	s.end()
	if r := s.verify(); r.ExitCode() != VerifyIdentical {
		t.Errorf("does not verify: %+v", r.First)
	}
}

// TestGuardSwitches holds that a learner that is worse than the baseline is replaced by it,
// that the log says so, over restarts at any time, and that verify tells a lie about it.
func TestGuardSwitches(t *testing.T) {
	const guarded = "actions: [a, b]\nbaseline: {fixed: b}\nlearner: {fixed: a}\nguard: {worse_by: 0.1, alpha: 0.05, then: shadow}"
	for _, restarts := range []bool{false, true} {
		// Uniform play, of which half is the worse action, against the better one.
		text := strings.Replace(shopModel("greedy", 1, guarded), "learner: {egreedy: 0.2}\n", "", 1)
		text = strings.Replace(text, "learner: {fixed: a}", "learner: uniform", 1)
		s := newShop(t, mem.New(mem.Options{}), text)
		n := 0
		for ; n < 60 && s.j.Epoch() == 1; n++ {
			s.rounds(10)
			if restarts {
				s.open()
			}
		}
		s.rounds(20)
		all := s.decisions(stream.Earliest)
		if last := all[len(all)-1]; s.j.Epoch() != 2 || last.Mode != codec.Shadow {
			t.Fatalf("after %d rounds: epoch %d, %s", 10*n, s.j.Epoch(), last.Mode)
		}
		t.Logf("switched after about %d rounds", 10*n)
		s.end()
		if r := s.verify(); r.ExitCode() != VerifyIdentical {
			t.Errorf("does not verify: %+v", r.First)
		}
		s.switchTo(codec.Live)
		if g := s.j.Heart().Guard().Sums(); g.Raised != 0 || g.Rounds != 0 {
			t.Errorf("the guard has not begun anew: %+v", g)
		}
		if _, err := s.j.Switch(s.ctx, codec.Paused, "guard: a lie"); err != nil {
			t.Fatal(err)
		}
		s.pump()
		if r := s.verify(); r.First == nil || r.First.Field != "cause" {
			t.Errorf("a switch that the guard did not want: %+v", r.First)
		}
		s.shut()
	}
}
