package clients

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/vmihailenco/msgpack/v5"

	"hindsight/compose/schemas"
	"hindsight/pkg/codec"
)

// described is the AsyncAPI document.
type described struct {
	text string
	doc  map[string]any
	c    *jsonschema.Compiler
}

func readAsyncAPI(t *testing.T) *described {
	t.Helper()
	text, err := os.ReadFile("../asyncapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return parseAsyncAPI(t, string(text), "", "")
}

// parseAsyncAPI compiles the schemas of a document and of the files that it refers to, with a text in
// place of another, and makes them strict: only keys that they name.
func parseAsyncAPI(t *testing.T, text, old, new string) *described {
	t.Helper()
	read := func() map[string]any {
		doc := documents(t, []byte(strings.Replace(text, old, new, 1)))[0].(map[string]any)
		components := doc["components"].(map[string]any)
		for name, m := range components["messages"].(map[string]any) {
			payload, _ := m.(map[string]any)["payload"].(map[string]any)
			file, def, ok := strings.Cut(fmt.Sprint(payload["$ref"]), ".json#/$defs/")
			if !ok {
				continue
			}
			b, err := schemas.Files.ReadFile(strings.TrimPrefix(file, "schemas/") + ".json")
			if err != nil || def != name {
				t.Fatalf("%s: %v: %v", name, payload, err)
			}
			var s struct {
				Defs map[string]any `json:"$defs"`
			}
			d := json.NewDecoder(strings.NewReader(strings.Replace(string(b), old, new, 1)))
			d.UseNumber()
			if err := d.Decode(&s); err != nil {
				t.Fatal(err)
			}
			components["schemas"].(map[string]any)[name] = s.Defs[def]
			payload["$ref"] = "#/components/schemas/" + name
		}
		return doc
	}
	d, strict := &described{text: text, doc: read(), c: jsonschema.NewCompiler()}, read()
	closeObjects(strict)
	if err := d.c.AddResource("asyncapi.json", strict); err != nil {
		t.Fatal(err)
	}
	return d
}

// closeObjects adds additionalProperties: false where properties are named.
func closeObjects(v any) {
	switch v := v.(type) {
	case map[string]any:
		if _, ok := v["properties"]; ok && v["type"] == "object" && v["additionalProperties"] == nil {
			v["additionalProperties"] = false
		}
		for _, inner := range v {
			closeObjects(inner)
		}
	case []any:
		for _, inner := range v {
			closeObjects(inner)
		}
	}
}

func (d *described) at(path ...string) map[string]any {
	v := d.doc
	for _, p := range path {
		v, _ = v[p].(map[string]any)
	}
	return v
}

func (d *described) schema(name string) *jsonschema.Schema {
	return d.c.MustCompile("asyncapi.json#/components/schemas/" + name)
}

// resolve follows a reference within the document.
func (d *described) resolve(s map[string]any) map[string]any {
	if ref, ok := s["$ref"].(string); ok {
		return d.at(strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
	}
	return s
}

// keys returns the paths of all keys that a schema names: "positions[].refused[].offset".
func (d *described) keys(s map[string]any, path string, out map[string]bool) {
	s = d.resolve(s)
	properties, _ := s["properties"].(map[string]any)
	for name, inner := range properties {
		at := path + name
		out[at] = true
		d.keys(inner.(map[string]any), at+".", out)
	}
	if items, ok := s["items"].(map[string]any); ok {
		d.keys(items, strings.TrimSuffix(path, ".")+"[].", out)
	}
	for _, inner := range asList(s["oneOf"]) {
		d.keys(inner.(map[string]any), path, out)
	}
}

func asList(v any) []any { l, _ := v.([]any); return l }

// met notes the paths of the keys of a value that the schema names, in the same way.
func met(v any, path string, named, out map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		for name, inner := range v {
			if named[path+name] {
				out[path+name] = true
				met(inner, path+name+".", named, out)
			}
		}
	case []any:
		for _, inner := range v {
			met(inner, strings.TrimSuffix(path, ".")+"[].", named, out)
		}
	}
}

// fill sets everything in v to something, so that every optional key is written.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fill(v.Field(i))
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fill(v.Index(i))
		}
	case reflect.String:
		v.SetString("x")
	case reflect.Float64:
		v.SetFloat(0.5)
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint8, reflect.Uint32:
		v.SetUint(1)
	}
}

