package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"hindsight/internal/access"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/embedded"
)

// CheckRequests reports what is wrong with the value of --nats beside a log.
func CheckRequests(spec Spec, requests string) error {
	if requests != "" && spec.Kind != "kafka" {
		return fmt.Errorf("--nats %s: it says where requests are answered beside --log kafka://…; this log answers "+
			"them itself", access.Show(requests))
	}
	return access.CheckRequests(requests)
}

// CheckRequesters reports what is wrong with a value of --requesters beside a log and a value of --nats.
func CheckRequesters(spec Spec, requests, requesters string) error {
	if requesters != "" && (spec.Kind == "nats" || requests != "") {
		return errors.New("--requesters: no server runs inside this process; on servers of your own give each " +
			"requester a user there, as compose/nats.conf does")
	}
	return nil
}

// requests are what carries requests beside a log.
type requests struct {
	bus   stream.Bus
	url   string
	apart bool
	close func() error
}

func (o *Options) requests(ctx context.Context) (*requests, error) {
	switch o.Requests {
	case access.None:
		return &requests{close: func() error { return nil }}, nil
	case "":
		eo, err := o.server()
		if err != nil {
			return nil, err
		}
		b, err := embedded.OpenBus(ctx, eo)
		if err != nil {
			return nil, err
		}
		return &requests{bus: b.Bus(), url: b.URL(), apart: true, close: b.Close}, nil
	}
	logger := o.Logger
	if logger != nil {
		logger = logger.With("for", "requests")
	}
	s, err := o.Access.Dial(ctx, o.Requests, filepath.Base(os.Args[0]), logger)
	if err != nil {
		return nil, fmt.Errorf("--nats: %w", err)
	}
	return &requests{bus: s.Bus, url: access.Show(o.Requests), close: s.Close}, nil
}
