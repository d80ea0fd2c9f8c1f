package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"hindsight/internal/brokers"
	"hindsight/internal/daemon"
	"hindsight/internal/servers"
	"hindsight/internal/service"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/attach"
	"hindsight/pkg/stream/lease"
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
	case servers.Is(c.log):
		err = servers.Check(c.log)
	case brokers.Is(c.log):
		err = brokers.Check(c.log)
	case c.folder() == "":
		err = fmt.Errorf("--log %q: expected embedded:DIR, the folder of a running decider, or nats://HOST, or kafka://HOST",
			servers.Show(c.log))
	}
	if err != nil {
		return daemon.Usagef("%v", err)
	}
	return nil
}

// open connects to the log: in a decider's folder, on servers, or on brokers.
func (c *config) open(ctx context.Context, env *daemon.Env) (*place, error) {
	switch {
	case brokers.Is(c.log):
		client, err := c.kafka.Dial(ctx, c.log, program, env.Logger)
		if err != nil {
			return nil, err
		}
		sharing := func(_ context.Context, name, _ string) (service.Sharing, error) { return client.Sharing(name), nil }
		return &place{client.Log(), servers.SeedFile, sharing, client.Close}, nil
	case servers.Is(c.log):
		var client *nats.Client
		err := daemon.Hurried(ctx, func() (err error) { // a server may accept, and say nothing
			client, err = c.nats.Dial(c.log, program, env.Logger)
			return err
		})
		if err != nil {
			return nil, err
		}
		sharing := func(ctx context.Context, name, owner string) (service.Sharing, error) {
			store, err := client.Leases(ctx, service.LeaseBucket(name), service.LeaseTTL)
			if err != nil {
				return nil, err
			}
			return service.Leased(lease.NewKeeper(store, owner)), nil
		}
		return &place{client.Log(), servers.SeedFile, sharing, client.Close}, nil
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
