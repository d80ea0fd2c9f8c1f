package main

import (
	"context"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"hindsight/internal/bounded"
	"hindsight/internal/daemon"
	"hindsight/internal/delay"
	"hindsight/internal/logs"
	"hindsight/internal/loop"
	"hindsight/internal/model"
	"hindsight/internal/replay"
	"hindsight/pkg/oracle"
)

// defaultRounds is the length of an environment that has none of its own.
const defaultRounds = 20_000

// maxRounds is more than can be played.
const maxRounds = 1e9

// anySeed says that every number is a seed.
var anySeed = [2]float64{0, math.MaxUint64}

// source holds the flags that name what is replayed: an environment or a file, and the model that decides.
type source struct {
	env, data, model string
	format           string
	reading          reading
	columnFlags
	twists []string
	oracle string
	accept float64
	rounds int
	window string
	order  string
	reward string // a formula in place of the model's; "": the model's

	modelWindow bool // the model file gives a window

	seed uint64
	json bool
}

// dataFlags are those of verbs that read a log.
func (s *source) dataFlags(env *daemon.Env, f *pflag.FlagSet, a *logAccess) {
	grouped(f, "Data", func() {
		f.StringVar(&s.data, "data", "", "log: a file or a folder, plain, gzip or zstd, or - for standard input, in "+
			"any format that replayer convert reads; a labelled CSV (label first, n_ numbers, c_ categories); a CSV "+
			"whose columns are named; Open Bandit data; or the topics of a live system: embedded:DIR, nats://… or "+
			"kafka://…")
	})
	s.logFlags(env, f, a)
}

// logFlags say how a log is read.
func (s *source) logFlags(env *daemon.Env, f *pflag.FlagSet, a *logAccess) {
	grouped(f, "Data", func() {
		_, inCSV := logs.CSVFormats()
		f.StringVar(&s.format, "format", formatAuto, "format of the log: auto (by content), "+
			strings.Join(inCSV, ", ")+", or one of "+logs.FormatNames())
		s.reading.flags(env, f, a)
		s.columnFlags.flags(f)
	})
}

// flags are those of verbs that play an environment or a log.
func (s *source) flags(env *daemon.Env, f *pflag.FlagSet, a *logAccess) {
	s.dataFlags(env, f, a)
	grouped(f, "Data", func() {
		f.StringVar(&s.env, "env", "sigmoid", "built-in environment, played unless --data is given: sigmoid, close:R, "+
			"needle:S,N,O, and others that replayer list names")
		f.StringArrayVar(&s.twists, "twist", nil,
			"change the environment or the labelled CSV: permute:SHARE, rewards:HIGH,LOW; may be repeated")
		f.IntVar(&s.rounds, "rounds", 0, fmt.Sprintf("rounds to play; 0: the whole file, or %d of an environment",
			defaultRounds))
	})
	f.Uint64Var(&s.seed, "seed", 1, "seed of contexts, losses, delays, row orders and the secret seed")
	f.BoolVar(&s.json, "json", false, "one JSON object on standard output; tables and bars go to standard error")
	s.accept = 1
	daemon.Bounds{"rounds": {0, maxRounds}, "seed": anySeed}.Set(f)
}

// runFlags are those of verbs that play learners; window says whether one is given.
func (s *source) runFlags(f *pflag.FlagSet, window bool) {
	grouped(f, "Learners and delays", func() {
		f.StringVar(&s.model, "model", "", "model file; its learner is used unless --learner is given")
		f.StringVar(&s.oracle, "oracle", "", "oracle with its defaults instead of the environment's or the model "+
			"file's: auto, linear, fourier (linear with 128 random features), shared, hybrid or diagonal")
		f.Float64Var(&s.accept, "accept", 1, "replay of a log with propensities: a row whose action the learner "+
			"draws is accepted with probability min(1, ACCEPT/propensity); 1: always, 0: by the smallest propensity "+
			"(rejection sampling)")
		if window {
			f.StringVar(&s.window, "window", "", "how long a round waits for its outcome: 200 or 200r later rounds, "+
				"or a duration of the file's times; of named outcomes quality=2000,cost=100; default: the model "+
				"file's, else 200")
		}
		f.StringVar(&s.order, "order", "", "order of learning: fifo; early, which learns the first rounds as their "+
			"outcomes come, for oracles over features; or arrival for learners that allow it (exp4dale, or dafa with "+
			"a finite class); default: the model file's, else early where it is allowed, else fifo")
	})
	daemon.Bounds{"accept": {0, 1}}.Set(f)
}

// learnerFlags are those of verbs that play one learner.
func (s *source) learnerFlags(f *pflag.FlagSet, learner, delays *string) {
	grouped(f, "Learners and delays", func() {
		f.StringVar(learner, "learner", "", "learner (default dafa, or the model file's)")
		if delays != nil {
			f.StringVar(delays, "delays", "", "delays of outcomes in later rounds (default: the log's own, else "+
				"lognormal:20,1.5)")
		}
	})
}

