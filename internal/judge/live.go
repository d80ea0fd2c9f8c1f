package judge

import (
	"context"
	"time"

	"hindsight/internal/dataset"
	"hindsight/internal/join"
	"hindsight/internal/logs"
	"hindsight/internal/loop"
	"hindsight/internal/replay"
	"hindsight/pkg/stream"
)

// Live opens what a live system decided from one log time to another as the log on which policies are judged: files,
// learners and snapshots are none of them. Rewards, or losses, lie on a scale.
func Live(ctx context.Context, log stream.Log, name string, from, to time.Time, scale loop.Range) (*OffPolicy, error) {
	at := join.TopicsOf(name)
	records, err := logs.OpenTopics(ctx, log, at.Decisions, at.Outcomes, at.Rejects, logs.Options{Inactive: true,
		From: from.UnixNano(), To: to.UnixNano()})
	if err != nil {
		return nil, err
	}
	table, err := dataset.Read(name, records, dataset.Options{Range: scale})
	if err != nil {
		return nil, err
	}
	return NewOffPolicy(replay.OfTable(table), nil)
}
