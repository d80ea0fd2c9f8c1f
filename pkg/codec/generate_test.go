package codec

import (
	"math"
	"slices"
	"strconv"

	"pgregory.net/rapid"
)

// Generators of valid events. Names are drawn from all of Unicode but its control
// characters.

func genName() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.StringMatching(`[a-z]{1,6}`),
		rapid.StringMatching(`[\pL\pN\pS "\\/{}|]{1,40}`),
		rapid.StringMatching(`[a-z]{30,200}`),
	).Filter(func(s string) bool { return checkName(s, MaxNameBytes) == nil })
}

func genID() *rapid.Generator[string] {
	return rapid.OneOf(rapid.Just(""), genName())
}

func genFloat() *rapid.Generator[float64] {
	return rapid.OneOf(
		rapid.Float64().Filter(finite),
		rapid.SampledFrom([]float64{0, math.Copysign(0, -1), 1, -1, 1e21, 1e-6, 9.99e-7, 1 << 53, 1<<53 + 2,
			math.MaxFloat64, math.SmallestNonzeroFloat64, 0.1, 123456789012345, 1234567890123456}),
		rapid.Map(rapid.Int(), func(i int) float64 { return float64(i) }),
		rapid.Map(rapid.IntRange(-1e6, 1e6), func(i int) float64 { return float64(i) / 1000 }),
	)
}

func genFeature(t *rapid.T, name string) Feature {
	f := Feature{Name: name, Kind: rapid.SampledFrom([]FeatureKind{Number, Text, Bool, Vector}).Draw(t, "kind")}
	switch f.Kind {
	case Number:
		f.Value = genFloat().Draw(t, "value")
	case Text:
		f.Text = rapid.String().Draw(t, "text")
	case Bool:
		f.Value = float64(rapid.IntRange(0, 1).Draw(t, "bool"))
	case Vector:
		f = VectorOf(name, rapid.SliceOfN(genFloat(), 0, 20).Draw(t, "numbers"))
	}
	return f
}

func genFeatures() *rapid.Generator[[]Feature] {
	return rapid.Custom(func(t *rapid.T) []Feature {
		var out []Feature
		for _, name := range genNames(0, 20).Draw(t, "names") {
			out = append(out, genFeature(t, name))
		}
		return out
	})
}

func genNames(least, most int) *rapid.Generator[[]string] {
	return rapid.SliceOfNDistinct(genName(), least, most, rapid.ID[string])
}

func genContext() *rapid.Generator[Context] {
	return rapid.Custom(func(t *rapid.T) Context {
		c := Context{ID: genID().Draw(t, "id")}
		if rapid.Bool().Draw(t, "named") {
			c.Features = genFeatures().Draw(t, "features")
		} else {
			c.Vector = rapid.SliceOfN(genFloat(), 0, 20).Draw(t, "vector")
		}
		if rapid.Bool().Draw(t, "own actions") {
			for _, name := range genNames(1, 20).Draw(t, "actions") {
				a := Action{Name: name}
				if rapid.Bool().Draw(t, "with features") {
					a.Features = genFeatures().Draw(t, "features")
				}
				c.Actions = append(c.Actions, a)
			}
		}
		if rapid.Bool().Draw(t, "own baseline") {
			c.Baseline = genBaseline(t)
		}
		if rapid.Bool().Draw(t, "logged") {
			c.LoggedPropensity = rapid.Float64Range(0, 1).Draw(t, "logged propensity")
		}
		if rapid.Bool().Draw(t, "assigned") {
			c.Assigned = genAssigned(t)
		}
		if rapid.Bool().Draw(t, "with slots") {
			c.Slots = genSlots(t)
		}
		c.Unit = genID().Draw(t, "unit")
		return c
	})
}

func genSlots(t *rapid.T) (out []Slot) {
	for _, name := range genNames(1, 5).Draw(t, "slots") {
		s := Slot{Name: name}
		if rapid.Bool().Draw(t, "more of it") {
			s.Features, s.Actions = genFeatures().Draw(t, "features"), genNames(0, 5).Draw(t, "its actions")
			s.Baseline = genBaseline(t)
		}
		out = append(out, s)
	}
	return out
}

