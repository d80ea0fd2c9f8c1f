package service

import (
	"bytes"
	"fmt"
	"net/http/httptest"
	"testing"

	"hindsight/internal/loop"
	"hindsight/internal/watch"
	"hindsight/pkg/codec"
	"hindsight/pkg/learner"
)

// guardedRig is a rig whose guard switches to shadow once the learner, which never learns, is
// worse than the first action, and whose joiner tells a control what it sees.
func guardedRig(t *testing.T) (*rig, *Control) {
	control := &Control{}
	r := newRig(t, func(r *rig) {
		build := func(rec *codec.Epoch, files map[string][]byte) (loop.Epoch, error) {
			ep, err := r.build(rec, files)
			rules := r.rules
			rules.Mode = rec.Mode
			ep.Rules, ep.Learner = &rules, learner.NewUniform()
			return ep, err
		}
		r.rules.Guard = loop.GuardRules{Margin: .05, Alpha: .2, Then: codec.Shadow}
		r.jc.Source.Model = []byte("name: m\n")
		r.jc.Build, r.dc.Build, r.jc.Control = build, build, control
	})
	return r, control
}

// play decides n rounds and reports a loss of 0 for the first action, of 1 for the other.
func (r *rig) play(name string, n int) {
	r.t.Helper()
	for i := range n {
		id := fmt.Sprint(name, i)
		r.contexts(id)
		r.must(r.settle())
		loss := 0
		if bytes.Contains([]byte(r.request(`{"id":%q,"features":{%q:1},"actions":["a","b"]}`, plantedText+id,
			plantedText)), []byte(`"action":"b"`)) {
			loss = 1
		}
		r.put(r.topics.Outcomes, `{"id":%q,"loss":%d}`, plantedText+id, loss)
		r.must(r.settle())
	}
}

// TestGuardAlarmOutlastsItsSwitch: the switch that an alarm makes begins the guard anew, and
// the alarm stays where people look until one of them asks for a mode: the one that the guard
// chose, too, and after a restart.
func TestGuardAlarmOutlastsItsSwitch(t *testing.T) {
	r, control := guardedRig(t)
	page := func() (GuardPage, ModePage) {
		r.j.shownAt = r.j.shownAt.Add(-showEvery)
		r.must(stepJoiner(r))
		return control.guard, control.mode
	}
	alarmed := func(want bool, mode codec.Mode) {
		t.Helper()
		g, m := page()
		shown := r.value("hindsight_guard_alarm")
		if g.Alarm != want || (g.Raised > 0) != want || (shown == 1) != want || m.Mode != mode.String() || !g.On {
			t.Errorf("in mode %s: alarm %v of feedback %d, the metric says %v; expected %v in %s", m.Mode,
				g.Alarm, g.Raised, shown, want, mode)
		}
	}
	alarmed(false, codec.Live)
	for i := 0; r.j.Epoch() == 1 && i < 20; i++ {
		r.play(fmt.Sprint("round", i, "-"), 5)
	}
	alarmed(true, codec.Shadow)
	raised := control.guard.Raised
	r.j.Close()
	r.d.Close()
	r.open()
	r.play("later", 3)
	alarmed(true, codec.Shadow)
	if control.guard.Raised != raised || control.mode.Epoch != 2 {
		t.Errorf("of feedback %d before the restart, of %d after it, in epoch %d", raised, control.guard.Raised,
			control.mode.Epoch)
	}
	w := httptest.NewRecorder()
	answerSeen(&Control{joiner: r.j, guard: control.guard}, w, &control.guard)
	if !bytes.Contains(w.Body.Bytes(), []byte(`"alarm": true`)) {
		t.Errorf("%s", w.Body)
	}
	for _, c := range []struct {
		mode  codec.Mode
		epoch int64
	}{{codec.Shadow, 3}, {codec.Shadow, 3}, {codec.Live, 4}} {
		epoch, err := r.j.Switch(t.Context(), c.mode, cause(watch.CauseAdmin, "seen"))
		if r.must(err); epoch != c.epoch {
			t.Errorf("epoch %d when somebody asks for %s, expected %d", epoch, c.mode, c.epoch)
		}
		alarmed(false, c.mode)
	}
	checkExposed(t, exposed(t, r.reg), 1)
}
