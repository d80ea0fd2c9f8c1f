// Package access reaches the NATS servers and Kafka brokers that --log names: one set of flags and one connection for
// every program and verb. It does not link the NATS server.
package access

import (
	"context"
	"log/slog"

	"github.com/spf13/pflag"

	"hindsight/internal/daemon"
	"hindsight/internal/service"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/lease"
	"hindsight/pkg/stream/nats"
)

// Flags say how servers and brokers let us in.
type Flags struct {
	NATS  NATS
	Kafka Kafka
}

// New returns flags that take passwords from an environment where no file has them.
func New(getenv func(string) string) Flags { return Flags{NATS{Getenv: getenv}, Kafka{Getenv: getenv}} }

// Register adds the flags.
func (f *Flags) Register(fs *pflag.FlagSet) {
	f.NATS.Register(fs)
	f.Kafka.register(fs)
}

// Remote reports whether a --log names servers or brokers.
func Remote(log string) bool { return IsNATS(log) || IsKafka(log) }

// Check reports what is wrong with a --log that names servers or brokers.
func Check(log string) error {
	if IsKafka(log) {
		return checkKafka(log)
	}
	return checkNATS("--log", log)
}

// Show returns a --log of any kind as it may be seen by anybody.
func Show(log string) string { return nats.Redact(log) }

// System is a log with servers or brokers.
type System struct {
	Log stream.Log
	Bus stream.Bus // nil on brokers, which carry no requests
	// Sharing shares the work on a model with other processes; holder names this one for people.
	Sharing func(ctx context.Context, name, holder string) (service.Sharing, error)
	Close   func() error
}

// Dial connects to what a --log names. program is shown by the tools of servers and brokers; logger is told when
// the connection is lost and found.
func (f *Flags) Dial(ctx context.Context, log, program string, logger *slog.Logger) (*System, error) {
	if IsKafka(log) {
		c, err := f.Kafka.dial(ctx, log, program, logger)
		if err != nil {
			return nil, err
		}
		sharing := func(_ context.Context, name, _ string) (service.Sharing, error) { return c.sharing(name), nil }
		return &System{Log: c.Log(), Sharing: sharing, Close: c.Close}, nil
	}
	var c *nats.Client
	err := daemon.Hurried(ctx, func() (err error) { // a server may accept, and say nothing
		c, err = f.NATS.dial(log, program, logger)
		return err
	})
	if err != nil {
		return nil, err
	}
	sharing := func(ctx context.Context, name, holder string) (service.Sharing, error) {
		store, err := c.Leases(ctx, service.LeaseBucket(name), service.LeaseTTL)
		if err != nil {
			return nil, err
		}
		return service.Leased(lease.NewKeeper(store, holder)), nil
	}
	return &System{Log: c.Log(), Bus: c.Bus(), Sharing: sharing, Close: c.Close}, nil
}
