package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"hindsight/internal/daemon"
	"hindsight/internal/delay"
	"hindsight/internal/fit"
	"hindsight/internal/loop"
	"hindsight/internal/model"
	"hindsight/internal/replay"
	"hindsight/internal/report"
	"hindsight/internal/whole"
	"hindsight/internal/words"
	"hindsight/pkg/codec"
)

// fitting holds the flags of fit.
type fitting struct {
	env     *daemon.Env
	source  source
	options fit.Options
	data    replay.FitOptions
	over    string
	out     string
	play    bool
}

func fitCommand(env *daemon.Env) *cobra.Command {
	f := &fitting{env: env, options: fit.Defaults()}
	cmd := &cobra.Command{
		Use:   "fit",
		Short: "Build a finite class of functions from a log, for the Hedge oracle",
		Long: `Build a finite class of functions from a log, for the Hedge oracle.

Ridge and logistic regressions and small trees are fitted to the first rows, each to a
bootstrap sample, over some of the columns, with some regularisation. If the log has
only the loss of the action played, each row is weighted by 1/propensity. Of functions
that predict nearly the same, one is kept. The rows held out measure each function, and
show how many of them the data do not refute. Later rows are played: by the class under the default learner,
and for comparison by the default learners over features.

A function has coefficients, or a loss per leaf, for each action by its name. With --over
features it is shared by all actions, and uses the context, the features of the action,
and their products. Such a class knows actions that it never saw.`,
		Args: daemon.NoArguments,
		Example: `  replayer fit --data pendigits.csv --fit-rows 2000 --out digits.class.jsonl
  replayer fit --data open_bandit_men --fit-rows 5000 --kinds ridge,trees --functions 20
  replayer fit --data personalizer.dsjson --over features
  replayer fit --data embedded:shop-data --name shop
  # with oracle: {kind: hedge, class: digits.class.jsonl} in digits.yaml:
  replayer backtest --data pendigits.csv --model digits.yaml --window 200`,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context()) },
	}
	f.source.flags(env, cmd.Flags(), new(logAccess))
	cmd.Flags().StringVar(&f.source.model, "model", "", "model file with the actions and the range of the log")
	g, o := cmd.Flags(), &f.options
	g.IntVar(&f.data.Rows, "fit-rows", 0, "number of first rows to fit to and to hold out; 0: all rows, and none is "+
		"played")
	g.IntVar(&f.data.Columns, "columns", 200, "maximum columns; of texts the most frequent values")
	g.StringVar(&f.over, "over", formatAuto, "identify actions by name, by features, or auto (features if the log has "+
		"them)")
	g.IntVar(&f.data.Shared, "action-columns", 50, "maximum columns for features of actions, the most frequent ones; "+
		"with a fixed set of actions a name is one, too")
	g.BoolVar(&f.data.Bandit, "bandit", false, "use only one uniformly drawn action's loss per row, to simulate "+
		"logged data")
	g.IntVar(&o.Functions, "functions", o.Functions, "functions of the class")
	g.StringSliceVar(&o.Kinds, "kinds", o.Kinds, "kinds of functions, taken in turn: ridge, logistic, trees")
	g.Float64Var(&o.HoldOut, "hold-out", o.HoldOut, "share of the rows that is held out for measuring, the last ones")
	g.Float64Var(&o.Distance, "distance", o.Distance, "drop functions that predict within this distance of another, "+
		"in root mean square")
	g.Float64Var(&o.Alpha, "alpha", o.Alpha, "level of the set of functions that survive the held-out rows")
	most := float64(codec.MaxFeatures)
	daemon.Bounds{"rounds": {0, 1e7}, "fit-rows": {0, 1e7}, "columns": {1, most}, "action-columns": {1, most},
		"functions": {1, 1e4}, "hold-out": {.05, .9}, "distance": {0, 1}, "alpha": {0, 1}}.Set(g)
	g.BoolVar(&f.play, "play", true, "play the rows that were not used")
	g.StringVar(&f.out, "out", "class.jsonl", "class file to write")
	return cmd
}

