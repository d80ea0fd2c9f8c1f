package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"hindsight/internal/daemon"
	"hindsight/internal/dataset"
	"hindsight/internal/judge"
	"hindsight/internal/model"
	"hindsight/internal/replay"
	"hindsight/internal/report"
)

type backtest struct {
	env      *daemon.Env
	source   source
	learners []string
	delays   []string
	rewards  []string
	budgets  []string
	orders   int
	resume   string
	policies policies
	showing  showing

	envNamed bool            // by the flag
	journal  *replay.Journal // of what is finished; nil: none is kept
	intake   *dataset.Intake // of the data
	mu       sync.Mutex
	rounds   map[roundsKey]*replay.Rounds
}

func backtestCommand(env *daemon.Env) *cobra.Command {
	b := &backtest{env: env}
	b.policies.trained.env = env
	cmd := &cobra.Command{
		Use:   "backtest",
		Short: "Play learners against delays and row orders offline, with the code that runs live",
		Long: `Play learners against delays and row orders offline, with the code that runs live.

Every learner meets every kind of delay in every row order, in parallel over the cores.
The same flags give the same bits. Ctrl-C prints the finished runs; with --resume FILE
the same command continues from there, also after a crash.

A log with propensities also judges policies: eight off-policy estimators of what each
would have earned, with warnings where they are not to be trusted.

Rows of a log lie in unnamed temporary files in TMPDIR (else /tmp), about 50 bytes a row
and the contexts. Memory does not grow with the log.`,
		Args: daemon.NoArguments,
		Example: `  replayer backtest
  replayer backtest --data pendigits.csv --orders 5
  replayer backtest --data flights.csv --time-column decision_ts --outcome-time-column outcome_ts \
    --action-column carrier --reward-column on_time --features origin,dest,distance
  replayer backtest --data open_bandit_men --policy uniform --policy always:7 --policy eps:0.1,hash:user_feature_0
  replayer backtest --learner dafa --learner egreedy:0.05 --delays none --delays exp:50 --json
  replayer backtest --data pendigits.csv --orders 20 --resume runs.jsonl
  replayer backtest --data pendigits.csv --orders 5 --report out.html --csv out`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			b.envNamed = cmd.Flags().Changed("env")
			return b.run(cmd.Context())
		},
	}
	b.source.flags(env, cmd.Flags(), &b.policies.trained.logAccess)
	b.source.runFlags(cmd.Flags(), true)
	grouped(cmd.Flags(), "Learners and delays", func() {
		cmd.Flags().StringArrayVar(&b.learners, "learner", nil,
			"learner; may be repeated (default dafa, or the model file's)")
		cmd.Flags().StringArrayVar(&b.delays, "delays", nil, "delays of outcomes in later rounds; may be repeated "+
			"(default: the log's own, else lognormal:20,1.5); of named outcomes exp:50,cost=none,quality=constant:100")
		cmd.Flags().StringArrayVar(&b.rewards, "reward", nil, "formula of named outcomes instead of the model "+
			"file's, for example 'quality - 20*cost'; may be repeated, to compare. Of data with named outcomes it "+
			"needs no model file")
		cmd.Flags().StringArrayVar(&b.budgets, "budget", nil, "what a budget of the model file allows instead: "+
			"NAME=X,Y,… or NAME=LOW..HIGH, seven steps; may be repeated")
		cmd.Flags().IntVar(&b.orders, "orders", 1, "row orders: order 0 is the file's, the others are shuffles by "+
			"the seed")
	})
	cmd.Flags().StringVar(&b.resume, "resume", "", "file for finished runs, a report's sweep and judged policies; a "+
		"repeated command reuses them")
	daemon.Bounds{"orders": {1, 1e4}}.Set(cmd.Flags())
	grouped(cmd.Flags(), "Policies", func() { b.policies.flags(cmd.Flags()) })
	b.showing.flags(cmd.Flags())
	b.showing.sweepFlag(cmd.Flags())
	return cmd
}

func (b *backtest) run(ctx context.Context) error {
	if b.policies.trained.log != "" && b.source.data == "" && !b.envNamed {
		b.source.data = b.policies.trained.log
	}
	for _, spec := range b.learners { // a slip is told before the data are read
		p := &policy{label: spec, model: &model.Model{Oracle: model.Oracle{Kind: model.Hedge}}}
		if err := b.source.setLearner(p, 1); err != nil {
			return err
		}
	}
	env, err := b.source.open(ctx)
	if err != nil {
		return err
	}
	if b.resume != "" {
		if b.journal, err = replay.OpenJournal(b.resume, daemon.Version()); err != nil {
			return daemon.Usagef("--resume: %v", err)
		}
		defer b.journal.Close()
	}
	b.intake = env.Intake
	judged, err := b.judge(ctx, env)
	results := []replay.Result{}
	if err == nil && len(b.players()) > 0 {
		results, err = b.playAll(ctx, env)
		b.source.markInvented(results)
	}
	finished := len(results) > 0 || judged != nil && len(judged.Policies) > 0
	if err != nil && !(errors.Is(err, context.Canceled) && finished) {
		return err
	}
	found := &report.Results{Intake: b.intake, Runs: results}
	if judged != nil {
		found.Policies, found.Estimators = judged.Policies, &judged.Settings
	}
	if derr := b.describe(env, found); derr != nil {
		return derr
	}
	if err == nil && b.showing.on() && len(results) > 0 {
		found.Sweep, err = b.swept(ctx, env)
	}
	if found.Interrupted = errors.Is(err, context.Canceled); err != nil && !found.Interrupted {
		return err
	}
	if werr := b.write(found, judged); werr != nil {
		return werr
	}
	return err // interrupted, or nil
}

