package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"hindsight/internal/daemon"
	"hindsight/internal/delay"
	"hindsight/internal/judge"
	"hindsight/internal/loop"
	"hindsight/internal/model"
	"hindsight/internal/replay"
	"hindsight/internal/report"
	"hindsight/internal/whole"
)

// showing holds the flags of reports.
type showing struct {
	html, csv string
	sweep     string
}

func (s *showing) htmlFlag(f *pflag.FlagSet) {
	f.StringVar(&s.html, "report", "", "HTML file for the report, with charts; it loads nothing")
}

func (s *showing) flags(f *pflag.FlagSet) {
	s.htmlFlag(f)
	f.StringVar(&s.csv, "csv", "", "folder for the same figures as CSV files")
}

// on reports whether there is to be a report.
func (s *showing) on() bool { return s.html != "" || s.csv != "" }

// writePage writes a report, if one is asked for, and says where it is.
func (s *showing) writePage(env *daemon.Env, page *report.Page) error {
	if s.html == "" {
		return nil
	}
	if err := whole.Write(s.html, page.Write); err != nil {
		return err
	}
	fmt.Fprintln(env.Stderr, "report:", s.html)
	return nil
}

// write writes what a backtest or an injection found.
func (s *showing) write(env *daemon.Env, r *report.Results) error {
	if s.csv != "" {
		if err := r.WriteCSV(s.csv); err != nil {
			return err
		}
	}
	return s.writePage(env, r.Page())
}

// parameters says what a report is made of; nil if there is none.
func (s *showing) parameters(env *daemon.Env, src *source, delays, policies []string) (*report.Parameters, error) {
	if !s.on() {
		return nil, nil
	}
	p := &report.Parameters{Command: strings.Join(env.Args, " "), Version: daemon.Version(),
		Made: time.Now().UTC().Truncate(time.Second), Seed: src.seed, Inputs: []report.Input{}}
	inputs, err := src.inputs(delays, policies)
	if err != nil {
		return nil, err
	}
	read := map[string]bool{}
	for _, in := range inputs {
		if read[in[1]] {
			continue
		}
		read[in[1]] = true
		files, err := report.ReadInput(in[0], in[1])
		if err != nil {
			return nil, err
		}
		p.Inputs = append(p.Inputs, files...)
	}
	return p, nil
}

// inputs are the files that are read, each with its role.
func (s *source) inputs(delays, policies []string) (out [][2]string, err error) {
	add := func(role, path string) { out = append(out, [2]string{role, path}) }
	if s.data != "" && s.data != "-" && !isTopics(s.data) {
		add("data", s.data)
		if items := s.items(); items != "" {
			add("items", items)
		}
	}
	if s.mapping != "" {
		add("mapping", s.mapping)
	}
	models := []string{s.model}
	for _, spec := range policies {
		switch kind, file, _ := strings.Cut(judge.Mixed(spec), ":"); kind {
		case "model":
			models = append(models, file)
		case "table":
			add("probabilities", file)
		}
	}
	for _, file := range models {
		if file == "" {
			continue
		}
		add("model", file)
		own := *s
		own.model = file
		m, err := own.parseModel()
		if err != nil {
			return nil, err
		}
		for _, name := range m.Files() {
			add("file of the model", filepath.Join(filepath.Dir(file), name))
		}
	}
	for _, spec := range delays {
		for _, term := range strings.Split(spec, "+") {
			if file, ok := strings.CutPrefix(strings.TrimSpace(term), "recorded:"); ok {
				add("delays", file)
			}
		}
	}
	return out, nil
}

// items is the file of items that is read beside one of Open Bandit data, "" if none is: of a folder
// each file is an input.
func (s *source) items() string {
	if s.reading.opened == nil {
		return ""
	}
	if in := (*s.reading.opened).Intake; in == nil || in.Format != "obd" {
		return ""
	}
	items := filepath.Join(filepath.Dir(s.data), "item_context.csv")
	if _, err := os.Stat(items); err != nil {
		return ""
	}
	if info, err := os.Stat(s.data); err != nil || info.IsDir() {
		return ""
	}
	return items
}

