package nats

import (
	"context"
	"slices"
	"strings"
)

// Topics implements [stream.Lister].
func (l *Log) Topics(ctx context.Context) ([]string, error) {
	names, err := pages[string](ctx, l, "STREAM.NAMES", "")
	var topics []string
	for _, name := range names {
		if topic, ok := strings.CutSuffix(name, "_0"); ok {
			if i := strings.LastIndexByte(topic, '_'); i > 0 {
				topics = append(topics, topic[:i]+"."+topic[i+1:])
			}
		}
	}
	slices.Sort(topics)
	return topics, err
}

// pages asks for all streams, or those with a subject.
func pages[T any](ctx context.Context, l *Log, question, subject string) (all []T, err error) {
	for {
		var page struct {
			Total   int `json:"total"`
			Streams []T `json:"streams"`
		}
		request := struct {
			Offset  int    `json:"offset"`
			Subject string `json:"subject,omitempty"`
		}{len(all), subject}
		if err := l.call(ctx, l.conn, question, &request, &page); err != nil {
			return nil, contractError(err)
		}
		if all = append(all, page.Streams...); len(all) >= page.Total || len(page.Streams) == 0 {
			return all, nil
		}
	}
}
