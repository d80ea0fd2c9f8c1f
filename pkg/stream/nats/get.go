package nats

import (
	"context"
	"strconv"

	"hindsight/pkg/stream"
)

var _ stream.Getter = (*Log)(nil)

// Get implements [stream.Getter]: by a request instead of a consumer, of which a stream has a
// thousand at most. A replica that lags behind does not have the record yet.
func (l *Log) Get(ctx context.Context, topic string, partition int, offset int64) (value []byte, err error) {
	p, err := l.place(topic, partition)
	defer p.Locate("read", offset, &err)
	if err != nil {
		return nil, err
	}
	seq := strconv.FormatInt(offset, 10)
	m, err := l.ask(ctx, l.boundsConn, l.o.APIPrefix+".DIRECT.GET."+p.stream, []byte(`{"seq":`+seq+`}`))
	if err == nil && m.Header.Get(headerSeq) != seq {
		err = stream.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	return m.Data, nil
}
