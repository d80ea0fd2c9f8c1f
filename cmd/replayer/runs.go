package main

import (
	"context"
	"errors"
	"fmt"

	"hindsight/internal/cores"
	"hindsight/internal/daemon"
	"hindsight/internal/replay"
)

// campaign is trials that are played in parallel over the cores.
type campaign struct {
	env     *daemon.Env
	what    string // the trials are: runs; "": what is finished is not told
	trials  []*replay.Trial
	journal *replay.Journal // of finished ones; nil: none is kept
}

// play returns the results in the order of trials. Interrupted, it returns those that
// are finished, and the context's error.
func (r *campaign) play(ctx context.Context) ([]replay.Result, error) {
	results, total, err := r.kept()
	if err != nil {
		return nil, err
	}
	bar := newProgress(r.env.Stderr, total, "backtest")
	err = cores.Each(ctx, len(r.trials), func(ctx context.Context, i int) (err error) {
		if results[i] == nil {
			results[i], err = r.one(ctx, r.trials[i], bar)
		}
		return err
	})
	bar.finish()
	finished := []replay.Result{}
	for _, result := range results {
		if result != nil {
			finished = append(finished, *result)
		}
	}
	if errors.Is(err, context.Canceled) && r.what != "" {
		fmt.Fprintf(r.env.Stderr, "%d of %d %s are finished%s\n", len(finished), len(r.trials), r.what, hint(r.journal))
	}
	return finished, err
}

// kept returns what the journal keeps, nil for trials that it does not, and the rounds of the latter.
func (r *campaign) kept() (results []*replay.Result, rounds int64, err error) {
	results = make([]*replay.Result, len(r.trials))
	n := 0
	for i, t := range r.trials {
		if r.journal != nil {
			if results[i], err = r.journal.Result(t); err != nil {
				return nil, 0, err
			}
		}
		if results[i] == nil {
			rounds += int64(t.Rounds.Len())
		} else {
			n++
		}
	}
	if n > 0 {
		fmt.Fprintf(r.env.Stderr, "%d of %d %s were finished before\n", n, len(r.trials), r.what)
	}
	return results, rounds, nil
}

// one plays a trial and keeps its result.
func (r *campaign) one(ctx context.Context, t *replay.Trial, bar *progress) (*replay.Result, error) {
	at := bar.steps()
	result, err := t.Run(ctx, at)
	if err != nil {
		return nil, err
	}
	at(t.Rounds.Len())
	if r.journal != nil {
		err = r.journal.Keep(t, result)
	}
	return result, err
}

// hint says how to go on.
func hint(j *replay.Journal) string {
	if j == nil {
		return "; with --resume FILE they are kept"
	}
	return " and kept; the same command continues"
}