// playAll plays all runs; interrupted, it returns those that are finished.
func (b *backtest) playAll(ctx context.Context, env *replay.Rounds) ([]replay.Result, error) {
	trials, err := b.trials(env)
	if err != nil {
		return nil, err
	}
	return (&campaign{env: b.env, what: "runs", trials: trials, journal: b.journal}).play(ctx)
}

// write writes the results of runs and what a log says of policies, each if there is any.
func (b *backtest) write(found *report.Results, judged *judge.Evaluations) error {
	if b.showing.on() {
		if err := b.showing.write(b.env, found); err != nil {
			return err
		}
	}
	table, err := tables(b.env, b.source.json, found)
	if err != nil {
		return err
	}
	width, terminal := screen(table)
	if judged != nil {
		if err := report.Judged(judged, terminal).WriteText(table, width); err != nil || len(found.Runs) == 0 {
			return err
		}
		fmt.Fprintln(table)
	}
	return report.Runs(found.Runs, width).WriteText(table, width)
}

// encoded returns the rounds of the data in a row order, made once for all models that
// look at the same of them. It is safe for concurrent use.
func (b *backtest) encoded(env *replay.Rounds, order int, m *model.Model) *replay.Rounds {
	b.mu.Lock()
	defer b.mu.Unlock()
	key := roundsKey{order, replay.LooksAtActions(m), ""}
	if m.Named != nil {
		key.named = string(m.Canonical())
	}
	if b.rounds[key] == nil {
		if b.rounds == nil {
			b.rounds = map[roundsKey]*replay.Rounds{}
		}
		b.rounds[key] = replay.Order(env, order, b.source.seed).For(m)
	}
	return b.rounds[key]
}

type roundsKey struct {
	order    int
	featured bool   // contexts hold the features of actions
	named    string // the model, if it names outcomes
}

// player is a learner that is played: a specification over a model file, each of which may be "".
type player struct{ spec, model string }

// target is the player as a policy that is judged on a log. A learner over the file of
// --model has it from there.
func (l player) target() string {
	if l.spec == "" {
		return "model:" + l.model
	}
	return "learner:" + l.spec
}

// players are the learners of --learner and those that --policy names; where neither
// says anything that of the model file, or dafa.
func (b *backtest) players() []player {
	var out []player
	for _, spec := range b.learners {
		out = append(out, player{spec, b.source.model})
	}
	for _, text := range b.policies.specs {
		switch kind, rest, _ := strings.Cut(text, ":"); kind {
		case "learner":
			out = append(out, player{rest, b.source.model})
		case "model":
			out = append(out, player{"", rest})
		}
	}
	switch {
	case len(out) > 0 || len(b.policies.specs) > 0:
	case b.source.model == "":
		out = append(out, player{model.DAFA, ""})
	default:
		out = append(out, player{"", b.source.model})
	}
	return slices.Compact(out)
}

// cast makes the learners of all players. Model files that would share a label are told apart by their names.
func (b *backtest) cast(env *replay.Rounds) ([]*policy, error) {
	players := b.players()
	out, labels := make([]*policy, len(players)), map[string]int{}
	for i, l := range players {
		source := b.named()
		source.model = l.model
		p, err := source.policy(env, l.spec)
		if err != nil {
			return nil, err
		}
		out[i] = p
		labels[p.label]++
	}
	for i, l := range players {
		if labels[out[i].label] > 1 && l.spec == "" {
			out[i].label = l.target()
		}
	}
	return b.variants(out)
}

// trials lays out the runs: learners, then delays, then row orders.
func (b *backtest) trials(env *replay.Rounds) ([]*replay.Trial, error) {
	if len(b.delays) == 0 {
		b.delays = []string{""}
	}
	if b.showing.on() && !slices.Contains(b.delays, "none") {
		b.delays = append(b.delays, "none") // to compare with
	}
	policies, err := b.cast(env)
	if err != nil {
		return nil, err
	}
	var trials []*replay.Trial
	var said []string
	for _, p := range policies {
		if cost := p.model.Cost(); !slices.Contains(said, cost) {
			said = append(said, cost)
			fmt.Fprintln(b.env.Stderr, cost)
		}
		for k, spec := range b.delays {
			d, err := b.source.delays(env, p.model, spec)
			if err != nil {
				return nil, err
			}
			for i := range b.orders {
				trials = append(trials, &replay.Trial{Rounds: b.encoded(env, i, p.model), Order: i, Delays: d,
					Model: p.model, Files: p.files,
					Label: p.label, Seed: b.source.seed, DefaultWindow: p.defaultWindow, Contexts: b.showing.on() &&
						k == 0 && i == 0})
			}
		}
	}
	return trials, nil
}
