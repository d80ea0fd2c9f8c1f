package judge

import (
	"fmt"

	"hindsight/internal/latelosses"
	"hindsight/internal/logs"
	"hindsight/internal/words"
)

// Choice says which 95 % interval is right for a log, by the table of docs/off-policy.md.
type Choice struct {
	// normal (of DR), any_time, or any_time.worst: where it stands among the figures of a policy
	Right string `json:"right"`
	Why   string `json:"why"`
}

// The intervals that are chosen from.
const (
	NormalInterval  = "normal"
	AnyTimeInterval = "any_time"
	WorstInterval   = "any_time.worst"
)

// chooseInterval looks at who made the log, at whether it can be looked at again, and at what is missing.
func (o *OffPolicy) chooseInterval() Choice {
	made, fixed := o.madeBy()
	c := Choice{Right: AnyTimeInterval}
	switch live := o.log.Intake != nil && o.log.Intake.Format == logs.Topics; {
	case live:
		c.Why = made + ", and the log of a live system can be looked at again and again"
	case fixed:
		c.Right, c.Why = NormalInterval, made+", and a file is looked at once"
	default:
		c.Why = made
	}
	missing, late := fmt.Sprintf("the %s rows without an outcome are taken as missing at random",
		words.Count(int64(o.dropped))), o.lateLosses()
	switch {
	case o.dropped == 0:
		missing = "every row has an outcome"
	case late == nil:
		missing += ", which cannot be tested without the times of outcomes"
	case late.Differ():
		c.Right = WorstInterval
		missing = fmt.Sprintf("outcomes that took longer than the mean have a mean loss of %s, the others one of %s, "+
			"so the %s rows without an outcome may be worth anything", words.Figure(late.Late.Mean(), 3),
			words.Figure(late.OnTime.Mean(), 3), words.Count(int64(o.dropped)))
	}
	c.Why += "; " + missing + o.byUnit(c.Right)
	return c
}

// byUnit says what the interval says of units.
func (o *OffPolicy) byUnit(right string) string {
	switch units := words.Count(int64(o.sample.Units)); {
	case o.sample.Unit == nil:
		return ""
	case right == NormalInterval:
		return "; rows of one unit may depend on each other, and each of " + units + " units counts as one"
	default:
		return "; it is of what these rows were worth, and the normal one, in which each of " + units + " units " +
			"counts as one, of further units"
	}
}

// madeBy says which policy made the log, and whether that was fixed.
func (o *OffPolicy) madeBy() (text string, fixed bool) {
	in := o.log.Intake
	switch {
	case o.constant():
		return "the log played each action with one probability", true
	case in != nil && in.Learned > 0:
		return fmt.Sprintf("%s of its %s decisions are of a learner that learned from it", words.Count(in.Learned),
			words.Count(in.Events)), false
	}
	return "the log does not say that the policy that made it was fixed", false
}

// constant reports whether each action has one propensity in all rows.
func (o *OffPolicy) constant() bool {
	of := make([]float64, o.sample.Actions)
	for i, a := range o.sample.Action {
		o.files.Pass(i)
		p := o.sample.Propensity[i]
		if of[a] == 0 {
			of[a] = p
		}
		if of[a] != p {
			return false
		}
	}
	return true
}

// lateLosses are those of outcomes that took longer than the mean, beside the others; nil: the log has no times.
func (o *OffPolicy) lateLosses() *latelosses.Losses {
	decided, came := o.env.Times()
	if decided == nil {
		return nil
	}
	scale, l, mean := o.env.Scale(), &latelosses.Losses{}, 0.0
	delay := func(i int) float64 { t := o.rows[o.at(i)]; return float64(came[t] - decided[t]) }
	for i := range o.sample.Action {
		mean += delay(i) / float64(o.sample.Len())
	}
	for i, x := range o.sample.Reward {
		o.files.Pass(i)
		x = (x - scale.Min) / (scale.Max - scale.Min)
		if o.rewards() {
			x = 1 - x
		}
		if x = min(max(x, 0), 1); delay(i) > mean {
			l.Late.Add(x)
		} else {
			l.OnTime.Add(x)
		}
	}
	return l
}

// missing returns how many rows without an outcome lie before row t of the sample and behind the one before it.
func (o *OffPolicy) missing(t int) int {
	at, last := o.env.Len(), -1
	if t < o.sample.Len() {
		at = int(o.rows[o.at(t)])
	}
	if t > 0 {
		last = int(o.rows[o.at(t-1)])
	}
	return at - last - 1
}
