package learner_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

// watching is the default learner over an oracle of a kind and version, as backtests make it.
func watching(t testing.TB, d *labelled, kind string, version int) *learner.DAFA {
	t.Helper()
	k := len(d.inputs[0].Actions)
	beta, most := oracle.AutoBeta(k, d.columns), max(oracle.DefaultMaxFeatures, d.columns)
	var reg oracle.Regressor
	var err error
	switch kind {
	case "auto":
		reg, err = oracle.NewAggregate(oracle.AggregateOptions{Columns: d.columns, Beta: beta, MaxFeatures: most,
			Fourier: oracle.AutoFourier(k, d.columns), Version: version})
	case "linear":
		reg, err = oracle.NewLinear(oracle.LinearOptions{Beta: beta, Lambda: oracle.AutoLambda(d.columns),
			MaxFeatures: most, Version: version})
	default:
		reg, err = oracle.NewShared(oracle.SharedOptions{Hybrid: kind == "hybrid", Hashed: 96, MaxFeatures: most,
			Version: version})
	}
	if err != nil {
		t.Fatal(err)
	}
	return learner.NewDAFA(reg, learner.Root{C: learner.RootBalanced})
}

func mean(v []float64) (s float64) {
	for _, x := range v {
		s += x / float64(len(v))
	}
	return s
}

// TestSecondHalves: on the public sets whose labels move on by one at half, the second half
// loses no more than is asked for each kind of oracle; without a watch it loses far more.
func TestSecondHalves(t *testing.T) {
	if testing.Short() {
		t.Skip("pure and long: the race detector has nothing to find here")
	}
	exp50w200 := delays{exp50.wait, 200}
	for _, c := range []struct {
		set, kind string
		delay     delays
		most      float64
	}{
		{"satimage_drift", "auto", noDelay, .18}, {"segment_drift", "auto", noDelay, .20},
		{"nursery_drift", "auto", noDelay, .105},
		{"satimage_drift", "auto", exp50w200, .27}, {"satimage_drift", "linear", noDelay, .25},
		{"segment_drift", "linear", noDelay, .25},
		{"nursery_drift", "linear", noDelay, .12}, {"segment_drift", "hybrid", noDelay, .35},
	} {
		t.Run(fmt.Sprintf("%s/%s/%v", c.set, c.kind, c.delay.window), func(t *testing.T) {
			t.Parallel()
			d := readLabelled(t, c.set)
			l := watching(t, &d, c.kind, oracle.Newest)
			losses := d.play(l, d.order(0), c.delay, 0)
			half := len(losses) / 2
			second := mean(losses[half:])
			changes, _ := learner.Changes(l)
			t.Logf("%.3f in the first half, %.3f in the second; %+v", mean(losses[:half]), second, changes)
			if second > c.most {
				t.Errorf("the second half loses %.3f, want at most %v", second, c.most)
			}
			if changes.Count == 0 || changes.Last[0].Example < int64(half)*19/20 ||
				changes.Last[0].Example > int64(half)+100 {
				t.Errorf("it was noticed at %+v, the change is after round %d", changes, half)
			}
		})
	}
}

// TestStillStreams: in streams in which nothing changes the alarm is raised in no more than is
// stated, with and without delays and noise. The streams are made here; the long form plays 200
// of the public sets.
func TestStillStreams(t *testing.T) {
	if testing.Short() {
		t.Skip("pure and long: the race detector has nothing to find here")
	}
	streams, sets := 20, []labelled{drawn(6, 4, 500), drawn(26, 8, 1000)}
	if os.Getenv("HINDSIGHT_LONG") != "" {
		streams, sets = 200, nil
		for _, name := range []string{"mushroom", "nursery", "pendigits", "satimage", "segment"} {
			sets = append(sets, readLabelled(t, name))
		}
	}
	for _, kind := range []string{"auto", "linear", "hybrid"} {
		for name, delay := range map[string]delays{"none": noDelay, "exp:50": {exp50.wait, 200}} {
			t.Run(kind+"/"+name, func(t *testing.T) {
				t.Parallel()
				alarmed, streams := 0, streams
				if kind == "linear" {
					streams *= 5
				}
				for i := range streams {
					d := sets[i%len(sets)]
					d.noise = float64(i/len(sets)%2) * .2
					l := watching(t, &d, kind, oracle.Newest)
					d.play(l, d.order(i/len(sets)/2), delay, uint64(i))
					if changes, ok := learner.Changes(l); changes.Count > 0 || !ok {
						alarmed++
						t.Logf("stream %d, K=%d, noise %v: %+v", i, len(d.inputs[0].Actions), d.noise, changes)
					}
				}
				rate := float64(alarmed) / float64(streams)
				t.Logf("alarms in %d of %d still streams", alarmed, streams)
				if most := oracle.ChangeAlarms + 2*math.Sqrt(oracle.ChangeAlarms*(1-oracle.ChangeAlarms)/float64(
					streams)); rate > most {
					t.Errorf("false alarms in %.4f of %d still streams, at most %.4f are allowed", rate, streams, most)
				}
			})
		}
	}
}

// drawn is a still stream of n rounds: k labels, each the direction of d in which x is largest.
func drawn(k, d, n int) (out labelled) {
	rng := rand.New(rand.NewPCG(uint64(k), uint64(d)))
	w := make([][]float64, k)
	var actions []oracle.Action
	for a := range w {
		for range d {
			w[a] = append(w[a], rng.NormFloat64())
		}
		actions = append(actions, oracle.Action{Name: fmt.Sprint("a", a)})
	}
	for range n {
		x := oracle.Input{Actions: actions}
		score := make([]float64, k)
		for j := range d {
			v := rng.NormFloat64()
			x.Features = append(x.Features, oracle.Feature{Name: fmt.Sprint("n_", j), Kind: oracle.Number, Value: v})
			for a := range score {
				score[a] += w[a][j] * v
			}
		}
		out.inputs = append(out.inputs, x)
		out.labels = append(out.labels, slices.Index(score, slices.Max(score)))
	}
	out.columns = d + 1
	return out
}
