package codec

import (
	"math"
	"reflect"
	"strings"
)

// Samples: one event of each kind with every key in use. Golden files hold their
// bytes; do not change them, add new ones.

func sampleContext() Context {
	return Context{
		ID: "8f3a",
		Features: []Feature{
			{Name: "hour", Kind: Number, Value: 14},
			{Name: "price", Kind: Number, Value: 12.75},
			{Name: "country", Kind: Text, Text: "DE"},
			{Name: "vip", Kind: Bool, Value: 1},
			{Name: "größe", Kind: Number, Value: -0.001},
		},
		Actions: []Action{
			{Name: "a"},
			{Name: "b", Features: []Feature{
				{Name: "cost", Kind: Number, Value: 1e-9}, {Name: "new", Kind: Bool},
			}},
			{Name: strings.Repeat("long", 20)},
		},
	}
}

func sampleVector() Context {
	return Context{ID: "v", Vector: []float64{0, -1, 0.1, 1e300}}
}

// sampleAssigned tells of a decision of another system with its law, sampleAssignedAlone with the propensity alone.
func sampleAssigned() Context {
	c := sampleContext()
	c.Assigned = Assigned{Action: "b", Law: []Share{{"b", 0.25}, {"a", 0.75}}, By: "router 2"}
	return c
}

func sampleAssignedAlone() Context {
	return Context{ID: "8f3a", Assigned: Assigned{Action: "größe", Propensity: 0.3}}
}

// sampleSlots asks for three slots: one by its name, one with all that a slot may have, and one with a law.
func sampleSlots() Context {
	c := sampleContext()
	c.Slots = []Slot{{Name: "hero"}, {Name: "side", Features: []Feature{{Name: "size", Kind: Number, Value: 2}},
		Actions: []string{"a", "b"}, Baseline: []Share{{"b", 1}}}, {Name: "größe", Baseline: []Share{{"a", .5},
		{"b", .5}}}}
	return c
}

// sampleExternal is the decision of another system whose law is known, known in part, or not known.
func sampleExternal(u Unknown) Decision {
	d := sampleEraDecision()
	d.Mode, d.Gamma = External, 0
	if u > 0 {
		d.Unknown = u.Fill(d.Propensities, d.Action, 0.3)
	}
	return d
}

func sampleExternalFeedback(u Unknown) Feedback {
	f := sampleFeedback()
	f.Mode, f.Gamma = External, 0
	if u > 0 {
		f.Unknown = u.Fill(f.Propensities, f.Action, 0.3)
	}
	return f
}

// sampleUnit is about a unit, and sampleRepeat a decision that repeats the draw of one.
func sampleUnit() Context {
	c := sampleContext()
	c.Unit = "user-17"
	return c
}

func sampleRepeat() Decision {
	d := samplePrices()
	d.Unit, d.First = "user-17", RoundRef{Partition: 3, N: 69_999}
	return d
}

func sampleRepeatFeedback() Feedback {
	f := sampleFeedback()
	f.Fate, f.Reason, f.Loss, f.OutcomePartition, f.OutcomeOffset = Skipped, ReasonRepeat, 0, -1, -1
	f.Unit, f.First = "user-17", RoundRef{Partition: f.Partition, N: f.Round - 1}
	return f
}

func sampleOutcome() Outcome {
	return Outcome{ID: "8f3a", Kind: Loss, Value: 0.3, Action: "b", OutcomeID: "o-1"}
}

func sampleNamed() Outcome {
	return Outcome{ID: "8f3a", Kind: Named, Action: "b", OutcomeID: "o-1", Values: []Value{
		{Name: "tokens", X: 812}, {Name: "quality", X: 0.9}, {Name: "größe", Withdrawn: true}}}
}

func samplePrices() Decision {
	d := sampleEraDecision()
	d.Mode, d.Would = Shadow, []float64{0, 0.5, 0.5}
	d.Prices = []Price{{Name: "cost"}, {Name: "latency", X: 0.065}}
	return d
}

// sampleStage is the record of a round's first stage, and sampleLastStage its feedback.
func sampleStage() Feedback {
	f := sampleFeedback()
	f.Fate, f.Loss, f.OutcomePartition, f.OutcomeOffset = 0, 0, -1, -1
	f.Stage = 1
	f.Outcomes = []Closed{
		{Name: "latency", Fate: Skipped, Partition: -1, Offset: -1, ClosedAt: f.ClosedAt},
		{Name: "tokens", Fate: Observed, Value: 812, Partition: 1, Offset: 299, ClosedAt: f.ClosedAt - 5},
	}
	return f
}

