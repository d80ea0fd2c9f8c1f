package nats

import "context"

// Fill implements [stream.Measured].
func (l *Log) Fill(ctx context.Context, topics ...string) (held, limit int64, err error) {
	for i := 0; i < len(topics) && l.o.MaxStore > 0; i++ {
		n, err := l.bytes(ctx, topics[i])
		if err != nil {
			return 0, 0, contractError(err)
		}
		held += n
	}
	return held, l.o.MaxStore, nil
}

// bytes returns how many bytes a topic holds.
func (l *Log) bytes(ctx context.Context, topic string) (n int64, err error) {
	for offset := 0; ; {
		var page struct {
			Total   int `json:"total"`
			Streams []struct {
				State struct {
					Bytes int64 `json:"bytes"`
				} `json:"state"`
			} `json:"streams"`
		}
		request := struct {
			Offset  int    `json:"offset"`
			Subject string `json:"subject"`
		}{offset, topic + ".*"}
		if err := l.call(ctx, l.conn, "STREAM.LIST", &request, &page); err != nil {
			return 0, err
		}
		for i := range page.Streams {
			n += page.Streams[i].State.Bytes
		}
		if offset += len(page.Streams); offset >= page.Total || len(page.Streams) == 0 {
			return n, nil
		}
	}
}
