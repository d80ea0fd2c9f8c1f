package verify

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"hindsight/internal/follow"
	"hindsight/internal/join"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/mem"
)

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
				for _, mode := range []codec.Mode{codec.Shadow, codec.Apprentice, codec.Paused, codec.Live,
					codec.Paused, codec.Shadow, codec.Live} {
					s.switchTo(mode)
					s.rounds(8)
					if s.rng.IntN(2) == 0 {
						s.open()
					}
				}
				s.changeActions(kind)
				s.end()
				if r := s.verify(); r.ExitCode() != Identical {
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
	for i, actions := range []string{"actions: [a, b, c, d]", "actions: [a, b, c, d]\nmasked: [b]", "actions: " +
		"[a, b, d]"} {
		if i == 2 {
			s.rng = rand.New(rand.NewPCG(9, 9))
		}
		src := s.source(shopModel(kind, 2+i, actions+"\nwarm: keep"))
		_, err := s.j.Renew(s.ctx, src)
		s.no(err)
		s.jc.Source = src
		s.pump()
		from := s.read
		s.rounds(12)
		for _, d := range s.decisions(from) {
			if d.Epoch < s.j.Epoch() {
				continue // decided before, and read now
			}
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
	for i := range 2 { // the joiner sees log time, and then that it stands
		s.no(s.j.Tick(s.ctx, time.Now().Add(time.Duration(i+1)*time.Hour)))
	}
	s.pump()
}

// TestModesAnswer holds what users see in each mode, and what the log says of it.
func TestModesAnswer(t *testing.T) {
	s := newShop(t, mem.New(mem.Options{}), shopModel("linear", 1, "actions: [a, b, c]\nbaseline: {fixed: c}"))
	defer s.shut()
	for mode := codec.Live; mode <= codec.Paused; mode++ {
		s.switchTo(mode)
		var reply string
		s.d.Request(stream.Message{Data: fmt.Appendf(nil, `{"id":"q%d"}`, mode),
			Respond: func(b []byte, _ ...stream.Header) error {
				reply = string(b)
				return nil
			}})
		s.pump()
		if live := mode == codec.Live; strings.Contains(reply, `"mode"`) == live || !live && !strings.Contains(reply,
			`"action":"c","propensity":1,`) || !live && !strings.Contains(reply, `"mode":"`+mode.String()+`"`) {
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
	s.jc.Source = s.source(shopModel("linear", 1, "actions: [a, b]\nmode: live"))
	s.open()
	if m := mode(); m != codec.Paused {
		t.Errorf("with another mode in a file of the same version: %s", m)
	}
	epoch := s.j.Epoch()
	if n, err := s.j.Switch(s.ctx, codec.Paused, ""); n != epoch || err != nil {
		t.Errorf("switched to the mode at work: epoch %d, %v; it was %d", n, err, epoch)
	}
	s.jc.Source = s.source(shopModel("linear", 2, "actions: [a, b]\nwarm: keep"))
	s.open()
	if m := mode(); m != codec.Live {
		t.Errorf("with a new version: %s", m)
	}
	s.end()
	if r := s.verify(); r.ExitCode() != Identical {
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
		if _, err := s.j.Renew(s.ctx, s.source(text)); !errors.Is(err, follow.ErrModel) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
		if s.j.Epoch() != epoch {
			t.Fatalf("epoch %d after %s", s.j.Epoch(), text)
		}
		s.rounds(2)
	}
	s.switchTo(codec.Shadow)
	s.end()
	if r := s.verify(); r.ExitCode() != Identical || r.Epochs.Records != 2 {
		t.Errorf("does not verify: %+v %+v", r.First, r.Epochs)
	}
}

// TestModesBehindRetention holds that a log whose beginning is gone, with the record of the
// epoch in which the learner began, goes on from a snapshot and verifies from there.
func TestModesBehindRetention(t *testing.T) {
	log := mem.New(mem.Options{})
	if err := log.Create(t.Context(), join.TopicsOf("m").Feedback, 1,
		stream.TopicOptions{Trimmable: true}); err != nil {
		t.Fatal(err)
	}
	s := newShop(t, log,
		shopModel("linear", 1, "actions: [a, b, c]\nguard: {worse_by: 0.9, alpha: 0.1}\nbaseline: uniform"))
	defer s.shut()
	for i := range 12 {
		s.switchTo(codec.Mode(i % 3))
		s.rounds(12)
	}
	want := s.fromStart()
	var fed []int64
	s.no(stream.Scan(s.ctx, log, s.ts.Feedback, 0, stream.Earliest, 1<<40, func(r *stream.Record) error {
		if r.Type == "" {
			fed = append(fed, r.Offset)
		}
		return nil
	}))
	s.no(log.Trim(s.ctx, s.ts.Feedback, 0, fed[len(fed)-40]))
	if got := s.fromSnapshot(); !bytes.Equal(want, got) {
		t.Error("another state")
	}
	s.switchTo(codec.Live)
	s.end()
	r := s.verify()
	if r.First != nil || r.ExitCode() != TooOld || r.Decisions.Checked < 20 {
		t.Errorf("%+v\n%+v", r.First, r)
	}
	s.oldLaws(r)
}

// oldLaws holds that of decisions whose learner is gone the law is checked where it is not the learner's.
func (s *shopRig) oldLaws(r *Report) {
	s.Helper()
	var epoch, from int64
	if _, err := fmt.Sscanf(r.Start, "the snapshot of epoch %d after feedback %d", &epoch, &from); err != nil {
		s.Fatal(r.Start)
	}
	found := map[codec.Mode]int{}
	for _, d := range s.decisions(stream.Earliest) {
		if d.LearnedThrough >= from || d.Propensities[d.Action] == 1 {
			continue
		}
		bad := d
		bad.Propensities = make([]float64, len(bad.Actions))
		bad.Propensities[bad.Action] = 1 // so that the draw follows from it
		undo := s.edit(&d, bad)
		if x := s.verify().First; x != nil && x.Topic == s.ts.Decisions && x.Round == bad.N {
			found[d.Mode]++
		}
		undo()
	}
	if found[codec.Live] > 0 || found[codec.Shadow] == 0 || found[codec.Apprentice] == 0 {
		s.Errorf("another law is found, by mode: %v", found)
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
	s.jc.Source = s.source(shopModel("linear", version, "actions: [c, d, a]\nwarm: refit"))
	s.open()
	if n := s.d.Replica().Epoch().Learner.Learned(); n < 20 {
		t.Errorf("%d rounds learned again by their names", n)
	}
	s.end()
	if r := s.verify(); r.ExitCode() != Identical {
		t.Errorf("does not verify: %+v", r.First)
	}
}

// TestGuardSwitches holds that a learner that is worse than the baseline is replaced by it,
// that the log says so, over restarts at any time, and that verify tells a lie about it.
func TestGuardSwitches(t *testing.T) {
	const guarded = "actions: [a, b]\nbaseline: {fixed: b}\nlearner: {fixed: a}\nguard: {worse_by: 0.1, alpha: 0.05, " +
		"then: shadow}"
	for _, restarts := range []bool{false, true} {
		// Uniform play, of which half is the worse action, against the better one.
		text := strings.Replace(shopModel("greedy", 1, guarded), "learner: {egreedy: 0.2}\n", "", 1)
		text = strings.Replace(text, "learner: {fixed: a}", "learner: uniform", 1)
		s := newShop(t, mem.New(mem.Options{}), text)
		s.untilShadow(restarts)
		s.switchTo(codec.Shadow) // somebody has seen it, and wants that mode
		s.rounds(20)
		if s.j.Epoch() != 3 {
			t.Errorf("epoch %d after the guard's mode was asked for", s.j.Epoch())
		}
		s.end()
		if r := s.verify(); r.ExitCode() != Identical {
			t.Errorf("does not verify: %+v", r.First)
		}
		s.falseCause(codec.AlarmCause)
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

// falseCause holds that verify names the second epoch where it says that the guard, or the rule, switched at another
// feedback than it did.
func (s *shopRig) falseCause(cause func(n int64) string) {
	s.Helper()
	log := s.jc.Log.(*mem.Log)
	var was []stream.Record
	s.no(log.Edit(s.ts.Feedback, 0, func(recs []stream.Record) []stream.Record {
		was = slices.Clone(recs)
		for i := range recs {
			rec, err := codec.ParseEpoch(recs[i].Value)
			if recs[i].Type != codec.TypeEpoch || rec.Epoch != 2 {
				continue
			}
			s.no(err)
			n := int64(1)
			for ; cause(n) != rec.Cause && n < 1<<20; n++ {
			}
			rec.Cause = cause(n + 1)
			recs[i].Value = codec.AppendEpoch(nil, &rec)
		}
		return recs
	}))
	if r := s.verify(); r.First == nil || r.First.Field != "cause" {
		s.Errorf("a switch at another feedback: %+v", r.First)
	}
	s.no(log.Edit(s.ts.Feedback, 0, func([]stream.Record) []stream.Record { return was }))
}

// untilShadow plays until something switches the mode to shadow, and some rounds more.
func (s *shopRig) untilShadow(restarts bool) {
	s.Helper()
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
		s.Fatalf("after %d rounds: epoch %d, %s", 10*n, s.j.Epoch(), last.Mode)
	}
	s.Logf("switched after about %d rounds", 10*n)
}
