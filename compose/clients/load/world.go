package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// world makes contexts and says what comes of actions.
type world interface {
	// visit returns the features and the actions of a context.
	visit() (features map[string]any, actions []string)
	// respond returns what is reported of an action, the last of it after a delay, and what it adds to the sums;
	// nil where the context is another client's.
	respond(context []byte, action string) (reports []map[string]any, adds [2]float64)
	// line says what the sums of n rounds mean.
	line(sums [2]float64, n float64) string
}

// shop is a world of visitors who click, or do not.
type shop struct{}

// clicks is the chance of a click: visitors by articles.
var clicks = map[string]map[string]float64{
	"desktop": {"news": .30, "sport": .10, "games": .05},
	"phone":   {"news": .05, "sport": .25, "games": .10},
	"console": {"news": .02, "sport": .10, "games": .40},
}

var devices = []string{"desktop", "phone", "console"}

func (shop) visit() (map[string]any, []string) {
	return map[string]any{"device": devices[rand.IntN(len(devices))], "hour": rand.IntN(24)},
		[]string{"news", "sport", "games"}
}

func (shop) respond(body []byte, action string) ([]map[string]any, [2]float64) {
	var c struct {
		Features struct {
			Device string `json:"device"`
		} `json:"features"`
	}
	if json.Unmarshal(body, &c) != nil {
		return nil, [2]float64{}
	}
	click := 0.0
	if rand.Float64() < clicks[c.Features.Device][action] {
		click = 1
	}
	return []map[string]any{{"reward": click}}, [2]float64{click}
}

func (shop) line(sums [2]float64, n float64) string {
	return fmt.Sprintf("clicks %.3f an outcome (uniform play: 0.152, the best: 0.317)", sums[0]/n)
}

// context makes the next context of a run.
func (p *plan) context(run uint32, i int) (id string, value []byte, err error) {
	id = fmt.Sprintf("load-%08x-%d", run, i)
	features, actions := p.world.visit()
	value, err = json.Marshal(map[string]any{"id": id, "features": features, "actions": actions})
	return id, value, err
}

// reports returns the outcomes of a decision, as they are sent.
func (p *plan) reports(body []byte, id, action string) (values [][]byte, adds [2]float64, err error) {
	reports, adds := p.world.respond(body, action)
	for _, r := range reports {
		r["id"], r["action"] = id, action
		b, err := json.Marshal(r)
		if err != nil {
			return nil, adds, err
		}
		values = append(values, b)
	}
	return values, adds, nil
}

// counts are what happened since the start.
type counts struct {
	contexts, decisions, outcomes atomic.Int64

	mu   sync.Mutex
	sums [2]float64

	failure atomic.Pointer[error] // of the last request that was refused or not answered; nil: none since the last line
}

func (c *counts) outcome(adds [2]float64) {
	c.outcomes.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range adds {
		c.sums[i] += adds[i]
	}
}

// played plays a round, and stops all of them where it fails, or where it had the last of the outcomes asked for.
func (c *counts) played(ctx context.Context, p *plan, stop context.CancelCauseFunc, round func() error) {
	if err := round(); err != nil && ctx.Err() == nil {
		stop(err)
	} else if p.enough > 0 && c.outcomes.Load() >= p.enough {
		stop(errEnough)
	}
}

// later draws a log-normal delay.
func later(median time.Duration) time.Duration {
	return time.Duration(float64(median) * math.Exp(rand.NormFloat64()))
}

func report(ctx context.Context, seen *counts, w world) {
	tick := time.NewTicker(10 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			show(seen, w)
		}
	}
}

func show(seen *counts, w world) { fmt.Print(seen.text(w)) }

// text returns the line of the counts, and below it why requests are sent again.
func (c *counts) text(w world) string {
	n := c.outcomes.Load()
	c.mu.Lock()
	sums := c.sums
	c.mu.Unlock()
	line := fmt.Sprintf("contexts %d, decisions %d, outcomes %d, %s\n", c.contexts.Load(), c.decisions.Load(), n,
		w.line(sums, float64(max(n, 1))))
	if err := c.failure.Swap(nil); err != nil {
		line += fmt.Sprintf("  some requests are sent again: %v\n", *err)
	}
	return line
}