// open returns the environment, twisted.
func (s *source) open(ctx context.Context) (*replay.Rounds, error) {
	env, err := s.openPlain(ctx)
	for _, spec := range s.twists {
		if err != nil {
			break
		}
		if env, err = replay.Twist(env, spec, s.seed); err != nil {
			err = daemon.Usagef("--twist: %v", err)
		}
	}
	return env, err
}

func (s *source) openPlain(ctx context.Context) (*replay.Rounds, error) {
	if s.data != "" {
		env, err := s.readOnce(ctx)
		if err != nil {
			return nil, err
		}
		if env, err = replay.Accepting(env, s.accept, s.seed); err != nil {
			return nil, daemon.Usagef("--accept %v", err)
		}
		return replay.Head(env, s.rounds), nil
	}
	n := s.rounds
	if n == 0 {
		n = defaultRounds
	}
	env, err := replay.NewEnvironment(s.env, s.seed, n)
	if err != nil {
		return nil, daemon.Usagef("--env: %v", err)
	}
	return env, nil
}

// defaultDelays are those of inject and backtest: the log's own, or where it has none these.
func (s *source) defaultDelays(env *replay.Rounds) string {
	if env.RecordsDelays() {
		return "recorded"
	}
	if own := env.Delays; own != "" {
		return own
	}
	return "lognormal:20,1.5"
}

// delays reads a specification of delays for an environment.
func (s *source) delays(env *replay.Rounds, m *model.Model, spec string) (*delay.Delays, error) {
	env = env.For(m)
	if spec == "" {
		spec = s.defaultDelays(env)
	}
	columns, err := s.readMapping()
	if err != nil {
		return nil, err
	}
	o := env.DelayOptions(s.seed)
	o.Times = columns
	d, err := delay.Parse(spec, o)
	if err != nil {
		return nil, daemon.Usagef("--delays: %v", err)
	}
	return d, nil
}

// markInvented notes of runs on data that the delays which were played are none of its own.
func (s *source) markInvented(runs []replay.Result) {
	for i := range runs {
		d := &runs[i].Delays
		d.Invented = s.data != "" && d.Spec != "none" && d.Spec != "recorded"
	}
}

// defaultWindow is that of runs without a model file, and of data without times.
var defaultWindow = loop.Window{Rounds: 200}

// policy is a model with the files that it names.
type policy struct {
	label string
	model *model.Model
	files map[string][]byte

	defaultWindow bool // nothing gives a window, and the data has no times
}

// modelName is the name of models made here. It is part of what a draw depends on:
// inject and backtest share it, and with it their draws.
const modelName = "replay"

// policy returns the model for a learner's specification; "" is the model file's.
func (s *source) policy(env *replay.Rounds, spec string) (*policy, error) {
	p := &policy{label: spec}
	if s.model != "" {
		if err := s.readModel(p, env); err != nil {
			return nil, err
		}
	} else {
		p.model, p.files = replay.ModelFor(env, modelName, model.Learner{Kind: model.DAFA}, defaultWindow)
		if env.Delays != "" {
			p.model.Window.Rounds = max(1, int64(env.Len())) // they may be of any length
		}
	}
	if err := s.setReward(p.model, env); err != nil {
		return nil, err
	}
	if s.oracle != "" {
		if err := s.setOracle(p, env); err != nil {
			return nil, err
		}
	}
	if err := s.setLearner(p, env.Len()); err != nil {
		return nil, err
	}
	if err := replay.UsePolicies(p.model, env); err != nil {
		return nil, daemon.Usagef("%v", err)
	}
	switch s.order {
	case "":
		if s.model == "" || p.model.Early { // a flag may have changed the learner
			p.model.DefaultOrder()
		}
	case "fifo", "arrival", "early":
		p.model.Arrival, p.model.Early = s.order == "arrival", s.order == "early"
	default:
		return nil, daemon.Usagef("--order %q: expected fifo, early or arrival", s.order)
	}
	if s.window != "" {
		if err := setWindow(p.model, s.window); err != nil {
			return nil, daemon.Usagef("--window: %v", err)
		}
	}
	if s.window == "" && !s.modelWindow && p.model.Window.Rounds == 0 && !env.Timed() {
		p.model.Window, p.defaultWindow = defaultWindow, true
	}
	if p.model.Window.Rounds == 0 && !env.Timed() {
		return nil, daemon.Usagef("a window of %s: this data has no times; give the window in rounds, for example "+
			"--window 200", model.FormatWindow(p.model.Window))
	}
	if err := p.model.Validate(); err != nil {
		return nil, err
	}
	return p, nil
}