// show writes the report of an injection, if one is asked for.
func (in *injection) show(result *replay.Result) (err error) {
	if !in.showing.on() {
		return nil
	}
	r := &report.Results{Runs: []replay.Result{*result}, Intake: in.environment.Intake,
		Data: replay.Describe(in.environment)}
	if r.Parameters, err = in.showing.parameters(in.env, &in.source, []string{in.delays}, nil); err != nil {
		return err
	}
	return in.showing.write(in.env, r)
}

// Limits of a sweep over delays.
const (
	sweepRounds = 20_000
	sweepOrders = 3
	noSweep     = "none"
)

func (s *showing) sweepFlag(f *pflag.FlagSet) {
	f.StringVar(&s.sweep, "sweep", "", fmt.Sprintf("for a report: delays, in rounds, at which each learner is played "+
		"to show value over delay, or none; default 0,1,3,10,… up to a tenth of the first %d rounds, in %d row orders",
		sweepRounds, sweepOrders))
}

// sweepDelays are the delays of the sweep, growing; none if there is no report.
func (s *showing) sweepDelays(rounds int) (out []int64, err error) {
	switch {
	case !s.on() || s.sweep == noSweep:
		return nil, nil
	case s.sweep == "":
		return replay.DefaultSweep(rounds), nil
	}
	for _, text := range strings.Split(s.sweep, ",") {
		d, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
		if err != nil || d < 0 || d > maxRounds || len(out) > 0 && d <= out[len(out)-1] {
			return nil, daemon.Usagef("--sweep %q: expected delays in rounds that grow, for example 0,10,100, or none",
				s.sweep)
		}
		out = append(out, d)
	}
	return out, nil
}

// swept plays each learner at each delay of the sweep. Interrupted, it returns what it has
// of the learners that are finished, and the context's error.
func (b *backtest) swept(ctx context.Context, env *replay.Rounds) (out []replay.SweepPoint, err error) {
	delays, err := b.showing.sweepDelays(min(env.Len(), sweepRounds))
	if err != nil || len(delays) == 0 {
		return nil, err
	}
	policies, err := b.cast(env)
	if err != nil {
		return nil, err
	}
	for _, p := range policies {
		m := p.model.Clone()
		if err := setWindow(m, model.FormatWindow(loop.Window{Rounds: max(m.Window.Rounds,
			delays[len(delays)-1]+1)})); err != nil {
			return nil, err
		}
		var rounds [sweepOrders]*replay.Rounds // of an order, the same at each delay
		for i := range rounds {
			head := replay.Head(replay.Order(env, i, b.source.seed), sweepRounds)
			rounds[i] = head.For(m)
		}
		var trials []*replay.Trial
		for _, d := range delays {
			constant, err := delay.Parse(fmt.Sprintf("constant:%d", d), delay.Options{Seed: b.source.seed})
			if err != nil {
				return nil, err
			}
			for i := range rounds {
				trials = append(trials, &replay.Trial{Rounds: rounds[i], Order: i, Delays: constant, Model: m,
					Files: p.files, Label: p.label, Seed: b.source.seed})
			}
		}
		results, err := (&campaign{env: b.env, what: "runs of the sweep of " + p.label, trials: trials,
			journal: b.journal}).play(ctx)
		if err != nil {
			return out, err
		}
		byDelay := slices.Collect(slices.Chunk(results, sweepOrders))
		out = append(out, replay.NewSweep(p.label, delays, byDelay)...)
	}
	return out, nil
}

// describe adds what a report says of the data and of the command.
func (b *backtest) describe(env *replay.Rounds, r *report.Results) (err error) {
	if b.showing.on() {
		r.Summarise()
		r.Data = replay.Describe(env)
		r.Parameters, err = b.showing.parameters(b.env, &b.source, b.delays, b.policies.specs)
	}
	return err
}
