package service

import (
	"crypto/sha256"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"hindsight/internal/check"
	"hindsight/internal/testkit/daily"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// The simulation finds faults that are planted: a check that cannot fail is none.
func TestSimulationFindsPlantedFaults(t *testing.T) {
	for name, plant := range map[string]planted{
		"rejects are not stored before what passes them":   {flushLies: true},
		"a mark overtakes a feedback, a decision another":  {overtake: true},
		"ids are not remembered":                           {forget: true},
		"feedback in the order of arrival":                 {arrival: true},
		"windows are one round or one nanosecond too long": {window: true},
		"silence is learned as another loss":               {silence: true},
		"silence is learned early as another loss":         {soon: true},
		"draws of units hold for too long":                 {sticky: true},
		"draws come from another seed":                     {seed: true},
		"the log lets earlier owners write":                {unfenced: true},
		"a cut's rejects are stored before it":             {hasty: true},
		"a cut leaves the last outcome out":                {stale: "m.outcomes"},
		"the end of decisions is that before an outcome":   {stale: "m.decisions"},
		"a tick goes by the clock of a process":            {ahead: true},
		"limits change without a mark":                     {limits: true},
		"the number of a cut is used twice":                {cut: repeatCut},
		"the position of a cut goes back":                  {cut: goBack},
		"a cut sums one record less":                       {cut: sumShort},
		"a restart reads from a mark that is too new":      {mark: fromTooNew},
		"a stage is told twice":                            {feedback: stageAgain},
		"a stage is told before an earlier one":            {feedback: stageAhead},
		"a named outcome is dropped":                       {feedback: dropOutcome},
		"a named outcome is not on its own scale":          {feedback: normalise},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range int64(400) {
				s := newSim(t, seed, plant)
				s.run()
				s.verify()
				if len(s.broken) > 0 {
					t.Logf("seed %d: %s", seed, s.broken[0])
					return
				}
			}
			t.Error("not found")
		})
	}
}

// So does the one with power losses.
func TestPowerLossFindsPlantedFaults(t *testing.T) {
	for name, plant := range map[string]planted{
		"an era does not tell of the rounds that are done": {mark: withoutDone},
		"a restart reads from a mark that is too new":      {mark: fromTooNew},
		"the number of a cut is used twice":                {cut: repeatCut},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range int64(400) {
				if s := playPower(t, seed, power{plant: plant}); len(s.broken) > 0 {
					t.Logf("seed %d: %s", seed, s.broken[0])
					return
				}
			}
			t.Error("not found")
		})
	}
}

// A seed gives the same logs each time: a failure can be reproduced.
func TestSimulationIsReproducible(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector has nothing to find in one goroutine")
	}
	logs := func(seed int64) string {
		s := newSim(t, seed, planted{})
		s.run()
		h := sha256.New()
		look := func(topic string, p int) {
			s.records(topic, p, func(r *stream.Record) {
				fmt.Fprintln(h, topic, p, r.Offset, r.Time, r.Type, r.Value, r.Headers)
			})
		}
		for p := range s.o.partitions {
			look(s.topics.Contexts, p)
			look(s.topics.Decisions, p)
			look(s.topics.Outcomes, p)
		}
		look(s.topics.Feedback, 0)
		look(s.topics.Rejects, 0)
		look(s.topics.Snapshots, 0)
		return string(h.Sum(nil))
	}
	for seed := range int64(max(8, simSeeds(t)/25)) {
		first := logs(seed)
		if again := logs(seed); again != first {
			t.Fatalf("seed %d gives different logs", seed)
		}
	}
}

// damage is what a test does to one record of a log.
type damage struct {
	name string
	do   func(topic string, recs []stream.Record, i int) []stream.Record // nil: not possible there
}

var damages = []damage{
	{"drop", func(topic string, recs []stream.Record, i int) []stream.Record { return slices.Delete(recs, i, i+1) }},
	{"double", func(topic string, recs []stream.Record, i int) []stream.Record {
		again := recs[i]
		again.Offset++ // offsets have holes
		return slices.Insert(recs, i+1, again)
	}},
	{"swap", func(topic string, recs []stream.Record, i int) []stream.Record {
		if i+1 == len(recs) || string(recs[i].Value) == string(recs[i+1].Value) {
			return nil
		}
		a, b := &recs[i], &recs[i+1]
		a.Value, b.Value, a.Type, b.Type, a.Headers, b.Headers = b.Value, a.Value, b.Type, a.Type, b.Headers, a.Headers
		return recs
	}},
	{"alter", func(topic string, recs []stream.Record, i int) []stream.Record {
		r := &recs[i]
		if len(r.Value) == 0 {
			return nil
		}
		v := slices.Clone(r.Value)
		k := i * 31 % len(v)
		v[k] ^= 1 << (i % 8)
		if same(topic, r, v) {
			return nil
		}
		r.Value = v
		return recs
	}},
}