// setWindow gives a model a window, or each outcome that is named one: quality=2000,cost=100.
func setWindow(m *model.Model, text string) error {
	for part := range strings.SplitSeq(text, ",") {
		name, rest, named := strings.Cut(part, "=")
		if !named {
			rest = part
		}
		w, err := model.ParseWindow(rest)
		if err != nil {
			return err
		}
		if !named {
			m.Window = w
		}
		found := !named
		for i := range m.Named {
			if o := &m.Named[i]; !named || o.Name == name {
				o.Window, found = w, true
			}
		}
		if !found {
			return fmt.Errorf("no outcome of the model is called %q", name)
		}
	}
	if m.Named == nil {
		return nil
	}
	return m.SetReward(m.Worth.String()) // the model's window is that of its last outcome
}

// setReward gives the model the formula of the flag, and where no model file names them the outcomes of the data.
func (s *source) setReward(m *model.Model, env *replay.Rounds) error {
	if s.reward != "" {
		set := m.SetReward
		if s.model == "" && env.NamesOutcomes() {
			set = func(text string) error { return replay.NameOutcomes(m, env, text, m.Window) }
		}
		if err := set(s.reward); err != nil {
			return daemon.Usagef("--reward: %v", err)
		}
	}
	if err := replay.UseOutcomes(m, env); err != nil {
		return daemon.Usagef("%v", err)
	}
	return nil
}

func (s *source) parseModel() (*model.Model, error) {
	b, err := bounded.Read(s.model, model.MaxBytes)
	if err != nil {
		return nil, err
	}
	m, warnings, err := model.ParseWithWarnings(s.model, b)
	var keys struct{ Window any }
	s.modelWindow = yaml.Unmarshal(b, &keys) != nil || keys.Window != nil || err == nil && m.Named != nil
	for _, d := range warnings {
		s.reading.warn(d.Error())
	}
	return m, err
}

func (s *source) readModel(p *policy, env *replay.Rounds) (err error) {
	if p.model, err = s.parseModel(); err != nil {
		return err
	}
	p.files = map[string][]byte{}
	for _, name := range p.model.Files() {
		if p.files[name], err = bounded.Read(filepath.Join(filepath.Dir(s.model), name), bounded.Named); err != nil {
			return err
		}
	}
	if err := replay.UseActions(p.model, env); err != nil {
		return daemon.Usagef("%s: %v", s.model, err)
	}
	if p.model.Sticky > 0 {
		s.reading.warn(s.model + ": unit: no draw holds in what is played here: every round is drawn for itself")
	}
	p.model.Resolve(env.Columns, len(env.Actions))
	return nil
}

// setOracle replaces the oracle by another with its defaults.
func (s *source) setOracle(p *policy, env *replay.Rounds) (err error) {
	if p.model.Oracle, err = model.ParseOracle(s.oracle); err != nil {
		return daemon.Usagef("--oracle: %v", err)
	}
	p.model.MaxFeatures = max(p.model.MaxFeatures, env.Columns)
	p.model.Resolve(env.Columns, len(env.Actions))
	maps.DeleteFunc(p.files, func(name string, _ []byte) bool { return !slices.Contains(p.model.Files(), name) })
	return nil
}

// setLearner applies a specification: NAME, NAME:PARAMETER, or dafa:EXPLORE.
func (s *source) setLearner(p *policy, rounds int) (err error) {
	spec := p.label
	if spec == "" {
		p.label = p.model.Learner.String()
		return nil
	}
	explore, isExplore := strings.CutPrefix(spec, model.DAFA+":")
	if !isExplore {
		was := p.model.Learner.EXP4
		if p.model.Learner, err = model.ParseLearner(spec); err != nil {
			return daemon.Usagef("--learner: %v", err)
		}
		if p.model.Learner.Kind == model.EXP4DALE {
			p.model.Learner.EXP4.Policies = was.Policies // those of the model file
		}
		return nil
	}
	p.model.Learner = model.Learner{Kind: model.DAFA}
	if explore == model.Paper {
		if p.model.Oracle.Kind != model.Hedge {
			return daemon.Usagef("--learner %s: the paper's preset is for a finite class (oracle kind hedge)", spec)
		}
		p.model.Explore = model.Explore{Name: model.Paper, Horizon: int64(rounds)}
		p.model.Oracle.Eta = oracle.PaperEta
		return nil
	}
	if p.model.Explore, err = model.ParseExplore(explore); err != nil {
		return daemon.Usagef("--learner: %v", err)
	}
	if p.model.Explore.Warning() != "" {
		s.reading.warn(fmt.Sprintf("--learner %s: its number is no ε, but a factor of γ, and one so small plays "+
			"nearly at random for very long; for ε-greedy give --learner egreedy:%s", spec, explore))
	}
	return nil
}
