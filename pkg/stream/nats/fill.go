package nats

import "context"

// Fill implements [stream.Measured].
func (l *Log) Fill(ctx context.Context, topics ...string) (held, limit int64, err error) {
	type info struct {
		State struct {
			Bytes int64 `json:"bytes"`
		} `json:"state"`
	}
	for i := 0; i < len(topics) && l.o.MaxStore > 0; i++ {
		streams, err := pages[info](ctx, l, "STREAM.LIST", topics[i]+".*")
		if err != nil {
			return 0, 0, err
		}
		for _, s := range streams {
			held += s.State.Bytes
		}
	}
	return held, l.o.MaxStore, nil
}