func sampleLastStage() Feedback {
	f := sampleFeedback()
	f.Mode = Apprentice
	f.Outcomes = []Closed{
		{Name: "latency", Fate: Imputed, Value: -1.5, Partition: -1, Offset: -1, ClosedAt: f.ClosedAt - 7},
		{Name: "quality", Fate: Observed, Value: 0.7, Partition: 1, Offset: 300, ClosedAt: f.ClosedAt},
		{Name: "tokens", Fate: WithdrawnRound, Partition: 1, Offset: 299, ClosedAt: f.ClosedAt - 5, Stage: 1},
	}
	return f
}

func sampleDecision() Decision {
	return Decision{
		Partition: 3, N: 70_000, ID: "8f3a", Epoch: 2, LearnedThrough: 69_123, Learned: 40_000,
		Gamma: 17.5, ContextsThrough: 1 << 33, Source: -1, Time: 1_700_000_000_123_456_789,
		Actions: []string{"a", "b", "c"}, Propensities: []float64{0.25, 0.5, 0.25}, Action: 1,
		Context: []byte(`{"id":"8f3a","actions":["a","b","c"]}`),
	}
}

func sampleFeedback() Feedback {
	return Feedback{
		N: 69_999, Partition: 3, Round: 70_000, ID: "8f3a", Epoch: 2, LearnedThrough: 69_123,
		Gamma: 17.5, Time: 1_700_000_000_123_456_789,
		Actions: []string{"a", "b", "c"}, Propensities: []float64{0.25, 0.5, 0.25}, Action: 1,
		Fate: Observed, Reason: "", Loss: 0.3, OutcomePartition: 1, OutcomeOffset: 300,
		ClosedAt: 1_700_000_001_000_000_000, Context: []byte(`{"id":"8f3a","actions":["a","b","c"]}`),
	}
}

func sampleEpoch() Epoch {
	return Epoch{
		V: Version, Epoch: 2, Name: "shop", Version: 4, Partitions: 8, SeedHash: "5e", Model: []byte("name: shop\n"),
		SHA256: "ab12", Files: []FileRef{{Name: "class.jsonl", Size: 1 << 20, SHA256: "cd34"}}, Through: 12_000,
		WarmFrom: 1, WarmTo: 70_000, WarmEpoch: 1,
	}
}

func sampleClass() Class {
	return Class{V: Version, File: "class.jsonl", Part: 1, Parts: 3, Bytes: []byte{0, 1, 2, 255}}
}

// sampleCutMark is a mark of version 4.
func sampleCutMark() FeedbackMark {
	const at = 1_700_000_000_000_000_000
	return FeedbackMark{
		V: cutMarkVersion, N: 1000, Cut: 250, Time: at, Era: 2, Eras: []EraStart{{Era: 1, N: 0}, {Era: 2, N: 980}},
		From: 900, FromCut: 200, Memory: 3, Remembers: 17, Rejects: 5, Limits: Limits{Heart: 1, Pending: 100_000,
			Bytes: 1 << 30, Dedup: 10_000},
		Positions: []Position{
			{Partition: 0, Round: 600, Time: at - 1, Decisions: 620, DecisionsSince: 610, DecisionsSum: 1<<32 - 1,
				Outcomes: 70_000, OutcomesSince: 69_990, OutcomesSum: 7},
			{Partition: 1, Round: 400, Time: at, Decisions: 410, DecisionsSince: 400, DecisionsSum: 9, Outcomes: 300,
				OutcomesSince: 300, Done: []Run{{From: 401, To: 450}, {From: 452, To: 452}}, Again: 320},
		},
		Epochs: []EpochRef{{Epoch: 1, Offset: 0}, {Epoch: 2, Offset: 500}}, Guard: []byte("guard"),
		LostTails: []LostTail{{Topic: "outcomes", Partition: 1, Offset: 300, Was: 320}},
	}
}

// newCutMark is the first mark of a log.
func newCutMark() FeedbackMark {
	return FeedbackMark{V: cutMarkVersion, From: -1, Memory: -1, Limits: Limits{Heart: 1}, Positions: make([]Position,
		1)}
}

func sampleCut() Cut {
	return Cut{
		V: Version, Cut: 250, Time: 1_700_000_000_000_000_000,
		Decisions: []Range{{Partition: 0, Next: 620, Sum: 1<<32 - 1}, {Partition: 2, Next: 1 << 33}},
		Outcomes:  []Range{{Partition: 1, Next: 1, Sum: 200}},
	}
}

func sampleEraDecision() Decision {
	d := sampleDecision()
	d.Era = 3
	return d
}

