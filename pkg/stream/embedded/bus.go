package embedded

import (
	"context"

	"hindsight/pkg/stream"
)

// Bus is a running server that carries requests and keeps nothing.
type Bus struct{ e *Engine }

// OpenBus starts a server for requests beside a log that lies elsewhere: without a
// folder and a connect.json, and with the same permissions as [Open] gives to whoever
// connects without a name. Of the options only Host, Port, StrictPort, MaxConns,
// Requesters, Logger and Name count.
func OpenBus(ctx context.Context, o Options) (*Bus, error) {
	o = Options{Host: o.Host, Port: o.Port, StrictPort: o.StrictPort, MaxConns: o.MaxConns, Requesters: o.Requesters, Logger: o.Logger, Name: o.Name, bare: true}
	if err := o.complete(); err != nil {
		return nil, err
	}
	e := &Engine{o: o}
	if err := e.start(ctx); err != nil {
		_ = e.Close()
		return nil, err
	}
	return &Bus{e}, nil
}

// Bus returns the bus.
func (b *Bus) Bus() stream.Bus { return b.e.Bus() }

// URL returns where the server listens.
func (b *Bus) URL() string { return b.e.URL() }

// Close drains the bus and stops the server.
func (b *Bus) Close() error { return b.e.Close() }
