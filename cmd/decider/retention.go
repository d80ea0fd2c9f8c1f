package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"hindsight/internal/follow"
	"hindsight/internal/join"
	"hindsight/internal/model"
	"hindsight/pkg/stream"
)

// retention is the value of --retention: a duration, with days as they are in model files.
type retention time.Duration

// Set implements [pflag.Value].
func (r *retention) Set(s string) error {
	d, err := model.ParseDuration(s)
	if err != nil {
		return fmt.Errorf("expected a duration, for example 7d, 36h or 90m; 0 keeps everything")
	}
	*r = retention(d)
	return nil
}

// String implements [pflag.Value].
func (r *retention) String() string { return time.Duration(*r).String() }

// Type implements [pflag.Value].
func (r *retention) Type() string { return "duration" }

// announce warns of a new log that keeps decisions for less time than they may be needed. What an old one keeps, this
// flag does not say.
func (r retention) announce(ctx context.Context, logger *slog.Logger, log stream.Log, s *follow.Source) {
	_, err := log.Partitions(ctx, join.TopicsOf(s.Name).Decisions)
	m, bad := model.ParseLogged(s.Name, s.Model)
	if !errors.Is(err, stream.ErrNotFound) || bad != nil || r == 0 {
		return
	}
	if needed := time.Duration(max(m.Window.Nanos, m.Sticky)); needed >= time.Duration(r) {
		logger.Warn("the new log drops records that the model still needs, and a restart then refuses to start, or "+
			"forgets them: give a new log a --retention that is longer than the model's window and unit.sticky, or 0",
			"retention", r.String(), "needed", needed.String())
	}
}