func sampleEraSnapshot() Snapshot {
	x := sampleSnapshot()
	x.Era = 3
	return x
}

func sampleCutReject() Reject {
	x := sampleReject()
	x.Cut, x.Era = 250, 3
	return x
}

func sampleDecisionMark() DecisionMark {
	return DecisionMark{V: Version, N: 1000, ContextsThrough: 1200, LearnedThrough: 990, GapFrom: 400, GapTo: 410}
}

func sampleSnapshot() Snapshot {
	return Snapshot{
		V: Version, Epoch: 2, LearnedThrough: 12_000, FeedbackFrom: 12_500, Nonce: "n0", Part: 0, Parts: 2,
		SHA256: "ef56", Bytes: []byte("state"),
	}
}

func sampleReject() Reject {
	return Reject{
		V: Version, Topic: "outcomes", Partition: 2, Offset: 77, Time: 1_700_000_000_000_000_001,
		Reason: ReasonLate, Detail: "3 s after the window", ID: "8f3a", Bytes: []byte(`{"id":"8f3a","loss":1}`),
	}
}

// kind ties a record's append and parse together, for tests that hold for all.
type kind struct {
	name     string
	append   func() []byte                      // the sample's bytes
	parse    func(b []byte) (any, error)        // into a fresh value
	reappend func(dst []byte, value any) []byte // of a value of parse
}

// kinds are all records, and those that a model with the encoding JSON has, in that too.
func kinds() []kind {
	all := packedKinds()
	for _, k := range all {
		if control, ok := controlOf(k.name); ok {
			all = append(all, kind{k.name + "-stored", func() []byte { return AppendJSON(nil, control, k.append()) },
				k.parse, func(dst []byte, x any) []byte { return AppendJSON(dst, control, k.reappend(nil, x)) }})
		}
	}
	return all
}

// controlOf returns the type of a record that the programs write; false of what clients write.
func controlOf(name string) (string, bool) {
	first, _, _ := strings.Cut(name, "-")
	switch {
	case first == "context" || first == "outcome":
		return "", false
	case strings.Contains(name, "-mark"):
		return TypeMark, true
	case first == "epoch" || first == "class" || first == "cut":
		return first, true
	}
	return "", true
}