func genAssigned(t *rapid.T) Assigned {
	a := Assigned{Action: genName().Draw(t, "action"), By: genID().Draw(t, "by")}
	switch rapid.IntRange(0, 2).Draw(t, "said") {
	case 1:
		a.Propensity = 1 - rapid.Float64Range(0, .999).Draw(t, "propensity")
	case 2:
		a.Law = genBaseline(t)
		a.Action = rapid.SampledFrom(a.Law).Draw(t, "played").Name
	}
	return a
}

// genUnit draws the unit of round n of a partition, and perhaps an earlier round that it repeats.
func genUnit(t *rapid.T, partition int, n int64) (unit string, first RoundRef) {
	if unit = genID().Draw(t, "unit"); unit != "" && n > 1 && rapid.Bool().Draw(t, "repeat") {
		first = RoundRef{partition, rapid.Int64Range(1, n-1).Draw(t, "first")}
	}
	return unit, first
}

func genOutcome() *rapid.Generator[Outcome] {
	return rapid.Custom(func(t *rapid.T) Outcome {
		o := Outcome{
			ID: genName().Draw(t, "id"), Kind: OutcomeKind(rapid.IntRange(1, 5).Draw(t, "kind")),
			Action: genID().Draw(t, "action"), OutcomeID: genID().Draw(t, "outcome id"),
		}
		if o.Kind <= Reward {
			o.Value = genFloat().Draw(t, "value")
		}
		if o.Kind == Named {
			for _, name := range genNames(1, 5).Draw(t, "outcomes") {
				v := Value{Name: name, Withdrawn: rapid.Bool().Draw(t, "null")}
				if !v.Withdrawn {
					v.X = genFloat().Draw(t, "value")
				}
				o.Values = append(o.Values, v)
			}
		}
		if rapid.Bool().Draw(t, "of a unit") {
			o.ID, o.Unit = "", o.ID
		}
		return o
	})
}

// genLaw draws K actions with propensities on the grid that sum to exactly 1, and
// an action that this law can draw.
func genLaw(t *rapid.T) (actions []string, law []float64, drawn int) {
	actions = genNames(1, 30).Draw(t, "actions")
	if rapid.Float64Range(0, 1).Draw(t, "many") > 0.97 {
		for i := range 700 {
			actions = append(actions, "many-"+strconv.Itoa(i))
		}
	}
	cuts := make([]uint64, len(actions)-1)
	for i := range cuts {
		cuts[i] = rapid.Uint64Range(0, 1<<53).Draw(t, "cut")
	}
	slices.Sort(cuts)
	cuts = append(cuts, 1<<53)
	var from uint64
	var possible []int
	for i, cut := range cuts {
		if cut > from {
			possible = append(possible, i)
		}
		law = append(law, float64(cut-from)/(1<<53))
		from = cut
	}
	return actions, law, rapid.SampledFrom(possible).Draw(t, "action")
}

func genCount(least int64) *rapid.Generator[int64] {
	return rapid.OneOf(rapid.Int64Range(least, 300), rapid.Int64Range(least, math.MaxInt64))
}

func genDecision() *rapid.Generator[Decision] {
	return rapid.Custom(func(t *rapid.T) Decision {
		d := Decision{
			Partition: rapid.IntRange(0, 100_000).Draw(t, "partition"), N: genCount(1).Draw(t, "n"),
			ID: genName().Draw(t, "id"), Epoch: genCount(1).Draw(t, "epoch"),
			LearnedThrough: genCount(0).Draw(t, "tau"), Learned: genCount(0).Draw(t, "learned"),
			Gamma:           rapid.Float64Range(0, 1e12).Draw(t, "gamma"),
			ContextsThrough: genCount(0).Draw(t, "through"), Source: genCount(-1).Draw(t, "source"),
			Time: genCount(0).Draw(t, "time"), Context: rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "context"),
		}
		d.Actions, d.Propensities, d.Action = genLaw(t)
		d.Mode, d.Would = genMode(t, d.Propensities)
		d.Unknown = genUnknown(t, d.Mode, d.Propensities, d.Action)
		for _, name := range genOrdered().Draw(t, "prices") {
			d.Prices = append(d.Prices, Price{Name: name, X: math.Abs(genFloat().Draw(t, "price"))})
		}
		d.Unit, d.First = genUnit(t, d.Partition, d.N)
		return d
	})
}

