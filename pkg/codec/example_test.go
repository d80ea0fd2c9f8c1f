package codec_test

import (
	"fmt"
	"strings"

	"hindsight/pkg/codec"
)

func ExampleParseContext() {
	var c codec.Context // its memory is reused by every call
	err := codec.ParseContext(&c,
		[]byte(
			`{"id":"8f3a","features":{"hour":14,"country":"DE"},"actions":["a",{"name":"b","features":{"cost":2.5}}]}`))
	if err == nil {
		err = c.Validate()
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(c.ID, c.Features[0].Name, c.Features[0].Value, c.Features[1].Text)
	fmt.Println(c.Actions[0].Name, c.Actions[1].Name, c.Actions[1].Features[0].Value)
	// Output:
	// 8f3a hour 14 DE
	// a b 2.5
}

func ExampleParseContext_errors() {
	var c codec.Context
	fmt.Println(codec.ParseContext(&c, []byte(`{"features":{"address":{"city":"Ulm"}}}`)))
	if err := codec.ParseContext(&c, []byte(`{"actions":["a","b","a"]}`)); err == nil {
		fmt.Println(c.Validate())
	}
	// Output:
	// context: features.address: corrupt record: a feature is a number, text, bool, list of numbers or null (at byte 23)
	// context: actions[2].name: occurs twice
}

func ExampleParseOutcome() {
	var o codec.Outcome
	err := codec.ParseOutcome(&o, []byte(`{"id":"8f3a","reward":1}`))
	fmt.Println(o.ID, o.Kind, o.Value, err)
	// Output: 8f3a reward 1 <nil>
}

func ExampleAppendDecisionJSON() {
	d := codec.Decision{
		N: 7, ID: "8f3a", Epoch: 1, LearnedThrough: 4,
		Actions: []string{"a", "b"}, Propensities: []float64{0.25, 0.75}, Action: 1,
	}
	text := codec.AppendDecisionJSON(nil, &d, "", false)
	fmt.Println(strings.ReplaceAll(string(text), `,"partition"`, ",\n"+`"partition"`))
	// Output:
	// {"id":"8f3a","action":"b","propensity":0.75,"propensities":{"a":0.25,"b":0.75},
	// "partition":0,"n":7,"epoch":1,"learned_through":4,"duplicate":false}
}

func ExampleCloudEventID() {
	headers := map[string]string{"ce_specversion": "1.0", "ce_id": "e-17"}
	fmt.Println(codec.CloudEventID(func(key string) string { return headers[key] }))
	// Output: e-17 true
}