func packedKinds() []kind {
	return []kind{
		hot("context", sampleContext(), AppendContext, ParseContext),
		hot("context-vector", sampleVector(), AppendContext, ParseContext),
		hot("context-json", sampleContext(), AppendContextJSON, ParseContext),
		hot("context-assigned", sampleAssigned(), AppendContext, ParseContext),
		hot("context-assigned-json", sampleAssigned(), AppendContextJSON, ParseContext),
		hot("context-slots", sampleSlots(), AppendContext, ParseContext),
		hot("context-slots-json", sampleSlots(), AppendContextJSON, ParseContext),
		hot("context-assigned-alone", sampleAssignedAlone(), AppendContext, ParseContext),
		hot("decision-external", sampleExternal(0), AppendDecision, ParseDecision),
		hot("decision-external-rest", sampleExternal(UnknownRest), AppendDecision, ParseDecision),
		hot("decision-external-law", sampleExternal(UnknownLaw), AppendDecision, ParseDecision),
		hot("feedback-external", sampleExternalFeedback(0), AppendFeedback, ParseFeedback),
		hot("feedback-external-rest", sampleExternalFeedback(UnknownRest), AppendFeedback, ParseFeedback),
		hot("feedback-external-law", sampleExternalFeedback(UnknownLaw), AppendFeedback, ParseFeedback),
		hot("outcome", sampleOutcome(), AppendOutcome, ParseOutcome),
		hot("outcome-json", sampleOutcome(), AppendOutcomeJSON, ParseOutcome),
		hot("outcome-reward", Outcome{ID: "r", Kind: Reward, Value: 1}, AppendOutcome, ParseOutcome),
		hot("outcome-withdrawn", Outcome{ID: "r", Kind: Withdrawn}, AppendOutcome, ParseOutcome),
		hot("outcome-activated", Outcome{ID: "r", Kind: Activated}, AppendOutcome, ParseOutcome),
		hot("outcome-named", sampleNamed(), AppendOutcome, ParseOutcome),
		hot("outcome-named-json", sampleNamed(), AppendOutcomeJSON, ParseOutcome),
		hot("decision-prices", samplePrices(), AppendDecision, ParseDecision),
		hot("feedback-stage", sampleStage(), AppendFeedback, ParseFeedback),
		hot("feedback-named", sampleLastStage(), AppendFeedback, ParseFeedback),
		hot("decision", sampleDecision(), AppendDecision, ParseDecision),
		hot("decision-era", sampleEraDecision(), AppendDecision, ParseDecision),
		hot("feedback", sampleFeedback(), AppendFeedback, ParseFeedback),
		hot("feedback-lost", Feedback{
			N: 1, Round: 2, ID: "l", Epoch: 1, Actions: []string{"a"}, Propensities: []float64{1}, Fate: Skipped,
			Reason: ReasonLost, OutcomePartition: -1, OutcomeOffset: -1, Context: []byte("{}"),
		}, AppendFeedback, ParseFeedback),
		hot("context-unit", sampleUnit(), AppendContext, ParseContext),
		hot("context-unit-json", sampleUnit(), AppendContextJSON, ParseContext),
		hot("decision-repeat", sampleRepeat(), AppendDecision, ParseDecision),
		hot("feedback-repeat", sampleRepeatFeedback(), AppendFeedback, ParseFeedback),
		hot("outcome-unit", Outcome{Unit: "user-17", Kind: Reward, Value: 1}, AppendOutcome, ParseOutcome),
		hot("outcome-unit-json", Outcome{Unit: "user-17", Kind: Reward, Value: 1}, AppendOutcomeJSON, ParseOutcome),
		hot("cut", sampleCut(), AppendCut, ParseCut),
		hot("cut-empty", Cut{V: Version, Cut: 1, Time: 1}, AppendCut, ParseCut),
		rare("epoch", sampleEpoch(), AppendEpoch, ParseEpoch),
		rare("class", sampleClass(), AppendClass, ParseClass),
		rare("feedback-mark-4", sampleCutMark(), AppendFeedbackMark, ParseFeedbackMark),
		rare("feedback-mark-4-new", newCutMark(), AppendFeedbackMark, ParseFeedbackMark),
		rare("decision-mark", sampleDecisionMark(), AppendDecisionMark, ParseDecisionMark),
		rare("decision-mark-era", DecisionMark{V: Version, N: 7, Era: 3}, AppendDecisionMark, ParseDecisionMark),
		rare("decision-mark-rejects", DecisionMark{V: Version, N: 7, ContextsThrough: 12, Rejects: 30, RejectsFrom: 8,
			RejectsTo: 11},
			AppendDecisionMark, ParseDecisionMark),
		rare("snapshot", sampleSnapshot(), AppendSnapshot, ParseSnapshot),
		rare("snapshot-era", sampleEraSnapshot(), AppendSnapshot, ParseSnapshot),
		rare("reject", sampleReject(), AppendReject, ParseReject),
		rare("reject-cut", sampleCutReject(), AppendReject, ParseReject),
	}
}

func hot[T any](name string, sample T, appendTo func([]byte, *T) []byte, parse func(*T, []byte) error) kind {
	return kind{
		name:   name,
		append: func() []byte { return appendTo(nil, &sample) },
		parse: func(b []byte) (any, error) {
			x := new(T)
			err := parse(x, b)
			return *x, err
		},
		reappend: func(dst []byte, value any) []byte {
			x := value.(T)
			return appendTo(dst, &x)
		},
	}
}

func rare[T any](name string, sample T, appendTo func([]byte, *T) []byte, parse func([]byte) (T, error)) kind {
	return kind{
		name:   name,
		append: func() []byte { return appendTo(nil, &sample) },
		parse: func(b []byte) (any, error) {
			return parse(b)
		},
		reappend: func(dst []byte, value any) []byte {
			x := value.(T)
			return appendTo(dst, &x)
		},
	}
}

// same reports whether two records are equal: floats by their bits, an empty
// slice as nil, except for the actions of a context, where it matters.
func same(a, b any) bool { return sameValue(reflect.ValueOf(a), reflect.ValueOf(b)) }

func sameValue(a, b reflect.Value) bool {
	if a.Type() != b.Type() {
		return false
	}
	switch a.Kind() {
	case reflect.Float64:
		return math.Float64bits(a.Float()) == math.Float64bits(b.Float())
	case reflect.Struct:
		for i := range a.NumField() {
			if a.Type().Field(i).IsExported() && !sameValue(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	case reflect.Slice:
		if a.Len() != b.Len() {
			return false
		}
		if a.Type() == reflect.TypeFor[[]Action]() && a.IsNil() != b.IsNil() {
			return false
		}
		for i := range a.Len() {
			if !sameValue(a.Index(i), b.Index(i)) {
				return false
			}
		}
		return true
	}
	return a.Interface() == b.Interface()
}
