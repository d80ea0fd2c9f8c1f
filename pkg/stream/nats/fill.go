package nats

import "context"

// Fill implements [stream.Measured].
func (l *Log) Fill(ctx context.Context, topics ...string) (held, limit int64, err error) {
	if l.o.MaxStore == 0 {
		return 0, 0, nil
	}
	for _, topic := range topics {
		streams, err := pages[streamInfo](ctx, l, "STREAM.LIST", topic+".*")
		if err != nil {
			return 0, 0, err
		}
		for _, s := range streams {
			held += int64(s.State.Bytes)
		}
	}
	return held, l.o.MaxStore, nil
}