// same reports whether a change of a record's bytes changes nothing that the logs can
// tell: the bytes mean the same (an outcome without an action is one of the action that was
// drawn), or what changed is for people (an outcome's own id) or follows only from
// replaying the learner, which verify does.
func same(topic string, r *stream.Record, v []byte) bool {
	switch {
	case topic == "outcomes":
		var o, p codec.Outcome
		if codec.ParseOutcome(&o, r.Value) == nil && codec.ParseOutcome(&p, v) == nil {
			o.OutcomeID, p.OutcomeID = "", ""
			if o.Action == "" || p.Action == "" {
				o.Action, p.Action = "", ""
			}
			if o.Kind == codec.Reward && p.Kind == codec.Reward { // of which the loss may be the same
				o.Value, p.Value = 1-o.Value, 1-p.Value
			}
			return reflect.DeepEqual(o, p)
		}
	case topic == "decisions" && r.Type == "":
		var d, e codec.Decision
		if codec.ParseDecision(&d, r.Value) == nil && codec.ParseDecision(&e, v) == nil {
			d.Time, e.Time, d.Learned, e.Learned = 0, 0, 0, 0
			return string(codec.AppendDecision(nil, &d)) == string(codec.AppendDecision(nil, &e))
		}
	case topic == "feedback" && r.Type == "":
		var f, g codec.Feedback
		if codec.ParseFeedback(&f, r.Value) == nil && codec.ParseFeedback(&g, v) == nil {
			return string(codec.AppendFeedback(nil, &f)) == string(codec.AppendFeedback(nil, &g))
		}
	}
	return false
}

// invisible says which damage no reader of the logs can see, by design.
func invisible(topic, kind, next, damage string) bool {
	switch {
	case kind == stream.TypeOpen || damage == "swap" && next == stream.TypeOpen:
		return true // an open record says who came, and nothing depends on it
	case kind == codec.TypeMark && (damage == "drop" || damage == "double"):
		return true // a restart reads back to an earlier mark, or the same
	case topic == "rejects" && (damage == "double" || damage == "swap"):
		return true // they are written at least once, in any order
	case topic == "snapshots" && damage != "alter":
		return true // one less, or an incomplete one, or the same twice
	}
	return false
}

// The checker objects to a log with one record dropped, doubled, swapped with its
// neighbour or altered, in every topic.
func TestCheckerObjects(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector has nothing to find in one goroutine")
	}
	s := goodLog(t)
	reject := map[string]int{} // rejects written more than once: one may be dropped
	s.records(s.topics.Rejects, 0, func(r *stream.Record) {
		x, _ := codec.ParseReject(r.Value)
		reject[fmt.Sprint(x.Topic, x.Partition, x.Offset)]++
	})
	objected := map[string]int{}
	for _, topic := range []string{"contexts", "decisions", "outcomes", "feedback", "rejects", "snapshots"} {
		var recs []stream.Record
		s.log.Edit("m."+topic, 0, func(r []stream.Record) []stream.Record { recs = slices.Clone(r); return r })
		step := 1 + len(recs)/60
		for i := 0; i < len(recs); i += step {
			for k, d := range damages {
				if !daily.Turn(t, i/step+k, 2) {
					continue
				}
				next := ""
				if i+1 < len(recs) {
					next = recs[i+1].Type
				}
				bad := d.do(topic, slices.Clone(recs), i)
				if bad == nil || invisible(topic, recs[i].Type, next, d.name) {
					continue
				}
				if x, err := codec.ParseReject(recs[i].Value); topic == "rejects" && err == nil && d.name == "drop" &&
					reject[fmt.Sprint(x.Topic, x.Partition, x.Offset)] > 1 {
					continue
				}
				s.log.Edit("m."+topic, 0, func([]stream.Record) []stream.Record { return bad })
				r, err := check.Run(s.ctx, s.log, "m", s.o.partitions, s.checkOptions())
				if err == nil && r.Broken == 0 {
					t.Errorf("%s of record %d of %s (%q, next %q) was not noticed: %q", d.name, i, topic, recs[i].Type,
						next,
						recs[i].Value)
				}
				objected[topic+" "+d.name]++
			}
		}
		s.log.Edit("m."+topic, 0, func([]stream.Record) []stream.Record { return recs })
	}
	t.Log(objected)
	r, err := check.Run(s.ctx, s.log, "m", s.o.partitions, s.checkOptions())
	if err != nil || r.Broken > 0 {
		t.Errorf("the log was not put back: %v %v", r, err)
	}
}

// goodLog returns a run with holes between offsets, of one partition, with all
// kinds of records.
func goodLog(t *testing.T) *sim {
	for seed := range int64(5000) {
		s := newSim(t, seed, planted{})
		if s.o.partitions > 1 || s.o.backwards || s.o.guesses || s.o.coarse || s.o.skew > 0 || s.o.rules.Early ||
			s.o.snapshots == 0 || s.o.crashes == 0 {
			continue
		}
		s.run()
		s.verify()
		if len(s.broken) == 0 && s.counted["snapshots"] > 1 && s.counted["fate observed"] > 15 &&
			s.counted["reject orphan"] > 0 && s.counted["epochs"] > 1 && s.hasHoles() {
			return s
		}
	}
	t.Fatal("no seed gives a log with everything in it")
	return nil
}

// hasHoles reports whether there is room between offsets.
func (s *sim) hasHoles() bool {
	last, holes := int64(-10), true
	s.records(s.topics.Contexts, 0, func(r *stream.Record) {
		holes = holes && r.Offset > last+1
		last = r.Offset
	})
	return holes
}
