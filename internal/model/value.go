package model

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"hindsight/internal/loop"
)

// Limits on windows: longer ones would hold more than any log keeps.
const (
	maxWindowRounds = 1_000_000_000
	maxWindowNanos  = int64(10 * 365 * 24 * time.Hour)
)

var errWindow = errors.New(`expected a duration or a number of rounds, positive and finite; for example: 10m, 36h, 7d, "200 rounds" or 200r`)

// ParseWindow reads how long a round waits for its outcome: a duration (10m,
// 36h, 7d) or a number of later rounds (200, 200r, "200 rounds").
func ParseWindow(s string) (loop.Window, error) {
	text := strings.TrimSpace(s)
	digits := text
	for _, suffix := range []string{"rounds", "round", "r"} {
		if cut, ok := strings.CutSuffix(text, suffix); ok {
			digits = strings.TrimSpace(cut)
			break
		}
	}
	if n, err := strconv.ParseInt(digits, 10, 64); err == nil {
		if n < 1 || n > maxWindowRounds {
			return loop.Window{}, fmt.Errorf("window of %d rounds is not in 1…%d: %w", n, maxWindowRounds, errWindow)
		}
		return loop.Window{Rounds: n}, nil
	}
	d, err := ParseDuration(text)
	if err != nil {
		return loop.Window{}, fmt.Errorf("window %q: %w", s, errWindow)
	}
	if d <= 0 || int64(d) > maxWindowNanos {
		return loop.Window{}, fmt.Errorf("window %q is not in (0, 10 years]: a round without an outcome must end: %w", s, errWindow)
	}
	return loop.Window{Nanos: int64(d)}, nil
}

// ParseDuration is [time.ParseDuration] that also reads whole days: 7d.
func ParseDuration(s string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(s, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 32); err == nil {
			s = strconv.FormatUint(24*n, 10) + "h"
		}
	}
	return time.ParseDuration(s)
}

// FormatWindow writes a window as ParseWindow reads it.
func FormatWindow(w loop.Window) string {
	switch {
	case w.Rounds == 1:
		return "1 round"
	case w.Rounds > 0:
		return strconv.FormatInt(w.Rounds, 10) + " rounds"
	}
	s := time.Duration(w.Nanos).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

var errLearner = errors.New("expected dafa, elimination, greedy, uniform, egreedy:EPSILON, fixed:ACTION or exp4dale; for example: dafa, egreedy:0.05, fixed:red")

// ParseLearner reads a learner as flags write it: dafa, greedy, uniform,
// egreedy:0.05, fixed:ACTION, exp4dale, exp4dale:D, exp4dale:plain.
func ParseLearner(s string) (Learner, error) {
	kind, arg, has := strings.Cut(strings.TrimSpace(s), ":")
	return newLearner(strings.TrimSpace(kind), strings.TrimSpace(arg), has)
}

func newLearner(kind, arg string, has bool) (Learner, error) {
	switch kind {
	case DAFA, Elimination, Greedy, Uniform:
		if has {
			return Learner{}, fmt.Errorf("learner %s takes no parameter, it has %q: %w", kind, arg, errLearner)
		}
		return Learner{Kind: kind}, nil
	case EGreedy:
		if !has {
			return Learner{Kind: kind, Epsilon: 0.05}, nil
		}
		eps, err := parseFloat(arg)
		if err != nil || eps < 0 || eps > 1 {
			return Learner{}, fmt.Errorf("learner egreedy: %q is not a number in [0,1]: %w", arg, errLearner)
		}
		return Learner{Kind: kind, Epsilon: eps}, nil
	case Fixed:
		if err := checkText(arg); err != nil {
			return Learner{}, fmt.Errorf("learner fixed: the action to play %w: %w", err, errLearner)
		}
		return Learner{Kind: kind, Action: arg}, nil
	case EXP4DALE:
		return newEXP4(arg, has)
	}
	near := didYouMean(kind, []string{DAFA, Elimination, Greedy, Uniform, EGreedy, Fixed, EXP4DALE})
	return Learner{}, fmt.Errorf("unknown learner %q%s: %w", kind, near, errLearner)
}

// String writes the learner as ParseLearner reads it.
func (l Learner) String() string {
	switch l.Kind {
	case EGreedy:
		return l.Kind + ":" + formatFloat(l.Epsilon)
	case Fixed:
		return l.Kind + ":" + l.Action
	case EXP4DALE:
		return l.Kind + l.EXP4.String()
	}
	return l.Kind
}

var errExplore = errors.New("expected cautious, guaranteed, balanced, theory, a number in (0, 1e9], or {paper: T}; for example: balanced")

// ParseExplore reads how much to explore as flags write it: a name, a positive
// number, or paper:T.
func ParseExplore(s string) (Explore, error) {
	kind, arg, has := strings.Cut(strings.TrimSpace(s), ":")
	return newExplore(strings.TrimSpace(kind), strings.TrimSpace(arg), has)
}

func newExplore(kind, arg string, has bool) (Explore, error) {
	switch kind {
	case Cautious, Guaranteed, Balanced, Theory:
		if has {
			return Explore{}, fmt.Errorf("explore %s takes no parameter, it has %q: %w", kind, arg, errExplore)
		}
		return Explore{Name: kind}, nil
	case Paper:
		if !has {
			return Explore{}, errors.New("explore paper needs the number of rounds T; for example: {paper: 20000}")
		}
		t, err := strconv.ParseInt(arg, 10, 64)
		if err != nil || t < 1 {
			return Explore{}, fmt.Errorf("explore paper: %q is not a number of rounds T ≥ 1; for example: {paper: 20000}", arg)
		}
		return Explore{Name: Paper, Horizon: t}, nil
	}
	f, err := parseFloat(kind)
	if has || err != nil || f <= 0 || f > 1e9 {
		return Explore{}, fmt.Errorf("unknown explore %q: %w", kind, errExplore)
	}
	return Explore{Factor: f}, nil
}

// String writes the setting as ParseExplore reads it.
func (e Explore) String() string {
	switch e.Name {
	case "":
		return formatFloat(e.Factor)
	case Paper:
		return Paper + ":" + strconv.FormatInt(e.Horizon, 10)
	}
	return e.Name
}

var errNotFinite = errors.New("not a finite number")

// parseFloat reads a finite decimal number; −0 becomes 0 so that equal models
// have equal bytes.
func parseFloat(s string) (float64, error) {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return 0, fmt.Errorf("%q: %w", s, errNotFinite)
	}
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return 0, fmt.Errorf("%q: %w", s, errNotFinite)
	}
	return f + 0, nil
}

// formatFloat writes the shortest text that reads back; −0 is written as 0.
func formatFloat(f float64) string { return strconv.FormatFloat(f+0, 'g', -1, 64) }
