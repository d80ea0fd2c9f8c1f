package judge

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"testing"

	"hindsight/internal/logs"
)

// ccbLine is a line of a log with slots, read by another program than ours.
type ccbLine struct {
	C struct {
		Multi []struct {
			Tag string `json:"_tag"`
		} `json:"_multi"`
	}
	Outcomes []struct {
		Cost    float64   `json:"_label_cost"`
		Actions []int     `json:"_a"`
		P       []float64 `json:"_p"`
	} `json:"_outcomes"`
}

// ccbSlot is one slot of it: the actions that are left, which was played, with which propensity, and the reward.
type ccbSlot struct {
	left      []string
	played    string
	p, reward float64
}

func ccbSlots(t *testing.T, path string) (slots []ccbSlot) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Skipf("the data that this test needs is not there: %v", err)
	}
	defer f.Close()
	for in := bufio.NewScanner(f); in.Scan(); {
		var l ccbLine
		if err := json.Unmarshal(in.Bytes(), &l); err != nil {
			t.Fatal(err)
		}
		name := func(i int) string {
			if tag := l.C.Multi[i].Tag; tag != "" {
				return tag
			}
			return fmt.Sprint(i + 1)
		}
		for _, o := range l.Outcomes {
			s := ccbSlot{played: name(o.Actions[0]), p: o.P[0], reward: -o.Cost}
			for _, a := range o.Actions { // all that are left, in these logs
				s.left = append(s.left, name(a))
			}
			slots = append(slots, s)
		}
	}
	return slots
}

// TestSlotsByHand holds that IPS, SNIPS and DR of a log with slots are those of a computation by hand, slot by slot:
// the weight of a slot is that of its own draw, given the slots before.
func TestSlotsByHand(t *testing.T) {
	for file, policies := range map[string][]string{
		"ccb_data.json": {"uniform", "always:Latte"}, "ccb_reuse_medium.dsjson": {"uniform", "always:5"},
	} {
		path := "../../../shared/data/ccb/" + file
		slots := ccbSlots(t, path)
		log, err := openLog(path, logs.Options{})
		if err != nil {
			t.Fatal(err)
		}
		o := judged(t, log)
		opt := o.Options()
		opt.Model.Folds, opt.Model.Mean, opt.Model.Count = 1, .5, 2 // q̂(a) = (Σr + 1)/(n + 2)
		sum, count := map[string]float64{}, map[string]float64{}
		for _, s := range slots {
			sum[s.played] += s.reward
			count[s.played]++
		}
		for _, spec := range policies {
			var ips, weights, dr float64
			for _, s := range slots {
				law := byHandLaw(spec, s.left)
				w := law[s.played] / s.p
				ips, weights = ips+w*s.reward, weights+w
				for a, p := range law {
					dr += p * (sum[a] + 1) / (count[a] + 2)
				}
				dr += w * (s.reward - (sum[s.played]+1)/(count[s.played]+2))
			}
			e, err := o.Evaluate(spec, opt)
			if err != nil {
				t.Fatal(err)
			}
			n := float64(len(slots))
			for name, want := range map[string]float64{"ips": ips / n, "snips": ips / weights, "dr": dr / n} {
				if got := float64(e.Estimates.Get(name).Value); !(math.Abs(got-want) <= 1e-9) {
					t.Errorf("%s, %s: %s is %v, by hand %v", file, spec, name, got, want)
				}
			}
		}
	}
}

// byHandLaw is what a policy plays of the actions that are left: all alike where the one that it always plays is not.
func byHandLaw(spec string, left []string) map[string]float64 {
	law := map[string]float64{}
	for _, a := range left {
		if spec == "always:"+a {
			return map[string]float64{a: 1}
		}
		law[a] = 1 / float64(len(left))
	}
	return law
}
