package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"hindsight/internal/daemon"
	"hindsight/internal/model"
	"hindsight/internal/replay"
	"hindsight/pkg/oracle"
)

// defaultRounds is the length of an environment that has none of its own.
const defaultRounds = 20_000

// source holds the flags that name what is replayed: an environment or a file, and
// the model that decides.
type source struct {
	env, data, model string
	rounds           int
	window           string
	seed             uint64
	json             bool
}

func (s *source) flags(f *pflag.FlagSet) {
	f.StringVar(&s.env, "env", "sigmoid", "built-in environment")
	f.StringVar(&s.data, "data", "", "labelled CSV to replay as a bandit, instead of --env: label first, n_ numbers, c_ categories")
	f.StringVar(&s.model, "model", "", "model file; its learner is used unless --learner is given")
	f.IntVar(&s.rounds, "rounds", 0, fmt.Sprintf("rounds to play; 0: the whole file, or %d of an environment", defaultRounds))
	f.StringVar(&s.window, "window", "", "how long a round waits for its outcome, in later rounds: 200 or 200r; default: the model file's, else 200")
	f.Uint64Var(&s.seed, "seed", 1, "of contexts, losses, delays, row orders and the secret seed")
	f.BoolVar(&s.json, "json", false, "one JSON object on standard output; tables and bars go to standard error")
}

// open returns the environment.
func (s *source) open() (replay.Environment, error) {
	if s.rounds < 0 {
		return nil, daemon.Usagef("--rounds %d: it must not be negative", s.rounds)
	}
	if s.data != "" {
		env, err := replay.OpenMulticlass(s.data)
		if err != nil {
			return nil, err
		}
		return replay.Head(env, s.rounds), nil
	}
	n := s.rounds
	if n == 0 {
		n = defaultRounds
	}
	if s.env != "sigmoid" {
		return nil, daemon.Usagef("--env %q: unknown environment; `replayer list` names them", s.env)
	}
	return replay.NewSigmoid(s.seed, n, replay.SigmoidOptions{}), nil
}

// policy is a model with the files that it names.
type policy struct {
	label string
	model *model.Model
	files map[string][]byte
}

// modelName is the name of models made here. It is part of what a draw depends on:
// inject and backtest share it, and with it their draws.
const modelName = "replay"

// policy returns the model for a learner's specification; "" is the model file's.
func (s *source) policy(env replay.Environment, spec string) (*policy, error) {
	p := &policy{label: spec}
	if s.model != "" {
		if err := s.readModel(p, env); err != nil {
			return nil, err
		}
	} else {
		window, err := model.ParseWindow("200")
		if err != nil {
			return nil, err
		}
		p.model, p.files = replay.ModelFor(env, modelName, model.Learner{Kind: model.DAFA}, window)
	}
	if err := s.setLearner(p, env.Len()); err != nil {
		return nil, err
	}
	if s.window != "" {
		w, err := model.ParseWindow(s.window)
		if err != nil {
			return nil, daemon.Usagef("--window: %v", err)
		}
		p.model.Window = w
	}
	if p.model.Window.Rounds == 0 {
		return nil, daemon.Usagef("a window of %s: this data has no times; give the window in rounds, for example --window 200", model.FormatWindow(p.model.Window))
	}
	if err := p.model.Validate(); err != nil {
		return nil, err
	}
	return p, nil
}

func (s *source) readModel(p *policy, env replay.Environment) error {
	b, err := os.ReadFile(s.model)
	if err != nil {
		return err
	}
	if p.model, err = model.Parse(s.model, b); err != nil {
		return err
	}
	p.files = map[string][]byte{}
	for _, name := range p.model.Files() {
		if p.files[name], err = os.ReadFile(filepath.Join(filepath.Dir(s.model), name)); err != nil {
			return err
		}
	}
	if p.model.Actions == nil {
		p.model.Actions = append([]string(nil), env.Actions()...)
	}
	p.model.Resolve(env.Columns(), len(env.Actions()))
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
		if p.model.Learner, err = model.ParseLearner(spec); err != nil {
			return daemon.Usagef("--learner: %v", err)
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
	return nil
}
