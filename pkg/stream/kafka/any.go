package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/segmentio/kafka-go/protocol"
)

// silence is how long a broker may say nothing before another is asked as well: one
// that hangs takes connections and never answers.
const silence = 500 * time.Millisecond

// askAny asks a question that every broker can answer, and returns the first answer that accept takes. It begins with
// the broker that answered last; the next one is asked when one fails or is silent. The message is sent several times,
// so it must not be changed by what comes back.
func (c *Client) askAny(ctx context.Context, question func() protocol.Message,
	accept func(protocol.Message) error) (protocol.Message, error) {
	type answer struct {
		from int
		m    protocol.Message
		err  error
	}
	addrs := c.cluster.addresses()
	answers := make(chan answer, len(addrs))
	var wg sync.WaitGroup
	defer wg.Wait()
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	asked, open := 0, 0
	next := func() {
		if asked == len(addrs) {
			return
		}
		from := asked
		asked++
		open++
		wg.Go(func() {
			m, err := c.ask(asking, addrs[from], question())
			if err == nil {
				err = accept(m)
			}
			answers <- answer{from, m, err}
		})
	}
	errs := make([]error, len(addrs))
	silent := time.NewTicker(silence)
	defer silent.Stop()
	for next(); open > 0; {
		select {
		case a := <-answers:
			open--
			if a.err == nil {
				c.cluster.answered(addrs[a.from])
				return a.m, nil
			}
			if ctx.Err() != nil {
				return nil, fmt.Errorf("%w: %w", ctx.Err(), a.err)
			}
			errs[a.from] = a.err
			next()
		case <-silent.C:
			next()
		}
	}
	return nil, errors.Join(errs...)
}

// answered remembers which broker to ask first.
func (k *cluster) answered(addr string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.good = addr
}