func filled[T any]() *T {
	x := new(T)
	fill(reflect.ValueOf(x).Elem())
	return x
}

// written returns what the codec writes of each schema, with every key in use in one of
// them.
func written() map[string][][]byte {
	decision, feedback := filled[codec.Decision](), filled[codec.Feedback]()
	decision.Actions, feedback.Actions = []string{"a", "b"}, []string{"a", "b"}
	decision.Context, feedback.Context = []byte(`{"id":"x"}`), []byte(`{"id":"x"}`)
	epoch, warm := filled[codec.Epoch](), filled[codec.Epoch]()
	epoch.WarmFrom, epoch.WarmTo, epoch.WarmEpoch = 0, 0, 0
	clearFields(warm, "Continues", "Cause")
	reject := filled[codec.Reject]()
	reject.Topic, reject.Reason = "outcomes", codec.ReasonLate
	feedback.Reason = codec.ReasonOverflow
	last := *feedback
	last.Stage = 0
	out := map[string][][]byte{
		"decision":      {codec.AppendDecision(nil, decision)},
		"feedback":      {codec.AppendFeedback(nil, feedback), codec.AppendFeedback(nil, &last)},
		"epoch":         {codec.AppendEpoch(nil, epoch), codec.AppendEpoch(nil, warm)},
		"class":         {codec.AppendClass(nil, filled[codec.Class]())},
		"decisionMark":  {codec.AppendDecisionMark(nil, filled[codec.DecisionMark]())},
		"cut":           {codec.AppendCut(nil, filled[codec.Cut]())},
		"feedbackMark4": {codec.AppendFeedbackMark(nil, filled[codec.FeedbackMark]())},
		"snapshot":      {codec.AppendSnapshot(nil, filled[codec.Snapshot]())},
		"reject":        {codec.AppendReject(nil, reject)},
		"decisionReply": {codec.AppendDecisionReply(nil, decision, "huor", true)},
		"stored":        {codec.AppendStored(nil, "x", false)},
		"error":         {codec.ErrorReply(nil, 409, "x", "x", false)},
	}
	for name, records := range out {
		for _, b := range records {
			out[name] = append(out[name], codec.AppendJSON(nil, controls[name], b))
		}
	}
	named, vector := filled[codec.Context](), filled[codec.Context]()
	named.Vector, named.Features[1].Name = nil, "y"
	named.Actions[0].Features = nil
	vector.Features = nil
	out["context"] = [][]byte{codec.AppendContext(nil, named), codec.AppendContext(nil, vector)}
	for kind := codec.Loss; kind <= codec.Named; kind++ {
		o := filled[codec.Outcome]()
		o.Kind = kind
		out["outcome"] = append(out["outcome"], codec.AppendOutcome(nil, o))
		o.ID = ""
		out["outcome"] = append(out["outcome"], codec.AppendOutcome(nil, o))
	}
	return out
}

// controls are the types of control records.
var controls = map[string]string{"epoch": codec.TypeEpoch, "class": codec.TypeClass, "cut": codec.TypeCut,
	"decisionMark": codec.TypeMark, "feedbackMark4": codec.TypeMark}

// clearFields sets fields to zero, those that there are.
func clearFields(x any, names ...string) {
	for _, name := range names {
		if f := reflect.ValueOf(x).Elem().FieldByName(name); f.IsValid() {
			f.SetZero()
		}
	}
}

