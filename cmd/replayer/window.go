package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"hindsight/internal/daemon"
	"hindsight/internal/loop"
	"hindsight/internal/model"
	"hindsight/internal/replay"
	"hindsight/internal/report"
	"hindsight/internal/whole"
)

type window struct {
	env     *daemon.Env
	source  source
	showing showing
	learner string
	delays  string
	windows []string
	outcome string // whose windows are priced, of a model that names its outcomes
	seeds   int
	out     string
}

func windowCommand(env *daemon.Env) *cobra.Command {
	w := &window{env: env}
	cmd := &cobra.Command{
		Use:   "window",
		Short: "Say what each window would cost, and propose one",
		Long: `Say what each window would cost, and propose one.

A round waits for its outcome for the window. A long window holds back later rounds; a
short one skips rounds whose outcomes are merely late. Each window is backtested with
the same seeds: rounds skipped, delay of feedback, certificate, and loss.

If the model names its outcomes, --outcome says whose window is priced: "skipped" and
"late" then count that outcome. The other outcomes keep their windows; if the data has
no times, their windows are the longest one priced.`,
		Args: daemon.NoArguments,
		Example: `  replayer window --delays pareto:1.5,10
  replayer window --data pendigits.csv --delays lognormal:20,1.5 --windows 50,100,200,400
  replayer window --data flights.csv --time-column decision_ts --outcome-time-column outcome_ts \
    --action-column carrier --reward-column on_time --features origin,dest --out windows`,
		RunE: func(cmd *cobra.Command, _ []string) error { return w.run(cmd.Context()) },
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return daemon.Usagef("%w; the windows to price are given by --windows", err)
	})
	w.source.flags(env, cmd.Flags(), new(logAccess))
	w.source.runFlags(cmd.Flags(), false)
	w.source.learnerFlags(cmd.Flags(), &w.learner, &w.delays)
	w.showing.htmlFlag(cmd.Flags())
	cmd.Flags().StringSliceVar(&w.windows, "windows", nil,
		"windows to price: rounds, or durations for data with times; default: a ladder over the delays of the data")
	cmd.Flags().StringVar(&w.outcome, "outcome", "", "named outcome whose windows are priced")
	cmd.Flags().IntVar(&w.seeds, "seeds", 5, "seeds per window: of contexts, losses, delays and draws")
	daemon.Bounds{"seeds": {1, 1e4}}.Set(cmd.Flags())
	cmd.Flags().StringVar(&w.out, "out", "", "folder for window.json, window.csv and window.png")
	return cmd
}

func (w *window) run(ctx context.Context) error {
	windows, runs, err := w.play(ctx)
	if err != nil {
		return err
	}
	w.source.markInvented(runs[0])
	prices := replay.PriceWindows(windows, w.outcome, runs)
	if err := w.save(prices, &runs[0][0]); err != nil {
		return err
	}
	p, err := w.showing.parameters(w.env, &w.source, []string{w.delays}, nil)
	if err != nil {
		return err
	}
	if err := w.showing.writePage(w.env, report.Windows(&runs[0][0], w.seeds, prices, p)); err != nil {
		return err
	}
	return tell(w.env, w.source.json, w.priced(prices), report.WindowPrices(&runs[0][0], w.seeds, prices), mostWidth)
}

// priced is what window prints as JSON.
func (w *window) priced(prices []replay.WindowPrice) any {
	return struct {
		Seeds   int                  `json:"seeds"`
		Windows []replay.WindowPrice `json:"windows"`
	}{w.seeds, prices}
}

// play backtests every window with every seed, in parallel over the cores.
func (w *window) play(ctx context.Context) ([]loop.Window, [][]replay.Result, error) {
	env, err := w.source.open(ctx)
	if err != nil {
		return nil, nil, err
	}
	windows, err := w.choose(env)
	if err != nil {
		return nil, nil, err
	}
	runs := make([][]replay.Result, len(windows))
	for i := range runs {
		runs[i] = make([]replay.Result, w.seeds)
	}
	bar := newProgress(w.env.Stderr, int64(env.Len()*w.seeds*len(windows)), "window")
	defer bar.finish()
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for k := range w.seeds {
		s := w.source
		s.seed += uint64(k)
		if w.outcome == "" || !env.Timed() {
			s.window = model.FormatWindow(windows[len(windows)-1])
		}
		if env, err = s.open(ctx); err != nil {
			return nil, nil, err
		}
		p, err := s.policy(env, w.learner)
		if err != nil {
			return nil, nil, err
		}
		d, err := s.delays(env, p.model, w.delays)
		if err != nil {
			return nil, nil, err
		}
		rounds := env.For(p.model)
		for i := range windows {
			m, label := p.model.Clone(), p.label
			if m.Window = windows[i]; w.outcome != "" {
				label += ", window of " + w.outcome
				err := setWindow(m, w.outcome+"="+model.FormatWindow(windows[i]))
				if err == nil {
					err = m.Validate()
				}
				if err != nil {
					return nil, nil, daemon.Usagef("--windows: %v", err)
				}
			} else if m.Named != nil {
				return nil, nil, daemon.Usagef("the model names its outcomes, which have windows of their own: say "+
					"whose is to be priced, for example --outcome %s", m.Named[0].Name)
			}
			t := &replay.Trial{Rounds: rounds, Delays: d, Model: m, Files: p.files, Label: label, Seed: s.seed}
			g.Go(func() error {
				r, err := t.Run(ctx, nil)
				if err != nil {
					return err
				}
				bar.add(int64(t.Rounds.Len()))
				runs[i][k] = *r
				return nil
			})
		}
	}
	return windows, runs, g.Wait()
}

// choose returns the windows to price, growing.
func (w *window) choose(env *replay.Rounds) ([]loop.Window, error) {
	if len(w.windows) == 0 {
		if w.outcome != "" && env.Timed() {
			p, err := w.source.policy(env, w.learner)
			if err != nil {
				return nil, err
			}
			env = env.For(p.model)
		}
		return replay.DefaultWindows(env, w.outcome), nil
	}
	var out []loop.Window
	for _, text := range w.windows {
		win, err := model.ParseWindow(strings.TrimSpace(text))
		if err != nil {
			return nil, daemon.Usagef("--windows: %v", err)
		}
		if n := len(out); n > 0 && (win.Rounds <= out[n-1].Rounds && win.Nanos <= out[n-1].Nanos ||
			(win.Rounds > 0) != (out[0].Rounds > 0)) {
			return nil, daemon.Usagef("--windows: %s after %s: give windows of one kind, each longer than the one "+
				"before", text, model.FormatWindow(out[n-1]))
		}
		out = append(out, win)
	}
	if out[0].Rounds == 0 && !env.Timed() {
		return nil, daemon.Usagef("--windows %s: this data has no times; give windows in rounds", w.windows[0])
	}
	return out, nil
}

// save writes the files of --out.
func (w *window) save(prices []replay.WindowPrice, first *replay.Result) error {
	if w.out == "" {
		return nil
	}
	if err := os.MkdirAll(w.out, 0o755); err != nil {
		return err
	}
	text, err := json.MarshalIndent(w.priced(prices), "", "  ")
	if err != nil {
		return err
	}
	if err := whole.WriteText(filepath.Join(w.out, "window.json"), string(text)+"\n"); err != nil {
		return err
	}
	if err := report.WindowFile(prices).Save(w.out); err != nil {
		return err
	}
	return report.WindowChart(prices, first).Save(filepath.Join(w.out, "window.png"))
}
