// Command load is a source of load, and an example of a pipeline: it asks for decisions and some seconds later says
// what each was worth, in a made-up world in which the best of three articles depends on the visitor. On Kafka it
// writes contexts, reads decisions and writes outcomes; with -nats it asks, and reports, by requests. It writes what it
// saw every ten seconds. With -prompts the actions are language models, and a file says what each of them made of a
// prompt.
//
//	load -brokers localhost:9092 -model shop -rate 50
//	load -nats nats://localhost:4222 -model shop -rate 50
//	load -nats nats://localhost:4222 -model route -prompts compose/route/prompts.jsonl
package main

import (
	"context"
	"errors"
	"flag"
	"log"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// plan is what the flags say.
type plan struct {
	brokers, nats, model string
	world                world
	rate                 float64       // contexts a second
	enough               int64         // outcomes; 0: no end
	wait                 time.Duration // median delay of outcomes
}

func main() {
	var p plan
	flag.StringVar(&p.brokers, "brokers", "localhost:9092", "addresses of brokers, joined by commas")
	flag.StringVar(&p.nats, "nats", "", "ask by requests on these servers, and use no brokers")
	flag.StringVar(&p.model, "model", "shop", "name of the model, with which its topics and subjects begin")
	flag.Float64Var(&p.rate, "rate", 20, "contexts a second")
	flag.Int64Var(&p.enough, "n", 0, "stop after so many outcomes; 0: never")
	flag.DurationVar(&p.wait, "delay", 2*time.Second, "median delay of outcomes")
	prompts := flag.String("prompts", "", "play the prompts of this file, for a model as in compose/route/route.yaml")
	flag.Parse()
	p.world = shop{}
	if *prompts != "" {
		var err error
		if p.world, err = readPrompts(*prompts); err != nil {
			log.Fatal(err)
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	work := overKafka
	if p.nats != "" {
		work = byRequests
	}
	if err := work(ctx, &p); err != nil && ctx.Err() == nil && !errors.Is(err, errEnough) {
		log.Fatal(err)
	}
}

// errEnough ends the work after the outcomes that were asked for.
var errEnough = errors.New("enough")

func (p *plan) addresses() []string { return strings.Split(p.brokers, ",") }

// between returns the time from one context to the next.
func (p *plan) between() time.Duration { return time.Duration(float64(time.Second) / p.rate) }
