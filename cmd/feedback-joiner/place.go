package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"hindsight/internal/access"
	"hindsight/internal/daemon"
	"hindsight/internal/service"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/attach"
	"hindsight/pkg/stream/nats"
)

// program is how this process is called by the tools of servers and brokers.
const program = "feedback-joiner"

// place is where the log lies.
type place struct {
	log      stream.Log
	seedFile string // unless it is said otherwise
	sharing  func(ctx context.Context, name, owner string) (service.Sharing, error)
	close    func() error
}

// folder returns the folder that --log names, "" if it names none.
func (c *config) folder() string {
	dir, _ := strings.CutPrefix(c.log, "embedded:")
	if dir == c.log {
		return ""
	}
	return dir
}

// check reports what is wrong with --log.
func (c *config) check() (err error) {
	switch {
	case access.Remote(c.log):
		err = access.Check(c.log)
	case c.folder() == "":
		err = fmt.Errorf("--log %q: expected embedded:DIR, the folder of a running decider, or nats://HOST, or "+
			"kafka://HOST", access.Show(c.log))
	}
	if err != nil {
		return daemon.Usagef("%v", err)
	}
	return nil
}

// open connects to the log: in a decider's folder, on servers, or on brokers.
func (c *config) open(ctx context.Context, env *daemon.Env) (*place, error) {
	if access.Remote(c.log) {
		s, err := c.access.Dial(ctx, c.log, program, env.Logger)
		if err != nil {
			return nil, err
		}
		return &place{s.Log, access.SeedFile, s.Sharing, s.Close}, nil
	}
	if err := attach.Own(c.folder()); err != nil {
		return nil, err
	}
	client, err := attach.Dial(c.folder(), program, nats.Options{})
	if errors.Is(err, attach.ErrNotRunning) {
		return nil, fmt.Errorf("%w; start it with: decider --joiner=false --log %s", err, c.log)
	}
	if err != nil {
		return nil, err
	}
	// In a folder the fence alone keeps two apart.
	alone := func(context.Context, string, string) (service.Sharing, error) { return nil, nil }
	return &place{client.Log(), filepath.Join(c.folder(), "seed"), alone, client.Close}, nil
}
