package modelfile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"hindsight/internal/daemon"
	"hindsight/internal/follow"
)

// A model that is refused holds a process that systemd runs, and no other, until it is told to
// stop; other errors end it at once.
func TestHold(t *testing.T) {
	_, missing := Load("nowhere.yaml")
	if !errors.Is(missing, os.ErrNotExist) {
		t.Fatal(missing)
	}
	self := strconv.Itoa(os.Getpid())
	for name, c := range map[string]struct {
		pid  string
		err  error
		stop time.Duration // after which it is told to stop
		want time.Duration
	}{
		"no file":            {self, missing, time.Hour, holdTime},
		"refused by the log": {self, fmt.Errorf("joiner: %w", follow.ErrModel), time.Hour, holdTime},
		"told to stop":       {self, missing, time.Second, time.Second},
		"not by systemd":     {"", missing, time.Hour, 0},
		"in a unit's shell":  {"1", missing, time.Hour, 0},
		"another error":      {self, errors.New("no server"), time.Hour, 0},
		"none":               {self, nil, time.Hour, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), c.stop)
				defer cancel()
				env := &daemon.Env{Logger: slog.New(slog.DiscardHandler), Getenv: func(string) string { return c.pid }}
				began := time.Now()
				if err := Hold(ctx, env, c.err); err != c.err || time.Since(began) != c.want {
					t.Errorf("%v after %v, want %v", err, time.Since(began), c.want)
				}
			})
		})
	}
}
