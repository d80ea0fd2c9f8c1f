// Command load is a source of load for a system on Kafka, and an example of a pipeline:
// it writes contexts, reads decisions, and some seconds later writes what each was
// worth, in a made-up world in which the best of three articles depends on the visitor.
// It writes what it saw every ten seconds.
//
//	load -brokers localhost:9092 -model shop -rate 50
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"math"
	"math/rand/v2"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/vmihailenco/msgpack/v5"
)

// clicks is the chance of a click: visitors by articles.
var clicks = map[string]map[string]float64{
	"desktop": {"news": .30, "sport": .10, "games": .05},
	"phone":   {"news": .05, "sport": .25, "games": .10},
	"console": {"news": .02, "sport": .10, "games": .40},
}

var devices = []string{"desktop", "phone", "console"}

// counts are what happened since the start.
type counts struct{ contexts, decisions, outcomes, clicks atomic.Int64 }

func main() {
	brokers := flag.String("brokers", "localhost:9092", "addresses of brokers, joined by commas")
	model := flag.String("model", "shop", "name of the model, with which its topics begin")
	rate := flag.Float64("rate", 20, "contexts a second")
	enough := flag.Int64("n", 0, "stop after so many outcomes; 0: never")
	wait := flag.Duration("delay", 2*time.Second, "median delay of outcomes")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, strings.Split(*brokers, ","), *model, *rate, *enough, *wait); err != nil && ctx.Err() == nil && !errors.Is(err, errEnough) {
		log.Fatal(err)
	}
}

func run(ctx context.Context, brokers []string, model string, rate float64, enough int64, wait time.Duration) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var seen counts
	// Keyed by id, with the partitioner of Java clients: then a repeat of a context meets
	// the decider that has it, and outcomes of one round keep their order.
	w := &kafka.Writer{Addr: kafka.TCP(brokers...), Balancer: kafka.Murmur2Balancer{}, RequiredAcks: kafka.RequireAll, BatchTimeout: 10 * time.Millisecond}
	defer w.Close()
	go func() { stop(send(ctx, w, model, rate, &seen)) }()
	go report(ctx, &seen)
	r := kafka.NewReader(kafka.ReaderConfig{Brokers: brokers, GroupID: model + ".load", Topic: model + ".decisions", MaxWait: time.Second})
	defer r.Close()
	done := make(chan struct{}, 1)
	for {
		m, err := r.ReadMessage(ctx)
		if err != nil {
			return context.Cause(ctx)
		}
		if control(m.Headers) {
			continue
		}
		var d decision
		if err := msgpack.Unmarshal(m.Value, &d); err != nil {
			return fmt.Errorf("decision at offset %d: %w", m.Offset, err)
		}
		seen.decisions.Add(1)
		time.AfterFunc(later(wait), func() {
			if err := reward(ctx, w, model, &d, &seen); err != nil && ctx.Err() == nil {
				stop(err)
			}
			if enough > 0 && seen.outcomes.Load() >= enough {
				select {
				case done <- struct{}{}:
					show(&seen)
					stop(errEnough)
				default:
				}
			}
		})
	}
}

var errEnough = errors.New("enough")

// send writes contexts until the context ends.
func send(ctx context.Context, w *kafka.Writer, model string, rate float64, seen *counts) error {
	tick := time.NewTicker(time.Duration(float64(time.Second) / rate))
	defer tick.Stop()
	run := rand.Uint32() // ids of a run are its own
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		id := fmt.Sprintf("load-%08x-%d", run, i)
		value, err := json.Marshal(map[string]any{
			"id":       id,
			"features": map[string]any{"device": devices[rand.IntN(len(devices))], "hour": rand.IntN(24)},
			"actions":  []string{"news", "sport", "games"},
		})
		if err != nil {
			return err
		}
		if err := w.WriteMessages(ctx, kafka.Message{Topic: model + ".contexts", Key: []byte(id), Value: value}); err != nil {
			return fmt.Errorf("write contexts: %w", err)
		}
		seen.contexts.Add(1)
	}
}

// decision is what is read of a decision; it carries the context as it came.
type decision struct {
	ID      string          `msgpack:"id"`
	Action  string          `msgpack:"action"`
	Context json.RawMessage `msgpack:"context"`
}

// control reports whether a record is the system's own.
func control(headers []kafka.Header) bool {
	for _, h := range headers {
		if h.Key == "hindsight-type" {
			return true
		}
	}
	return false
}

// reward writes the outcome of a decision: 1 if the visitor clicked.
func reward(ctx context.Context, w *kafka.Writer, model string, d *decision, seen *counts) error {
	var c struct {
		Features struct {
			Device string `json:"device"`
		} `json:"features"`
	}
	if err := json.Unmarshal(d.Context, &c); err != nil {
		return nil // another client's context
	}
	click := 0
	if rand.Float64() < clicks[c.Features.Device][d.Action] {
		click = 1
	}
	value, err := json.Marshal(map[string]any{"id": d.ID, "action": d.Action, "reward": click})
	if err != nil {
		return err
	}
	if err := w.WriteMessages(ctx, kafka.Message{Topic: model + ".outcomes", Key: []byte(d.ID), Value: value}); err != nil {
		return fmt.Errorf("write outcomes: %w", err)
	}
	seen.outcomes.Add(1)
	seen.clicks.Add(int64(click))
	return nil
}

// later draws a log-normal delay.
func later(median time.Duration) time.Duration {
	return time.Duration(float64(median) * math.Exp(rand.NormFloat64()))
}

func report(ctx context.Context, seen *counts) {
	tick := time.NewTicker(10 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			show(seen)
		}
	}
}

func show(seen *counts) {
	n := seen.outcomes.Load()
	fmt.Printf("contexts %d, decisions %d, outcomes %d, clicks %.3f an outcome (uniform play: 0.152, the best: 0.317)\n",
		seen.contexts.Load(), seen.decisions.Load(), n, float64(seen.clicks.Load())/float64(max(n, 1)))
}