// asJSON reads a record as a JSON value, bytes in base64.
func asJSON(t *testing.T, b []byte) any {
	t.Helper()
	var v any
	if codec.IsJSON(b) {
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	if err := msgpack.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if v, err = jsonschema.UnmarshalJSON(bytes.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	return v
}

// differences compares the document with the codec: what the codec writes and the
// document does not allow, and what the document names and the codec never writes.
func (d *described) differences(t *testing.T) (out []string) {
	t.Helper()
	all := written()
	for name := range d.at("components", "messages") {
		if d.at("components", "messages", name)["payload"] == nil {
			continue // headers alone; TestAsyncAPIControls has them
		}
		if len(all[name]) == 0 {
			out = append(out, name+": nothing writes it")
			continue
		}
		named, seen, s := map[string]bool{}, map[string]bool{}, d.schema(name)
		d.keys(d.at("components", "schemas", name), "", named)
		for _, b := range all[name] {
			v := asJSON(t, b)
			if err := s.Validate(v); err != nil {
				out = append(out, fmt.Sprintf("%s: %v", name, err))
			}
			met(v, "", named, seen)
		}
		for _, key := range slices.Sorted(maps.Keys(named)) {
			if !seen[key] {
				out = append(out, fmt.Sprintf("%s: the codec never writes %s", name, key))
			}
		}
	}
	for name := range all {
		if d.at("components", "messages", name) == nil {
			out = append(out, name+" is not described")
		}
	}
	return out
}

// TestAsyncAPI holds the document against the specification's schema and against the
// codec, and sees that each check can fail.
func TestAsyncAPI(t *testing.T) {
	c := jsonschema.NewCompiler()
	// Of the package @asyncapi/specs 6.11.1 on npm.
	if err := c.AddResource("spec.json", readSchema(t, "testdata/asyncapi-3.0.0.json.gz")); err != nil {
		t.Fatal(err)
	}
	spec := c.MustCompile("spec.json")
	d := readAsyncAPI(t)
	if err := spec.Validate(d.doc); err != nil {
		t.Error(err)
	}
	if bad := parseAsyncAPI(t, d.text, "action: send,", "action: sned,"); spec.Validate(
		bad.doc) == nil {
		t.Error("an unknown action is accepted")
	}
	for _, diff := range d.differences(t) {
		t.Error(diff)
	}
	for _, plant := range [][2]string{
		{`"learned_lost": {`, `"learned_found": {`},
		{`"learned_lost": {`, `"learned_found": {"type": "integer"}, "learned_lost": {`},
		{`"from_cut"`, `"since_cut"`},
		{`"round": {`, `"round": {"format": "x", "enum": [0],`},
		{`"minItems": 11,`, `"minItems": 12,`},
	} {
		if len(parseAsyncAPI(t, d.text, plant[0], plant[1]).differences(t)) == 0 {
			t.Errorf("planted %q: not found", plant[1])
		}
	}
}

// TestSchemasOfTopics: each record in JSON is just one of those that the schema of its topic knows.
func TestSchemasOfTopics(t *testing.T) {
	all, files := written(), map[string][]string{"contexts": {"context"}, "outcomes": {"outcome"},
		"decisions": {"decision", "decisionMark"}, "rejects": {"reject"}, "snapshots": {"snapshot"},
		"feedback": {"feedback", "epoch", "class", "cut", "feedbackMark4"}}
	for topic, records := range files {
		b, err := schemas.Files.ReadFile(topic + ".json")
		if err != nil {
			t.Fatal(err)
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		c := jsonschema.NewCompiler()
		if err := c.AddResource(topic+".json", doc); err != nil {
			t.Fatal(err)
		}
		s, n := c.MustCompile(topic+".json"), 0
		check := func(name string, b []byte) {
			if n++; s.Validate(asJSON(t, b)) != nil {
				t.Errorf("%s, %s: %v: %s", topic, name, s.Validate(asJSON(t, b)), b)
			}
		}
		for _, name := range records {
			for _, b := range all[name] {
				if codec.IsJSON(b) || topic == "contexts" || topic == "outcomes" {
					check(name, b)
				}
			}
		}
		if topic == "decisions" || topic == "feedback" {
			check("open", codec.OpenValue(codec.JSON))
		}
		if n < len(records) || s.Validate(asJSON(t, []byte(`{"id":7,"type":"none"}`))) == nil {
			t.Errorf("%s: %d records, and a wrong one passes", topic, n)
		}
	}
}
