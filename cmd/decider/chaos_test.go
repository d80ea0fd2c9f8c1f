package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// chaosCount is how many faults a run has: 3, with HINDSIGHT_CHAOS=1 25, and with
// HINDSIGHT_LONG=1 200, at a pace at which the ids of all rounds are remembered.
func chaosCount() (faults, slow int) {
	if os.Getenv("HINDSIGHT_LONG") == "1" {
		return 200, 6
	}
	if os.Getenv("HINDSIGHT_CHAOS") == "1" {
		return 25, 2
	}
	return 3, 2
}

// TestChaos hurts a system of two deciders and two joiners on a nats-server, each a
// process of its own, in every way there is, at random moments under load. Nothing may
// be lost, decided twice or joined twice, and who was paused must change nothing. Two such
// systems share the faults: one has one loss, the other named outcomes and a budget.
func TestChaos(t *testing.T) {
	notShort(t)
	faults, slow := chaosCount()
	for name, world := range map[string]struct {
		model  string
		faults int
	}{"one loss": {shop, faults - faults/2}, "named outcomes": {shopNamed, faults / 2}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runChaos(t, newOnNATS(t), world.model, world.faults, slow)
		})
	}
}

// shopNamed has two stages, and prices that constants make of what is reported.
const shopNamed = `name: shop
version: 1
actions: [red, green, blue, black]
outcomes:
  cost: {max: 4, window: 100ms, missing: {impute: 1}}
  quality: {window: 300ms}
constants: {usd: {red: 1, green: 2, blue: 3, black: 4}}
reward: quality - 0.25*cost
budget: {spend: {of: usd*cost, mean_at_most: 4, about: {red: 2, green: 4, blue: 6, black: 8}}}
`

// runChaos is the same in every place, of every model. The users are so many times slower
// than they could be.
func runChaos(t *testing.T, place chaosPlace, model string, faults, slow int) {
	seed := testSeed(t)
	c := newChaos(t, place, model, seed, slow)
	c.goesOn()
	began := time.Now()
	count := map[string]int{}
	all := plan(c.r, append(chaosFaults(), place.faults()...), faults)
	for i, f := range all {
		c.wait(false)
		if testing.Verbose() {
			t.Logf("%v: fault %d, %s", time.Since(began).Round(time.Millisecond), i+1, f.name)
		}
		f.strike(c)
		count[f.name]++
		if up := time.Now(); c.r.IntN(3) > 0 || i == faults-1 {
			c.goesOn()
			c.again = append(c.again, time.Since(up))
		} // else the next one strikes before the system has recovered
	}
	under := time.Since(began)
	c.load.stop()
	settle(t, c.load)
	c.revive()
	calm := time.Since(began) - under
	for _, p := range append(c.deciders, c.joiners...) {
		p.stop(patience)
	}
	r := c.audit()
	c.plantFaults(r)
	if c.place.writes() && c.wokeUp >= 6 && c.woken == 0 || c.wokeUp >= 24 && c.woken == 0 {
		t.Errorf("none of %d that woke up met the fence", c.wokeUp)
	}
	for _, p := range c.byPID {
		if strings.Contains(p.log(), chaosPassword) {
			t.Error("a log shows the password")
		}
	}
	var kinds []string
	for _, name := range slices.Sorted(maps.Keys(count)) {
		kinds = append(kinds, fmt.Sprintf("%d × %s", count[name], name))
	}
	audited := time.Since(began) - under - calm
	slices.Sort(c.over)
	slices.Sort(c.again)
	t.Logf("%d faults in %v, then %v to settle and %v to audit: %s; %d processes, %d of them in the place of one that "+
		"had found no server; %d woke up, %d of them met the fence, others had taken over after %v; everything "+
		"at work again after %v; %d requests refused by who was paused; %d replies; %s",
		faults, under.Round(time.Second), calm.Round(time.Millisecond), audited.Round(time.Millisecond),
		strings.Join(kinds, ", "), len(c.byPID), c.revived, c.wokeUp, c.woken, ends(c.over), ends(c.again),
		len(c.refused),
		len(c.load.replies), figures(r))
}

// ends is the least and the greatest of sorted durations.
func ends(d []time.Duration) string {
	if len(d) == 0 {
		return "(none)"
	}
	return fmt.Sprintf("%v to %v", d[0].Round(time.Millisecond), d[len(d)-1].Round(time.Millisecond))
}

// TestPlan holds that no kind of fault is left out.
func TestPlan(t *testing.T) {
	for _, n := range []int{3, 25, 200} {
		kinds := append(chaosFaults(), (&onNATS{}).faults()...)
		count := map[string]int{}
		for _, f := range plan(rand.New(rand.NewPCG(uint64(n), 0)), kinds, n) {
			count[f.name]++
		}
		for _, k := range kinds {
			if count[k.name] < n/len(kinds) {
				t.Errorf("of %d faults %d are %q", n, count[k.name], k.name)
			}
		}
	}
}
