package nats

import (
	"context"
	"errors"
	"strconv"

	natsgo "github.com/nats-io/nats.go"

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
	m, err := l.ask(ctx, l.o.BoundsConn, l.o.APIPrefix+".DIRECT.GET."+p.stream, []byte(`{"seq":`+seq+`}`))
	if err == nil && m.Header.Get(headerSeq) != seq {
		err = stream.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	return m.Data, nil
}

var _ stream.Ender = (*Log)(nil)

// End implements [stream.Ender]. Where the server is alone it asks for the last record: that takes a third of the
// time of the stream's state, which comes from the server's queue of administration, as JSON. An empty stream, or one
// whose last record cannot be read, is asked for its state.
func (l *Log) End(ctx context.Context, topic string, partition int) (next int64, err error) {
	if l.o.Alone {
		p, err := l.place(topic, partition)
		defer p.Locate("bounds", -1, &err)
		if err != nil {
			return 0, err
		}
		m, err := l.ask(ctx, l.o.BoundsConn, l.o.APIPrefix+".DIRECT.GET."+p.stream+"."+p.subject, nil)
		if err != nil && !errors.Is(err, natsgo.ErrNoResponders) { // of a stream without direct access
			return 0, err
		}
		if err == nil {
			if s := m.Header[headerSeq]; len(s) > 0 { // the server's own comes last: a record may have one, too
				last, err := strconv.ParseInt(s[len(s)-1], 10, 64)
				return last + 1, err
			}
		}
	}
	_, next, err = l.Bounds(ctx, topic, partition)
	return next, err
}
