package access

import (
	"context"
	"log/slog"
	"time"

	"hindsight/internal/join"
	"hindsight/internal/service"
	"hindsight/pkg/stream/kafka"
)

// client is a log on brokers, with the groups by which processes share its work.
type client struct {
	*kafka.Client
	session time.Duration // of members of groups; 0: the default
}

// sharing shares the work on a model through two consumer groups: the process that is assigned
// a partition of the contexts decides it, and the one that is assigned the feedback joins.
func (c *client) sharing(name string) service.Sharing { return &sharing{c, name} }

type sharing struct {
	c    *client
	name string
}

func (s *sharing) Deciders(ctx context.Context, partitions int, logger *slog.Logger,
	run func(ctx context.Context, partition int) error) error {
	t := join.TopicsOf(s.name)
	return s.group(s.name+".deciders", t.Contexts, partitions, logger).Reporting(t.Contexts).Run(ctx, run)
}

func (s *sharing) Joiner(ctx context.Context, logger *slog.Logger, run func(ctx context.Context) error) error {
	t := join.TopicsOf(s.name)
	return s.group(s.name+".joiner", t.Feedback, 1, logger).Reporting(t.Decisions, t.Outcomes).Run(ctx,
		func(ctx context.Context, _ int) error { return run(ctx) })
}

func (s *sharing) group(name, topic string, partitions int, logger *slog.Logger) *kafka.Group {
	return s.c.Group(name, topic, kafka.GroupOptions{Partitions: partitions, Session: s.c.session, Rebalance: s.c.session},
		logger)
}
