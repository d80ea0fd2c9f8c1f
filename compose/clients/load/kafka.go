package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/vmihailenco/msgpack/v5"
)

// pipeline writes to the topics of a model.
type pipeline struct {
	*plan
	w    *kafka.Writer
	seen counts
}

// overKafka writes contexts and outcomes to their topics and reads decisions from theirs.
func overKafka(ctx context.Context, p *plan) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	// Keyed by id, with the partitioner of Java clients: then a repeat of a context meets
	// the decider that has it, and outcomes of one round keep their order.
	l := &pipeline{plan: p, w: &kafka.Writer{Addr: kafka.TCP(p.addresses()...), Balancer: kafka.Murmur2Balancer{},
		RequiredAcks: kafka.RequireAll, BatchTimeout: 10 * time.Millisecond}}
	defer l.w.Close()
	defer show(&l.seen, p.world)
	go func() { stop(l.send(ctx)) }()
	go report(ctx, &l.seen, p.world)
	r := kafka.NewReader(kafka.ReaderConfig{Brokers: p.addresses(), GroupID: p.model + ".load",
		Topic: p.model + ".decisions", MaxWait: time.Second})
	defer r.Close()
	for {
		m, err := r.ReadMessage(ctx)
		if err != nil {
			return context.Cause(ctx)
		}
		if slices.ContainsFunc(m.Headers, func(h kafka.Header) bool { return h.Key == "hindsight-type" }) {
			continue // a record of the system's own
		}
		var d decision
		if err := msgpack.Unmarshal(m.Value, &d); err != nil {
			return fmt.Errorf("decision at offset %d: %w", m.Offset, err)
		}
		l.seen.decisions.Add(1)
		go l.seen.played(ctx, p, stop, func() error { return l.reward(ctx, &d) })
	}
}

// send writes contexts until the context ends.
func (l *pipeline) send(ctx context.Context) error {
	tick := time.NewTicker(l.between())
	defer tick.Stop()
	run := rand.Uint32() // ids of a run are its own
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		id, value, err := l.context(run, i)
		if err != nil {
			return err
		}
		if err := l.write(ctx, "contexts", id, value); err != nil {
			return err
		}
		l.seen.contexts.Add(1)
	}
}

func (l *pipeline) write(ctx context.Context, topic, id string, value []byte) error {
	if err := l.w.WriteMessages(ctx, kafka.Message{Topic: l.model + "." + topic, Key: []byte(id),
		Value: value}); err != nil {
		return fmt.Errorf("write %s: %w", topic, err)
	}
	return nil
}

// decision is what is read of a decision; it carries the context as it came.
type decision struct {
	ID      string          `msgpack:"id"`
	Action  string          `msgpack:"action"`
	Context json.RawMessage `msgpack:"context"`
}

// reward writes the outcomes of a decision.
func (l *pipeline) reward(ctx context.Context, d *decision) error {
	values, adds, err := l.reports(d.Context, d.ID, d.Action)
	for i, value := range values {
		if i == len(values)-1 && !pause(ctx, later(l.wait)) {
			return nil
		}
		if err := l.write(ctx, "outcomes", d.ID, value); err != nil {
			return err
		}
	}
	if len(values) > 0 {
		l.seen.outcome(adds)
	}
	return err
}
