package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"hindsight/internal/daemon"
	"hindsight/internal/model"
	"hindsight/internal/ope"
	"hindsight/internal/replay"
)

type backtest struct {
	env      *daemon.Env
	source   source
	learners []string
	delays   []string
	orders   int
	policies policies

	intake *replay.Intake // of the data
	mu     sync.Mutex
	rounds map[roundsKey]*replay.Rounds
}

func backtestCommand(env *daemon.Env) *cobra.Command {
	b := &backtest{env: env}
	cmd := &cobra.Command{
		Use:   "backtest",
		Short: "Play learners against delays and row orders offline, with the code that runs live",
		Long: `Play learners against delays and row orders offline, with the code that runs live.

Every learner meets every kind of delay in every row order, in parallel over the
cores. The same flags give the same bits.

On a log with propensities policies are judged, too: what the log says that they would
have earned, by eight off-policy estimators, and what speaks against believing it.`,
		Args: cobra.NoArgs,
		Example: `  replayer backtest
  replayer backtest --data pendigits.csv --orders 5
  replayer backtest --data flights.csv --time-column decision_ts --outcome-time-column outcome_ts \
    --action-column carrier --reward-column on_time --features origin,dest,distance
  replayer backtest --data open_bandit_men --policy uniform --policy always:7 --policy eps:0.1,hash:user_feature_0 --json
  replayer backtest --learner dafa --learner egreedy:0.05 --delays none --delays exp:50 --json`,
		RunE: func(cmd *cobra.Command, _ []string) error { return b.run(cmd.Context()) },
	}
	b.source.flags(cmd.Flags())
	b.source.reading.from(env)
	cmd.Flags().StringArrayVar(&b.learners, "learner", nil, "learner; may be repeated (default dafa, or the model file's)")
	cmd.Flags().StringArrayVar(&b.delays, "delays", nil, "delays of outcomes in later rounds; may be repeated (default: the log's own, else lognormal:20,1.5)")
	cmd.Flags().IntVar(&b.orders, "orders", 1, "row orders: order 0 is the file's, the others are shuffles by the seed")
	b.policies.flags(cmd.Flags())
	return cmd
}

func (b *backtest) run(ctx context.Context) error {
	if b.orders < 1 {
		return daemon.Usagef("--orders %d: it must be at least 1", b.orders)
	}
	env, err := b.source.open()
	if err != nil {
		return err
	}
	b.intake = replay.IntakeOf(env)
	judged, err := b.judge(ctx, env)
	if err != nil {
		return err
	}
	results := []replay.Result{}
	if len(b.policies.specs) == 0 || len(b.learners) > 0 {
		trials, err := b.trials(env)
		if err != nil {
			return err
		}
		if results, err = b.play(ctx, trials); err != nil {
			return err
		}
	}
	return b.write(results, judged)
}

// write writes the results of runs and what a log says of policies, each if there is
// any.
func (b *backtest) write(results []replay.Result, judged *replay.Evaluations) error {
	table := b.env.Stdout
	if b.source.json {
		out := struct {
			Intake     *replay.Intake            `json:"intake,omitempty"` // of data
			Runs       []replay.Result           `json:"runs"`
			Policies   []*ope.Evaluation         `json:"policies,omitempty"`
			Estimators *replay.OffPolicySettings `json:"estimators,omitempty"`
		}{Intake: b.intake, Runs: results}
		if judged != nil {
			out.Policies, out.Estimators = judged.Policies, &judged.Settings
		}
		if err := json.NewEncoder(b.env.Stdout).Encode(out); err != nil {
			return err
		}
		table = b.env.Stderr
	}
	if judged != nil {
		if err := replay.WriteEvaluations(table, judged); err != nil || len(results) == 0 {
			return err
		}
		if _, err := io.WriteString(table, "\n"); err != nil {
			return err
		}
	}
	return replay.WriteRuns(table, results)
}

// encoded returns the rounds of the data in a row order, made once for all models that
// look at the same of them. It is safe for concurrent use.
func (b *backtest) encoded(env replay.Environment, order int, m *model.Model) *replay.Rounds {
	b.mu.Lock()
	defer b.mu.Unlock()
	key := roundsKey{order, replay.LooksAtActions(m)}
	if b.rounds[key] == nil {
		if b.rounds == nil {
			b.rounds = map[roundsKey]*replay.Rounds{}
		}
		b.rounds[key] = replay.EncodeRoundsFor(replay.Order(env, order, b.source.seed), m)
	}
	return b.rounds[key]
}

type roundsKey struct {
	order    int
	featured bool // contexts hold the features of actions
}

// trials lays out the runs: learners, then delays, then row orders.
func (b *backtest) trials(env replay.Environment) ([]*replay.Trial, error) {
	if len(b.learners) == 0 {
		b.learners = []string{""}
		if b.source.model == "" {
			b.learners[0] = "dafa"
		}
	}
	if len(b.delays) == 0 {
		b.delays = []string{""}
	}
	var trials []*replay.Trial
	var said []string
	for _, learner := range b.learners {
		p, err := b.source.policy(env, learner)
		if err != nil {
			return nil, err
		}
		if cost := p.model.Cost().String(); !slices.Contains(said, cost) {
			said = append(said, cost)
			fmt.Fprintln(b.env.Stderr, cost)
		}
		for _, spec := range b.delays {
			d, err := b.source.delays(env, spec)
			if err != nil {
				return nil, err
			}
			for i := range b.orders {
				trials = append(trials, &replay.Trial{Rounds: b.encoded(env, i, p.model), Order: i, Delays: d, Model: p.model, Files: p.files,
					Label: p.label, Seed: b.source.seed})
			}
		}
	}
	return trials, nil
}

// play runs the trials in parallel over the cores.
func (b *backtest) play(ctx context.Context, trials []*replay.Trial) ([]replay.Result, error) {
	total := int64(0)
	for _, t := range trials {
		total += int64(t.Rounds.Len())
	}
	bar := newProgress(b.env.Stderr, total, "backtest")
	defer bar.finish()
	results := make([]replay.Result, len(trials))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, t := range trials {
		g.Go(func() error {
			last := 0
			r, err := t.Run(ctx, func(done int) {
				bar.add(int64(done - last))
				last = done
			})
			if err != nil {
				return err
			}
			bar.add(int64(t.Rounds.Len() - last))
			results[i] = *r
			return nil
		})
	}
	return results, g.Wait()
}
