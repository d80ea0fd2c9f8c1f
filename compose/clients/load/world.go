package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// clicks is the chance of a click: visitors by articles.
var clicks = map[string]map[string]float64{
	"desktop": {"news": .30, "sport": .10, "games": .05},
	"phone":   {"news": .05, "sport": .25, "games": .10},
	"console": {"news": .02, "sport": .10, "games": .40},
}

var devices = []string{"desktop", "phone", "console"}

// counts are what happened since the start.
type counts struct {
	contexts, decisions, outcomes, clicks atomic.Int64

	failure atomic.Pointer[error] // of the last request that was refused or not answered; nil: none since the last line
}

func (c *counts) outcome(click int64) {
	c.outcomes.Add(1)
	c.clicks.Add(click)
}

// all reports whether as many outcomes as were asked for are written.
func (c *counts) all(enough int64) bool { return enough > 0 && c.outcomes.Load() >= enough }

// visit makes the next context of a run.
func visit(run uint32, i int) (id string, value []byte, err error) {
	id = fmt.Sprintf("load-%08x-%d", run, i)
	value, err = json.Marshal(map[string]any{
		"id":       id,
		"features": map[string]any{"device": devices[rand.IntN(len(devices))], "hour": rand.IntN(24)},
		"actions":  []string{"news", "sport", "games"},
	})
	return id, value, err
}

// respond draws whether the visitor of a context clicks on what is shown, and makes the
// outcome; nil where the context is another client's.
func respond(body []byte, id, action string) (click int64, value []byte, err error) {
	var c struct {
		Features struct {
			Device string `json:"device"`
		} `json:"features"`
	}
	if json.Unmarshal(body, &c) != nil {
		return 0, nil, nil
	}
	if rand.Float64() < clicks[c.Features.Device][action] {
		click = 1
	}
	value, err = json.Marshal(map[string]any{"id": id, "action": action, "reward": click})
	return click, value, err
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

func show(seen *counts) { fmt.Print(seen) }

// String returns the line of the counts, and below it why requests are sent again.
func (c *counts) String() string {
	n := c.outcomes.Load()
	line := fmt.Sprintf("contexts %d, decisions %d, outcomes %d, clicks %.3f an outcome (uniform play: 0.152, the best: "+
		"0.317)\n", c.contexts.Load(), c.decisions.Load(), n, float64(c.clicks.Load())/float64(max(n, 1)))
	if err := c.failure.Swap(nil); err != nil {
		line += fmt.Sprintf("  some requests are sent again: %v\n", *err)
	}
	return line
}
