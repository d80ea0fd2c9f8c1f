package clients

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// empty returns what the codec writes of records that have nothing in them that may be missing.
func empty() map[string][]byte {
	law := func() ([]string, []float64) { return []string{"a"}, []float64{1} }
	var decision codec.Decision
	feedback := codec.Feedback{Fate: codec.Skipped}
	decision.Actions, decision.Propensities = law()
	feedback.Actions, feedback.Propensities = law()
	return map[string][]byte{
		"decision":     codec.AppendDecision(nil, &decision),
		"feedback":     codec.AppendFeedback(nil, &feedback),
		"epoch":        codec.AppendEpoch(nil, &codec.Epoch{V: 1}),
		"class":        codec.AppendClass(nil, &codec.Class{V: 1}),
		"decisionMark": codec.AppendDecisionMark(nil, &codec.DecisionMark{V: 1}),
		"cut":          codec.AppendCut(nil, &codec.Cut{Cut: 1}),
		"feedbackMark4": codec.AppendFeedbackMark(nil, &codec.FeedbackMark{
			Limits: codec.Limits{Heart: 1}, Positions: make([]codec.Position, 1),
		}),
		"snapshot": codec.AppendSnapshot(nil, &codec.Snapshot{V: 1}),
		"reject":   codec.AppendReject(nil, &codec.Reject{V: 1, Topic: "outcomes", Reason: codec.ReasonLate}),
	}
}

// TestAsyncAPINulls holds that the document allows null wherever the codec writes it, or takes it.
func TestAsyncAPINulls(t *testing.T) {
	d := readAsyncAPI(t)
	all := empty()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if err := d.schema(name).Validate(asJSON(t, all[name])); err != nil {
			t.Errorf("an empty %s: %v", name, err)
		}
	}
	takes := func(name, text string, err error) {
		t.Helper()
		v, bad := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if bad != nil {
			t.Fatal(bad)
		}
		if allowed := d.schema(name).Validate(v); err == nil && allowed != nil || err != nil && allowed == nil {
			t.Errorf("%s: the codec says %v, the document %v", text, err, allowed)
		}
	}
	for _, key := range []string{"v", "id", "features", "actions", "baseline"} {
		text := fmt.Sprintf(`{%q:null}`, key)
		var c codec.Context
		takes("context", text, codec.ParseContext(&c, []byte(text)))
	}
	for _, key := range []string{"v", "id", "loss", "reward", "withdrawn", "activated", "action", "outcome_id"} {
		rest := `,"id":"x"`
		if key == "id" {
			rest = ""
		}
		if key != "loss" {
			rest += `,"loss":1`
		}
		text := fmt.Sprintf(`{%q:null%s}`, key, rest)
		var o codec.Outcome
		takes("outcome", text, codec.ParseOutcome(&o, []byte(text)))
	}
}

// TestAsyncAPIControls holds that the records without bytes are described.
func TestAsyncAPIControls(t *testing.T) {
	d := readAsyncAPI(t)
	var bare []string
	for name := range d.at("components", "messages") {
		m := d.at("components", "messages", name)
		if m["payload"] != nil {
			continue
		}
		bare = append(bare, name)
		if typ := d.at("components", "messages", name, "headers", "properties",
			stream.HeaderType); typ["const"] != name {
			t.Errorf("%s has the type %v", name, typ)
		}
	}
	slices.Sort(bare)
	if want := []string{"fill", stream.TypeOpen}; !slices.Equal(bare, want) {
		t.Errorf("without bytes are %v, want %v", bare, want)
	}
}
