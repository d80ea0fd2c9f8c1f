package service

import (
	"bytes"
	"fmt"
	"log/slog"
	"regexp"
	"testing"

	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

// TestChangeIsTold: an action that was right becomes wrong. The log says so once, with the
// feedback and the action, and the metric and the certificate count it.
func TestChangeIsTold(t *testing.T) {
	var logged bytes.Buffer
	r := newRig(t, func(r *rig) {
		r.dc.Logger = slog.New(slog.NewTextHandler(&logged, nil))
		build := func(rec *codec.Epoch, _ map[string][]byte) (loop.Epoch, error) {
			reg, err := oracle.NewLinear(oracle.LinearOptions{Version: oracle.Newest})
			return loop.Epoch{Number: rec.Epoch, Learner: learner.NewDAFA(reg, learner.Root{C: 20}), Rules: &r.rules},
				err
		}
		r.jc.Build, r.dc.Build = build, build
	})
	round := func(i, loss int) {
		t.Helper()
		id := fmt.Sprint("r", i)
		r.put(r.topics.Contexts, `{"id":%q,"actions":["a"]}`, id)
		r.must(r.settle())
		r.put(r.topics.Outcomes, `{"id":%q,"loss":%d}`, id, loss)
		r.must(r.settle())
	}
	for i := range 120 {
		round(i, 0)
	}
	r.expect(map[string]float64{`hindsight_oracle_changes{partition="0"}`: 0})
	for i := range 30 {
		round(120+i, 1)
	}
	r.expect(map[string]float64{`hindsight_oracle_changes{partition="0"}`: 1})
	lines := regexp.MustCompile(`level=WARN msg="the played actions lose more.*`).FindAllString(logged.String(), -1)
	if len(lines) != 1 || !regexp.MustCompile(
		`feedback=1[23]\d action=(a|all) outcome=loss changes=1 false_alarm_probability=0.002`).MatchString(lines[0]) {
		t.Errorf("logged %q", lines)
	}
	i := NewInsight()
	defer i.enter(r.d)()
	page, err := i.Look()
	if err != nil || page.Certificate.Changes == nil || page.Certificate.Changes.Count != 1 ||
		page.Certificate.Changes.Last[0].Example < 121 {
		t.Errorf("%+v, %v", page, err)
	}
}
