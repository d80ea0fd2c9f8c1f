package nats

import (
	"context"
	"slices"
	"strings"
)

// Topics implements [stream.Lister].
func (l *Log) Topics(ctx context.Context) ([]string, error) {
	var topics []string
	for offset := 0; ; {
		var page struct {
			Total   int      `json:"total"`
			Streams []string `json:"streams"`
		}
		request := struct {
			Offset int `json:"offset"`
		}{offset}
		if err := l.call(ctx, l.conn, "STREAM.NAMES", &request, &page); err != nil {
			return nil, contractError(err)
		}
		for _, name := range page.Streams {
			if topic, ok := strings.CutSuffix(name, "_0"); ok {
				if i := strings.LastIndexByte(topic, '_'); i > 0 {
					topics = append(topics, topic[:i]+"."+topic[i+1:])
				}
			}
		}
		if offset += len(page.Streams); offset >= page.Total || len(page.Streams) == 0 {
			slices.Sort(topics)
			return topics, nil
		}
	}
}
