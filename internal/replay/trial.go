package replay

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"time"

	"hindsight/internal/loop"
	"hindsight/internal/model"
)

// Trial is one run of a backtest.
type Trial struct {
	Rounds *Rounds
	Order  int // the row order of Rounds
	Delays Delays
	Model  *model.Model
	Files  map[string][]byte // that the model names
	Label  string            // of the learner, in results
	Seed   uint64
}

// Run runs the trial. progress is called now and then with the rounds done.
func (t *Trial) Run(ctx context.Context, progress func(done int)) (*Result, error) {
	l, err := t.Model.Build(t.Files)
	if err != nil {
		return nil, err
	}
	ep := loop.Epoch{Number: 1, Rules: t.Model.Rules(), Learner: l}
	start := time.Now()
	trace, err := Backtest(ctx, ep, t.Model.Name, SecretSeed(t.Seed), t.Rounds, t.Delays, progress)
	if err != nil {
		return nil, err
	}
	elapsed := time.Since(start)
	r := t.result(trace)
	r.Certificate = Certify(l, r.Rounds-r.Fates.Withdrawn, 0, t.Model.Arrival, &r.LateLosses)
	r.RoundsPerSecond = float64(r.Rounds) / elapsed.Seconds()
	return r, nil
}

func (t *Trial) result(trace *Trace) *Result {
	r := &Result{
		Environment: t.Rounds.Env.Name(), Learner: t.Label, Order: t.Order, Seed: t.Seed,
		Window: model.FormatWindow(t.Model.Window), Rounds: int64(trace.Rounds),
		Fates: trace.Fates, LateLosses: trace.LateLosses, Delays: MeasureDelays(t.Delays.String(), trace.Raw, trace.Through),
	}
	trace.match.score(r)
	return r
}

// SecretSeed derives the secret seed of a run from the seed of its flags.
func SecretSeed(seed uint64) []byte {
	sum := sha256.Sum256(binary.BigEndian.AppendUint64([]byte("hindsight replay seed "), seed))
	return sum[:]
}

// ModelFor returns the model of an environment: its actions, and what the
// environment tells of its data. class is the content of its class file, nil if
// it has none.
func ModelFor(env Environment, name string, learner model.Learner, window loop.Window) (m *model.Model, files map[string][]byte) {
	m = model.Default()
	m.Name, m.Learner, m.Window = name, learner, window
	m.Actions = append([]string(nil), env.Actions()...)
	m.MaxActions = max(m.MaxActions, len(m.Actions))
	if c, ok := env.(interface{ Class() []byte }); ok {
		const file = "class.jsonl"
		m.Oracle = model.Oracle{Kind: model.Hedge, Eta: .5, Class: file}
		return m, map[string][]byte{file: c.Class()}
	}
	m.MaxFeatures = max(m.MaxFeatures, env.Columns())
	m.Resolve(env.Columns(), len(env.Actions()))
	return m, nil
}
