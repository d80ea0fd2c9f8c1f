package replay

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"hindsight/internal/certify"
	"hindsight/internal/delay"
	"hindsight/internal/loop"
	"hindsight/internal/model"
	"hindsight/pkg/learner"
)

// Trial is one run of a backtest.
type Trial struct {
	Rounds *Rounds
	Order  int // the row order of Rounds
	Delays *delay.Delays
	Model  *model.Model
	Files  map[string][]byte // that the model names
	Label  string            // of the learner, in results
	Seed   uint64

	DefaultWindow bool // neither flags nor the model file give one

	Contexts bool // look for those in which the learner does worst

	Change func(learner.Learner) learner.Learner // nil: the learner is played as the model has it
}

// Run runs the trial. progress is called now and then with the rounds done.
func (t *Trial) Run(ctx context.Context, progress func(done int)) (*Result, error) {
	l, err := t.learner()
	if err != nil {
		return nil, err
	}
	if t.Change != nil {
		l = t.Change(l)
	}
	rules, err := t.Model.Judging(t.Files)
	if err != nil {
		return nil, err
	}
	ep := loop.Epoch{Number: 1, Rules: rules, Learner: l}
	start := time.Now()
	b := newBacktest(ep, t.Model.Name, SecretSeed(t.Seed), t.Rounds, t.Delays)
	if t.Rounds.Log == nil { // what rejection replay plays is not drawn from the law that it logs
		b.joiner.Judge().Begin(ep.Number, false, ep.Rules)
		b.match.course.judged = b.joiner.Judge().Estimates
	}
	if t.Contexts {
		b.match.contexts = newContextTable()
	}
	trace, err := b.run(ctx, progress)
	if err != nil {
		return nil, err
	}
	elapsed := time.Since(start)
	r := t.result(trace)
	r.Candidates = b.joiner.Judge().Estimates()
	r.Certificate = certify.Of(l, certify.Options{Rounds: r.Rounds - r.Fates.Withdrawn, Arrival: t.Model.Arrival,
		Early: t.Model.Early, Late: &r.LateLosses})
	r.RoundsPerSecond = float64(r.Rounds) / elapsed.Seconds()
	r.Contexts = trace.match.WorstContexts()
	return r, nil
}

// learner returns the learner of the model, over the oracle of the environment if that brings one in Go code.
func (t *Trial) learner() (learner.Learner, error) {
	kind := t.Model.Oracle.Kind
	if t.Rounds.Oracle != nil && t.Model.UsesOracle() && (kind == model.Own || kind == model.Unstable) {
		reg, err := t.Rounds.Oracle()
		if err != nil {
			return nil, err
		}
		return t.Model.BuildOn(reg)
	}
	return t.Model.Build(t.Files)
}

func (t *Trial) result(trace *trace) *Result {
	r := &Result{
		Environment: t.Rounds.Name, Learner: t.Label, Order: t.Order, Seed: t.Seed,
		Window: model.FormatWindow(t.Model.Window), DefaultWindow: t.DefaultWindow, Rounds: int64(trace.Rounds),
		Fates: trace.Fates, LateLosses: trace.LateLosses,
	}
	var bins []delay.Bin
	r.Delays, bins = trace.delays.Report(t.Delays.Spec)
	trace.match.Score(r)
	r.setFates(trace.Outcomes, trace.late)
	r.Course = trace.match.Tell(bins)
	return r
}

// SecretSeed derives the secret seed of a run from the seed of its flags.
func SecretSeed(seed uint64) []byte {
	sum := sha256.Sum256(binary.BigEndian.AppendUint64([]byte("hindsight replay seed "), seed))
	return sum[:]
}

// ModelFor returns the model of an environment: its actions, and what the environment tells of its data. class is the
// content of its class file, nil if it has none.
func ModelFor(r *Rounds, name string, learner model.Learner, window loop.Window) (m *model.Model,
	files map[string][]byte) {
	m = model.Default()
	defer m.DefaultOrder()
	m.Name, m.Learner, m.Window = name, learner, window
	m.Actions = append([]string(nil), r.Actions...)
	m.MaxActions = max(m.MaxActions, len(m.Actions))
	if r.Class != nil {
		const file = "class.jsonl"
		m.Oracle = model.Oracle{Kind: model.Hedge, Eta: .5, Class: file}
		return m, map[string][]byte{file: r.Class.Append(nil)}
	}
	if r.Policies != nil {
		files = map[string][]byte{policyFile: r.Policies.Append(nil)}
	}
	if r.Oracle != nil {
		if m.Oracle = (model.Oracle{Kind: model.Own}); !r.OrderFree {
			m.Oracle.Kind = model.Unstable
		}
		return m, files
	}
	m.MaxFeatures = max(m.MaxFeatures, r.Columns)
	m.DefaultOracle()
	if r.table != nil && (r.Log != nil || r.table.Arms) {
		r.table.Fit(m)
	}
	m.Resolve(r.Columns, len(r.Actions))
	return m, files
}

// policyFile is the name of the policy file that an environment brings.
const policyFile = "policies.jsonl"

// UsePolicies gives the learner exp4dale the policies of the environment, or those that go by its class, where the
// model names none, and the number of rounds where it is to know the sum of delays.
func UsePolicies(m *model.Model, r *Rounds) error {
	x := &m.Learner.EXP4
	if m.Learner.Kind != model.EXP4DALE {
		return nil
	}
	if !x.Delays.Auto && x.Horizon == 0 {
		x.Horizon = int64(r.n)
	}
	switch {
	case x.Policies != "":
	case r.Policies != nil:
		x.Policies = policyFile
	case m.Oracle.Kind == model.Hedge:
		x.Policies = m.Oracle.Class
	default:
		return errors.New("exp4dale needs policies, and this data brings none; name a policy file in a model file: " +
			"learner: {kind: exp4dale, policies: FILE}")
	}
	return nil
}

// UseActions gives a model the actions of the data where it lists none and the contexts
// do not bring theirs, and reports one that cannot play what the data needs.
func UseActions(m *model.Model, r *Rounds) error {
	all := r.Actions
	if r.Log != nil && r.Log.Events() {
		n := r.Log.Largest()
		if m.Actions == nil && n == len(all) {
			m.Actions = slices.Clone(all)
		}
		if n > m.MaxActions {
			return fmt.Errorf("a round of the log has %d actions, and the model's max_actions is %d", n, m.MaxActions)
		}
		for _, a := range all {
			if m.Actions != nil && !slices.Contains(m.Actions, a) {
				return fmt.Errorf("the model does not list the action %q of the log", a)
			}
		}
		return nil
	}
	if m.Actions == nil {
		m.Actions = slices.Clone(all)
	}
	if !slices.Equal(m.Actions, all) {
		return fmt.Errorf("the model lists the actions %s, but the data has %s: list those, in this order, or write "+
			"actions: any", fewNames(m.Actions), fewNames(all))
	}
	return nil
}

// fewNames writes the first of many names.
func fewNames(all []string) string {
	const most = 10
	if len(all) > most {
		return strings.Join(all[:most], ", ") + ", …"
	}
	return strings.Join(all, ", ")
}