func genFeedback() *rapid.Generator[Feedback] {
	return rapid.Custom(func(t *rapid.T) Feedback {
		f := Feedback{
			Partition: rapid.IntRange(0, 100_000).Draw(t, "partition"), N: genCount(1).Draw(t, "n"),
			Round: genCount(1).Draw(t, "round"), ID: genName().Draw(t, "id"), Epoch: genCount(1).Draw(t, "epoch"),
			LearnedThrough: genCount(0).Draw(t, "tau"), Gamma: rapid.Float64Range(0, 1e12).Draw(t, "gamma"),
			Time: genCount(0).Draw(t, "time"), ClosedAt: genCount(0).Draw(t, "closed"),
			Fate: Fate(rapid.IntRange(1, 4).Draw(t, "fate")),
			Reason: rapid.SampledFrom([]string{"", ReasonOverflow, ReasonDuplicateID, ReasonInactive}).Draw(
				t, "reason"), OutcomePartition: -1, OutcomeOffset: -1,
			Context: rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "context"),
		}
		if f.Fate <= Imputed {
			f.Loss = rapid.Float64Range(0, 1).Draw(t, "loss")
		}
		if f.Fate == Observed || rapid.Bool().Draw(t, "outcome") {
			f.OutcomePartition = rapid.IntRange(0, 1000).Draw(t, "outcome partition")
			f.OutcomeOffset = genCount(0).Draw(t, "outcome offset")
		}
		f.Actions, f.Propensities, f.Action = genLaw(t)
		f.Mode, f.Would = genMode(t, f.Propensities)
		f.Unknown = genUnknown(t, f.Mode, f.Propensities, f.Action)
		for _, name := range genOrdered().Draw(t, "outcomes") {
			f.Outcomes = append(f.Outcomes, genClosed(t, name))
		}
		if len(f.Outcomes) > 0 && rapid.Bool().Draw(t, "early stage") {
			f.Stage = rapid.IntRange(1, 3).Draw(t, "stage")
			f.Fate, f.Reason, f.Loss, f.OutcomePartition, f.OutcomeOffset = 0, "", 0, -1, -1
		} else if len(f.Outcomes) > 0 {
			f.Outcomes[0].Stage = rapid.IntRange(0, 2).Draw(t, "told in stage")
		}
		f.Unit, f.First = genUnit(t, f.Partition, f.Round)
		return f
	})
}

// genOrdered draws names in their order, more often than not none.
func genOrdered() *rapid.Generator[[]string] {
	return rapid.Map(rapid.OneOf(rapid.Just([]string(nil)), genNames(1, 4)), func(names []string) []string {
		slices.Sort(names)
		return names
	})
}

func genClosed(t *rapid.T, name string) Closed {
	c := Closed{Name: name, Fate: Fate(rapid.IntRange(1, 4).Draw(t, "fate")), Partition: -1, Offset: -1,
		ClosedAt: genCount(0).Draw(t, "closed")}
	if c.Fate <= Imputed {
		c.Value = genFloat().Draw(t, "value")
	}
	if c.Fate == Observed || rapid.Bool().Draw(t, "outcome") {
		c.Partition, c.Offset = rapid.IntRange(0, 1000).Draw(t, "partition"), genCount(0).Draw(t, "offset")
	}
	return c
}

// genMode draws a mode and, in shadow, the learner's law: here the other's, reversed.
func genMode(t *rapid.T, law []float64) (Mode, []float64) {
	m := Mode(rapid.IntRange(int(Live), int(External)).Draw(t, "mode"))
	if m != Shadow {
		return m, nil
	}
	would := slices.Clone(law)
	slices.Reverse(would)
	return m, would
}

// genUnknown draws which part of a law of mode external is unknown, and fills it.
func genUnknown(t *rapid.T, m Mode, law []float64, action int) Unknown {
	u := Unknown(rapid.IntRange(0, 2).Draw(t, "unknown"))
	if m != External || u == 0 || u == UnknownRest && len(law) == 1 {
		return 0
	}
	return u.Fill(law, action, law[action])
}

// genBaseline draws one action, or some with probabilities that sum to 1.
func genBaseline(t *rapid.T) (b []Share) {
	names := genNames(1, 9).Draw(t, "baseline")
	if len(names) == 1 {
		return []Share{{Name: names[0], P: 1}}
	}
	for i, name := range names {
		p := 1 / float64(len(names))
		if i == 0 {
			p = 1 - float64(len(names)-1)*p
		}
		b = append(b, Share{Name: name, P: p})
	}
	return b
}
