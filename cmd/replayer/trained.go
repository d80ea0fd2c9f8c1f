package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/pflag"

	"hindsight/internal/daemon"
	"hindsight/internal/engine"
	"hindsight/internal/judge"
	"hindsight/internal/model"
	"hindsight/internal/replay"
)

// trained holds the flags that name a learner of a live system, a policy to be judged.
type trained struct {
	system
	at int64

	engine *engine.Engine // open once a policy asked for it
}

func (t *trained) flags(f *pflag.FlagSet) {
	f.StringVar(&t.log, "log", "", "log of a live system: embedded:DIR, nats://… or kafka://…; for --policy "+
		"snapshot, and replayed itself unless --data or --env is given")
	f.Int64Var(&t.at, "at", 0, "feedback after which --policy snapshot is the learner of --log; 0: all")
	daemon.Bounds{"at": {0, 1 << 53}}.Set(f)
}

// policy returns the learner as it was after so much feedback, "" that of --at, as a
// policy on the rows of data. Each call returns one of its own.
func (t *trained) policy(ctx context.Context, data *replay.Rounds, at string) (*judge.Progressive, error) {
	n := t.at
	if at != "" {
		var err error
		if n, err = strconv.ParseInt(at, 10, 64); err != nil || n < 1 {
			return nil, fmt.Errorf("snapshot:%s: expected the number of a feedback, from 1", at)
		}
	}
	if err := t.open(ctx); err != nil {
		return nil, err
	}
	l, err := replay.Trained(ctx, t.engine.Log, t.name, model.Epoch, n)
	if err != nil {
		return nil, err
	}
	policy := judge.NewFrozen(l.Epoch, t.name, nil, data)
	policy.MadeOf(l.Digest)
	return policy, nil
}

// open opens the log, once.
func (t *trained) open(ctx context.Context) (err error) {
	if t.engine != nil {
		return nil
	}
	if t.log == "" {
		return errors.New("a snapshot is that of a live system: name its log, for example --log embedded:DIR")
	}
	t.engine, err = t.system.open(ctx)
	return err
}

func (t *trained) close() {
	if t.engine != nil {
		_ = t.engine.Close()
		t.engine = nil
	}
}
