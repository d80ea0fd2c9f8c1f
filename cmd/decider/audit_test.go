package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"hindsight/internal/check"
	"hindsight/internal/daemon"
	"hindsight/internal/engine"
	"hindsight/internal/loop"
	"hindsight/internal/model"
	"hindsight/internal/verify"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/embedded"
)

// audit opens the folder of a system that has stopped and holds its logs against
// every promise, by code that shares nothing with the system, and against what the
// system computes again.
func audit(t testing.TB, dir, name string, replies []check.Reply, o check.Options, own func(stream.Log)) *check.Report {
	t.Helper()
	ctx := t.Context()
	e, err := embedded.Open(ctx, embedded.Options{Dir: dir, DontListen: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}()
	seed, err := daemon.SeedFile(filepath.Join(dir, engine.SeedName))
	if err != nil {
		t.Fatal(err)
	}
	o.Seed, o.Rules, o.Replies = seed, rulesOf, replies
	r, err := check.Run(ctx, e.Log(), name, 1, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range r.Violations {
		t.Error(v)
	}
	if more := r.Broken - len(r.Violations); more > 0 {
		t.Errorf("and %d more violations", more)
	}
	verifyLogs(ctx, t, e.Log(), name, seed, 0)
	if own != nil {
		own(e.Log())
	}
	return r
}

func verifyLogs(ctx context.Context, t testing.TB, log stream.Log, name string, seed []byte, skew int64) {
	t.Helper()
	v, err := verify.Run(ctx, verify.Config{Log: log, Name: name, Seed: seed, Build: model.Epoch,
		Skew: time.Duration(skew)})
	if err != nil {
		t.Fatal(err)
	}
	if v.ExitCode() != verify.Identical || v.Decisions.Checked != v.Decisions.Records ||
		v.Feedback.Checked != v.Feedback.Records {
		v.Write(os.Stderr)
		t.Errorf("the logs do not verify: exit code %d, %+v", v.ExitCode(), v.First)
	}
}

// rulesOf reads the rules out of an epoch record.
func rulesOf(e *codec.Epoch) (check.Rules, error) {
	m, err := model.Parse("epoch", e.Model)
	if err != nil {
		return check.Rules{}, err
	}
	if m.Outcomes != loop.First || m.Activation {
		return check.Rules{}, fmt.Errorf("epoch %d: the checker knows rounds of one outcome only", e.Epoch)
	}
	rules := check.Rules{
		Actions: m.Actions, MaxActions: m.MaxActions, WindowRounds: int64(m.Window.Rounds), WindowNanos: m.Window.Nanos,
		Impute: m.Impute, DefaultLoss: m.DefaultLoss, Min: m.Range.Min, Max: m.Range.Max, Clip: m.Range.Clip,
		Arrival: m.Arrival, Early: m.Early,
	}
	for k, o := range m.Named {
		if o.Take != loop.First || o.Range.Min != 0 || o.Range.Clip || !m.Worth.Linear() {
			return check.Rules{}, fmt.Errorf("epoch %d: the checker does not know outcomes like %s", e.Epoch, o.Name)
		}
		one := make([]float64, len(m.Named))
		one[k] = 1
		rules.Named = append(rules.Named, check.Named{Name: o.Name, WindowRounds: int64(o.Window.Rounds),
			WindowNanos: o.Window.Nanos, Max: o.Range.Max, Impute: o.Impute, Default: o.Default,
			Weight: m.Worth.Value("", one)})
	}
	return rules, nil
}

// figures is one line about what was checked.
func figures(r *check.Report) string {
	return fmt.Sprintf("%d contexts, %d decisions (%d by request), %d outcomes, %d early stages, fates %v, rejects "+
		"%v, %d rejects written again, %d openings, %d snapshots",
		r.Contexts, r.Decisions, r.Requests, r.Outcomes, r.Stages, r.Fates, r.Rejects, r.Repeated, r.Openings,
		r.Snapshots)
}
