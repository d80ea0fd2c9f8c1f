package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
)

// asker asks for decisions and reports outcomes by requests.
type asker struct {
	*plan
	nc   *nats.Conn
	seen counts
}

// patience bounds a request; after a timeout or a 503 it is sent again, with the same id.
const (
	patience  = 2 * time.Second
	leastWait = patience / 8
	mostWait  = 2 * patience
)

// byRequests asks for a decision at each tick and reports its outcome later. A request
// that takes long does not hold up the next.
func byRequests(ctx context.Context, p *plan) error {
	nc, err := nats.Connect(p.nats, nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1))
	if err != nil {
		return err
	}
	defer nc.Close()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	a := &asker{plan: p, nc: nc}
	defer show(&a.seen, p.world)
	go report(ctx, &a.seen, p.world)
	tick := time.NewTicker(a.between())
	defer tick.Stop()
	run := rand.Uint32() // ids of a run are its own
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
		go a.seen.played(ctx, p, stop, func() error { return a.round(ctx, run, i) })
	}
}

// round plays one round to its end.
func (a *asker) round(ctx context.Context, run uint32, i int) error {
	id, body, err := a.context(run, i)
	if err != nil {
		return err
	}
	a.seen.contexts.Add(1)
	reply, err := a.insist(ctx, "decide", body)
	if err != nil {
		return err
	}
	var d struct{ Action string }
	if err := json.Unmarshal(reply, &d); err != nil {
		return fmt.Errorf("decision of %s: %w", id, err)
	}
	a.seen.decisions.Add(1)
	values, adds, err := a.reports(body, id, d.Action)
	for i, value := range values {
		if i == len(values)-1 && !pause(ctx, later(a.wait)) {
			return nil
		}
		if _, err := a.insist(ctx, "outcome", value); err != nil {
			return err
		}
	}
	a.seen.outcome(adds)
	return err
}

// pause waits, and reports whether the context lasted.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
	return ctx.Err() == nil
}

// failed stores why a request is sent again.
func (a *asker) failed(verb string, err error) {
	if errors.Is(err, nats.ErrNoResponders) {
		err = fmt.Errorf("%w: no decider of this model is on that server; look for the address in its log", err)
	}
	err = fmt.Errorf("%s.%s on %s: %w", a.model, verb, cmp.Or(a.nc.ConnectedUrlRedacted(), "no server"), err)
	a.seen.failure.Store(&err)
}

// insist sends a request until it is answered with more than "not now". It waits longer each time, at least
// for about as long as it is told to, and at random: requests that failed together do not come back together.
func (a *asker) insist(ctx context.Context, verb string, body []byte) ([]byte, error) {
	for wait := leastWait; ; wait = min(2*wait, mostWait) {
		within, cancel := context.WithTimeout(ctx, patience)
		m, err := a.nc.RequestWithContext(within, a.model+"."+verb, body)
		cancel()
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err == nil && m.Header.Get("Nats-Service-Error-Code") == "":
			return m.Data, nil
		case err == nil && !slices.Contains([]string{"429", "503"}, m.Header.Get("Nats-Service-Error-Code")):
			return nil, fmt.Errorf("%s.%s: %s", a.model, verb, m.Header.Get("Nats-Service-Error"))
		case err != nil && !errors.Is(err, nats.ErrNoResponders) && !errors.Is(err, context.DeadlineExceeded) &&
			!errors.Is(err, nats.ErrDisconnected):
			return nil, fmt.Errorf("%s.%s: %w", a.model, verb, err)
		case err == nil:
			told, _ := strconv.Atoi(m.Header.Get("Retry-After"))
			wait = max(wait, time.Duration(told)*time.Second)
			err = errors.New(m.Header.Get("Nats-Service-Error"))
		}
		a.failed(verb, err)
		pause(ctx, wait/2+rand.N(wait))
	}
}
