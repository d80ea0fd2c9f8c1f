package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"hindsight/internal/follow"
	"hindsight/internal/loop"
	"hindsight/internal/watch"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/mem"
)

// modeBuild is testBuild with the mode of the model.
func modeBuild(rec *codec.Epoch, files map[string][]byte) (loop.Epoch, error) {
	ep, err := testBuild(rec, files)
	if err == nil {
		ep.Rules.Mode = rec.Mode
	}
	return ep, err
}

func source(version int64) *follow.Source {
	return &follow.Source{Name: "m", Version: version, Model: []byte("name: m\n")}
}

func versionOf(c *Control) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mode.Version
}

// waitingJoiner shares the joiner's work: this process is to do it when it is told.
type waitingJoiner struct{ turn chan struct{} }

func (waitingJoiner) Deciders(context.Context, int, *slog.Logger, func(context.Context, int) error) error {
	return nil
}

func (w waitingJoiner) Joiner(ctx context.Context, _ *slog.Logger, run func(context.Context) error) error {
	select {
	case <-w.turn:
		return run(ctx)
	case <-ctx.Done():
		return nil
	}
}

// TestRenewedReopens: a process whose joiner has read a newer file goes on with it when it
// opens again, though it was started with the older one. Before and after, who has it read an
// older file than the log's is told that this is none.
func TestRenewedReopens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDaemon(t, watch.RoleDecider)
		version := int64(2)
		c := &Control{Reload: func() (*follow.Source, error) { return source(version), nil }}
		older := func() {
			t.Helper()
			version = 1
			epoch, err := c.Renew(t.Context())
			if !errors.Is(err, follow.ErrModel) || !strings.Contains(fmt.Sprint(err), "the log is at version 2 of "+
				"the model, this file says version 1") || versionOf(c) != 2 {
				t.Errorf("an older file begins epoch %d of version %d: %v", epoch, versionOf(c), err)
			}
		}
		d.config.Control, d.config.Build, d.config.Source = c, modeBuild, source(1)
		defer d.run(d.system)()
		synctest.Wait()
		if epoch, err := c.Renew(t.Context()); epoch != 2 || err != nil {
			t.Fatalf("epoch %d, %v", epoch, err)
		}
		older()
		full := true
		d.setFault(func(topic string, _ *stream.Record) mem.Fault {
			if topic == "m.feedback" && full {
				full = false
				return mem.Full
			}
			return mem.None
		})
		if _, err := c.Switch(t.Context(), codec.Paused, ""); err == nil || full {
			t.Fatal("a full log did no harm")
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if epoch, err := c.Switch(t.Context(), codec.Shadow, ""); epoch != 3 || err != nil || versionOf(c) != 2 {
			t.Errorf("opened again: epoch %d of version %d, %v", epoch, versionOf(c), err)
		}
		older()
	})
}

// TestRenewedElsewhere: a process that stood by while another one's joiner read a newer file
// goes on with that; one that starts with the older file is refused, whatever came since.
func TestRenewedElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := mem.New(mem.Options{})
		createTopics(t, log, "m", 1)
		jc := SystemConfig{Log: log, Source: source(1), Build: modeBuild, Partitions: 1, MaxPending: 1000, Dedup: 100,
			MarkEvery: 10, Logger: slog.New(slog.DiscardHandler)}
		standby := waitingJoiner{make(chan struct{})}
		c := &Control{}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			jc := jc
			jc.Control = c
			ended <- RunSharedJoiner(ctx, standby, jc, nil)
		}()
		synctest.Wait()
		j, err := OpenJoiner(t.Context(), jc)
		must(t, 0, err)
		_, err = j.Renew(t.Context(), source(2))
		must(t, 0, err)
		late := jc
		late.note(t.Context())
		_, err = j.Switch(t.Context(), codec.Paused, "")
		must(t, 0, err)
		j.Close()
		brief, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := runJoiner(brief, late, nil); !errors.Is(err, follow.ErrModel) {
			t.Errorf("one that starts with the older file: %v", err)
		}
		close(standby.turn)
		synctest.Wait()
		if epoch, err := c.Switch(t.Context(), codec.Live, ""); epoch != 4 || err != nil || versionOf(c) != 2 {
			t.Errorf("taken over: epoch %d of version %d, %v", epoch, versionOf(c), err)
		}
		stop()
		must(t, 0, <-ended)
	})
}