func (f *fitting) run(ctx context.Context) error {
	o := &f.options
	o.Seed, f.data.Seed = f.source.seed, f.source.seed
	if err := o.Validate(); err != nil {
		return daemon.Usagef("--functions, --kinds, --hold-out, --distance, --alpha: %v", err)
	}
	env, err := f.source.open(ctx)
	if err != nil {
		return err
	}
	if err := f.choose(env); err != nil {
		return err
	}
	data, err := replay.FitData(env, f.data)
	if err != nil {
		return err
	}
	bar := newProgress(f.env.Stderr, int64(o.Functions), "fit")
	o.Progress = bar.steps()
	class, err := fit.Fit(ctx, data, *o)
	bar.finish()
	if err != nil {
		return err
	}
	file := class.File.Append(nil)
	if _, err := model.ParseClass(f.out, file); err != nil {
		return err
	}
	if err := whole.WriteText(f.out, string(file)); err != nil {
		return err
	}
	fitted := &report.Fitted{File: f.out, Bytes: len(file), Class: class, Columns: len(data.Features),
		Actions: len(data.Actions), OfActions: len(data.ActionFeatures),
		Share: float64(class.Surviving) / float64(len(class.Functions))}
	if rest := env.Len() - f.data.Rows; f.play && f.data.Rows > 0 && rest > 0 {
		if fitted.Played, err = f.plays(ctx, env, file); err != nil {
			return err
		}
		fitted.PlayedRows = rest
	}
	return tell(f.env, f.source.json, fitted, fitted.Page(), words.NoLimit)
}

// choose decides whether functions are shared by all actions.
func (f *fitting) choose(env *replay.Rounds) error {
	featured := env.ActionsBringFeatures()
	switch in := env.Intake; {
	case !slices.Contains([]string{formatAuto, "names", "features"}, f.over):
		return daemon.Usagef("--over %q: expected names, features or auto", f.over)
	case f.over == "features" && !featured:
		return daemon.Usagef("--over features: the actions of %s have none; leave it out, or use --over names",
			env.Name)
	case f.over == formatAuto && !(featured && in != nil && in.Featured), f.over == "names":
		f.data.Shared = 0
		if featured {
			fmt.Fprintln(f.env.Stderr, "the actions have features, which a class over names does not look at: --over "+
				"features does")
		}
	}
	return nil
}

// plays plays the rows that were not fitted to, without delay: the class, and learners
// over features that start there, or that start with the first row.
func (f *fitting) plays(ctx context.Context, env *replay.Rounds, class []byte) ([]report.Played, error) {
	used := f.data.Rows
	rest := replay.Tail(env, used)
	file := filepath.Base(f.out)
	hedge := f.trial(rest, model.Oracle{Kind: model.Hedge, Eta: .5, Class: file}, map[string][]byte{file: class})
	trials := []*replay.Trial{hedge}
	names := []string{"the class"}
	kinds := []string{model.Linear, model.Auto}
	if f.data.Shared > 0 {
		kinds = []string{model.Hybrid}
	}
	for _, kind := range kinds {
		o, err := model.ParseOracle(kind)
		if err != nil {
			return nil, err
		}
		trials, names = append(trials, f.trial(rest, o, nil)), append(names, kind+", fresh")
		if env.Log == nil { // what a log says of the first rows cannot be taken from what it says of all
			trials = append(trials, f.trial(env, o, nil), f.trial(replay.Head(env, used), o, nil))
			names = append(names, kind+", from the first row", "")
		}
	}
	runs := &campaign{env: f.env, trials: trials}
	results, err := runs.play(ctx)
	if err != nil {
		return nil, err
	}
	var out []report.Played
	for i := range results {
		p := report.NewPlayed(names[i], &results[i])
		switch {
		case names[i] == "":
			continue
		case results[i].Rounds == int64(rest.Len()):
		default: // the run over all rows, less that over the first, which is its beginning to the bit
			p.MeanLoss, p.Matched = behind(&results[i], &results[i+1]), nil
		}
		out = append(out, p)
	}
	return out, nil
}

// behind returns the mean loss of the rounds of all that are not those of its beginning;
// nil where some of them have none.
func behind(all, beginning *replay.Result) *float64 {
	if all.MeanLoss == nil || beginning.MeanLoss == nil || all.Matched != nil {
		return nil
	}
	n, m := float64(all.Rounds), float64(beginning.Rounds)
	mean := (*all.MeanLoss*n - *beginning.MeanLoss*m) / (n - m)
	return &mean
}

// trial is the default learner over an oracle.
func (f *fitting) trial(env *replay.Rounds, o model.Oracle, files map[string][]byte) *replay.Trial {
	m, _ := replay.ModelFor(env, modelName, model.Learner{Kind: model.DAFA}, loop.Window{Rounds: 200})
	m.Oracle = o
	m.DefaultOrder()
	m.MaxFeatures = max(m.MaxFeatures, env.Columns)
	m.Resolve(env.Columns, len(env.Actions))
	none, _ := delay.Parse("none", delay.Options{Seed: f.source.seed}) // it parses
	return &replay.Trial{Rounds: env.For(m), Delays: none, Model: m, Files: files, Label: o.Kind, Seed: f.source.seed}
}
