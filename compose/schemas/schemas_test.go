package schemas

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"go.yaml.in/yaml/v3"

	"hindsight/pkg/codec"
)

var update = flag.Bool("update", false, "write the schemas anew")

type object = map[string]any

// TestSchemas: the files are what the codec's types say.
func TestSchemas(t *testing.T) {
	comments := fieldComments(t)
	for topic, records := range map[string][]object{
		"contexts": {{"context": written(t, context)}},
		"outcomes": {{"outcome": written(t, outcome)}},
		"decisions": {{"decision": event(comments, codec.Decision{})},
			{"decisionMark": rare[codec.DecisionMark](comments, "mark")}, {"open": open()}},
		"feedback": {{"feedback": event(comments, codec.Feedback{})},
			{"epoch": rare[codec.Epoch](comments, "epoch")},
			{"class": rare[codec.Class](comments, "class")}, {"cut": rare[codec.Cut](comments, "cut")},
			{"feedbackMark4": rare[codec.FeedbackMark](comments, "mark")}, {"open": open()}},
		"rejects":   {{"reject": rare[codec.Reject](comments, "")}},
		"snapshots": {{"snapshot": rare[codec.Snapshot](comments, "")}},
	} {
		defs, kinds := object{}, []any{}
		for _, r := range records {
			for name, schema := range r {
				defs[name] = schema
				kinds = append(kinds, object{"$ref": "#/$defs/" + name})
			}
		}
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		if err := e.Encode(object{"$schema": "https://json-schema.org/draft/2020-12/schema", "title": topic,
			"oneOf": kinds, "$defs": defs}); err != nil {
			t.Fatal(err)
		}
		name := topic + ".json"
		if *update {
			if err := os.WriteFile(name, b.Bytes(), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		if had, err := os.ReadFile(name); err != nil || !bytes.Equal(had, b.Bytes()) {
			t.Errorf("%s is not what the codec says (%v): go test ./compose/schemas -update", name, err)
		}
	}
}

// fieldComments returns the comments of the fields of the codec's structs: "Decision.Gamma".
func fieldComments(t *testing.T) map[string]string {
	out := map[string]string{}
	files, err := filepath.Glob("../../pkg/codec/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok {
				addComments(out, spec)
			}
			return true
		})
	}
	return out
}

func addComments(out map[string]string, spec *ast.TypeSpec) {
	s, ok := spec.Type.(*ast.StructType)
	if !ok {
		return
	}
	for _, f := range s.Fields.List {
		for _, name := range f.Names {
			out[spec.Name.Name+"."+name.Name] = strings.Join(strings.Fields(f.Doc.Text()+f.Comment.Text()), " ")
		}
	}
}

func described(comments map[string]string, t reflect.Type, f reflect.StructField, schema object) object {
	if text := comments[t.Name()+"."+f.Name]; text != "" {
		schema["description"] = goName.ReplaceAllStringFunc(text, snake)
	}
	return schema
}

var goName = regexp.MustCompile(`\b[A-Z][a-z]+([A-Z][a-z]+)+\b`) // of a field, in a comment

// rare returns the schema of a record that the codec writes by its fields' tags.
func rare[T any](comments map[string]string, kind string) object {
	t := reflect.TypeFor[T]()
	mark := t == reflect.TypeFor[codec.FeedbackMark]()
	rows := mark || t == reflect.TypeFor[codec.Cut]()
	s := structure(comments, t, rows)
	properties := s["properties"].(object)
	properties["crc"] = object{"type": "integer", "description": "CRC-32C of the bytes before this key"}
	v := object{"type": "integer", "minimum": 1, "description": "of the record's layout"}
	if mark {
		v["minimum"] = 4
	}
	properties["v"] = v
	if kind != "" {
		properties["type"] = typeOf(kind)
	}
	if t == reflect.TypeFor[codec.Reject]() {
		properties["topic"].(object)["enum"] = []string{"contexts", "outcomes"}
		properties["reason"].(object)["enum"] = []string{codec.ReasonLate, codec.ReasonDuplicate, codec.ReasonOrphan,
			codec.ReasonMismatch, codec.ReasonMalformed, codec.ReasonDuplicateID}
	}
	return s
}

func typeOf(kind string) object {
	return object{"const": kind, "description": "in JSON; the header hindsight-type says it in both encodings"}
}

func open() object {
	return object{"type": "object", "required": []string{"type"}, "properties": object{"type": typeOf("open")}}
}

// structure returns the schema of a struct whose fields have a tag.
func structure(comments map[string]string, t reflect.Type, rows bool) object {
	properties, required := object{}, []string{}
	for f := range t.Fields() {
		key, option, _ := strings.Cut(f.Tag.Get("msgpack"), ",")
		if key == "" || key == "-" {
			continue
		}
		properties[key] = described(comments, t, f, value(comments, f.Type, rows))
		if option != "omitempty" {
			required = append(required, key)
		}
	}
	return object{"type": "object", "properties": properties, "required": required}
}

func value(comments map[string]string, t reflect.Type, rows bool) object {
	switch t.Kind() {
	case reflect.String:
		return object{"type": "string"}
	case reflect.Uint32:
		return object{"type": "integer", "minimum": 0, "maximum": 1<<32 - 1}
	case reflect.Struct:
		if !rows {
			return structure(comments, t, rows)
		}
		return row(comments, t)
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return object{"type": []string{"string", "null"}, "contentEncoding": "base64"}
		}
		list := object{"type": []string{"array", "null"}, "items": value(comments, t.Elem(), rows)}
		if rows {
			list["type"] = "array"
		}
		return list
	}
	return object{"type": "integer"}
}

// row returns the schema of a struct that is a list of its values.
func row(comments map[string]string, t reflect.Type) object {
	items := []object{}
	for f := range t.Fields() {
		if key := f.Tag.Get("msgpack"); key != "" && key != "-" {
			item := described(comments, t, f, value(comments, f.Type, true))
			item["title"] = key
			items = append(items, item)
		}
	}
	return object{"type": "array", "prefixItems": items, "items": false, "minItems": len(items)}
}

// event returns the schema of a decision or feedback, whose keys are the fields of its struct, in
// another case.
func event(comments map[string]string, x any) object {
	t := reflect.TypeOf(x)
	properties := object{
		"v":          object{"type": "integer", "minimum": 1, "description": "of the record's layout"},
		"propensity": unsaid(probability("of the action; null: another system decided, and did not give it")),
	}
	required, ends := []string{"v", "propensity"}, []string(nil)
	for f := range t.Fields() {
		key, schema, optional := snake(f.Name), object{"type": "integer"}, false
		switch f.Name {
		case "Actions", "Unknown":
			continue // the keys of propensities, and what of them is null
		case "Propensities":
			schema = object{"type": "object", "additionalProperties": unsaid(probability(""))}
		case "ID", "Action":
			schema = object{"type": "string"}
		case "Reason":
			schema = object{"enum": []string{"", codec.ReasonOverflow, codec.ReasonDuplicateID, codec.ReasonInactive,
				codec.ReasonLost, codec.ReasonRepeat}}
		case "Fate":
			schema = object{"enum": []string{"observed", "imputed", "skipped", "withdrawn"}}
		case "Gamma", "Value":
			schema = object{"type": "number"}
		case "Loss":
			schema = probability("")
		case "Mode":
			schema, optional = object{"enum": append(codec.Modes()[1:], codec.External.String())}, true
		case "Would":
			schema, optional = object{"type": "array", "items": probability("")}, true
		case "Era":
			optional = true
		case "Prices":
			schema, optional = object{"type": "object", "additionalProperties": object{"type": "number", "minimum": 0}},
				true
		case "Outcomes":
			schema, optional = object{"type": "object", "additionalProperties": closed(comments)}, true
		case "Stage":
			schema, optional = object{"type": "integer", "minimum": 1}, true
		case "Unit":
			schema, optional = object{"type": "string", "minLength": 1}, true
		case "First":
			schema, optional = object{"type": "object", "required": []string{"partition", "n"}, "properties": object{
				"partition": object{"type": "integer"}, "n": object{"type": "integer", "minimum": 1}}}, true
		case "Context":
			schema = object{"type": []string{"object", "string"}, "contentEncoding": "base64"}
		}
		switch properties[key] = described(comments, t, f, schema); {
		case optional:
		case slices.Contains([]string{"Fate", "Reason", "Loss", "OutcomePartition", "OutcomeOffset"}, f.Name):
			ends = append(ends, key)
		default:
			required = append(required, key)
		}
		if text := more[f.Name]; text != "" {
			schema["description"] = text
		}
	}
	s := object{"type": "object", "properties": properties, "required": required}
	if len(ends) > 0 { // a record of an earlier stage has none of them
		s["oneOf"] = []object{{"required": ends}, {"required": []string{"stage", "outcomes"}}}
	}
	return s
}

// closed returns the schema of what became of a named outcome.
func closed(comments map[string]string) object {
	s := event(comments, codec.Closed{})
	properties := s["properties"].(object)
	for _, key := range []string{"v", "propensity", "name"} {
		delete(properties, key)
	}
	properties["stage"] = object{"type": "integer", "minimum": 1,
		"description": "of the earlier record that told of it; left out if this one does"}
	return object{"type": "object", "properties": properties,
		"required": []string{"fate", "value", "partition", "offset", "closed_at"}}
}

// more says what the comments of fields do not, for they are of Go.
var more = map[string]string{
	"Action": "the drawn one",
	"Propensities": "of each eligible action, in the order of the intervals; multiples of 2^-53 that sum to 1. " +
		"Of another system that did not give them they are null",
	"Outcomes": "of a model that names them: each with its value on its own scale; in the record of an earlier stage " +
		"those of that stage",
	"Stage": "1, 2, … in a record that tells of some outcomes before the round has its fate",
	"Mode":  "how the round was decided; left out if it was live",
	"First": "the draw of the unit that this round repeats: the law, the action and the mode are its",
	"Would": "in shadow, the law that the learner would have drawn from, in the order of propensities",
	"Context": "as it came: in JSON an object, of what came as MessagePack with the same keys; in " +
		"MessagePack, bytes. A text is base64",
}

func probability(text string) object {
	p := object{"type": "number", "minimum": 0, "maximum": 1}
	if text != "" {
		p["description"] = text
	}
	return p
}

// unsaid makes a number one that may be null.
func unsaid(number object) object {
	number["type"] = []string{"number", "null"}
	return number
}

// snake returns a Go name as a key: LearnedThrough is learned_through.
func snake(name string) string {
	var b strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) && i > 0 && unicode.IsLower(rune(name[i-1])) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// written returns a schema that is written by hand, for clients leave out what they like.
func written(t *testing.T, text string) (s any) {
	if err := yaml.Unmarshal([]byte(text), &s); err != nil {
		t.Fatal(fmt.Errorf("%w: %s", err, text))
	}
	return s
}

const context = `type: object
properties:
  v: {type: integer, minimum: 1, description: of the record's layout}
  id:
    type: [string, 'null']
    maxLength: 256
    description: >-
      of the round; minted if it is absent: <partition>-<offset>, of a request r-<partition>-<n>, and if that is taken
      the same with - and 16 hexadecimal digits
  features:
    oneOf:
      - &features
        oneOf:
          - type: object
            additionalProperties: {type: [number, string, boolean, array, 'null'], items: {type: number}}
          - {type: array, items: {type: number}}
      - {type: 'null'}
  actions:
    type: [array, 'null']
    description: absent, those of the model
    items:
      oneOf:
        - {type: string}
        - type: object
          required: [name]
          properties: {name: {type: string}, features: *features}
  baseline:
    description: what the caller would do without a learner
    oneOf:
      - {type: 'null'}
      - {type: string}
      - {type: object, additionalProperties: {type: number}}
  logged_propensity:
    type: number
    minimum: 0
    maximum: 1
    description: of the action that baseline names, where another system drew it; kept, nothing is weighted by it
  assigned:
    description: what another system decided; the context then needs an id, and nothing is drawn
    oneOf:
      - {type: 'null'}
      - type: object
        required: [action]
        properties:
          action: {type: string, minLength: 1}
          propensity: {type: [number, 'null'], exclusiveMinimum: 0, maximum: 1, description: of the action}
          propensities:
            type: [object, 'null']
            additionalProperties: {type: number, minimum: 0, maximum: 1}
            description: the whole law instead; an action that is left out has 0
          by: {type: [string, 'null'], description: who decided}
  unit: {description: 'whom or what it is about, a text of at most 256 bytes; a model with sticky units draws once for it'}
  slots:
    type: [array, 'null']
    maxItems: 32
    description: decided one after the other, each a round of its own; by request only
    items:
      oneOf:
        - {type: string}
        - type: object
          required: [name]
          properties:
            name: {type: string}
            actions: {type: [array, 'null'], items: {type: string}, description: 'that may be played there; absent, all'}
            features: {type: [object, 'null']}
            baseline: {oneOf: [{type: 'null'}, {type: string}, {type: object, additionalProperties: {type: number}}]}
`

const outcome = `type: object
anyOf:
  - {required: [id]}
  - {required: [unit]}
description: 'It says one of loss, reward, withdrawn, activated and outcomes; null, and false, say nothing.'
oneOf:
  - {required: [loss], properties: {loss: {type: number}}}
  - {required: [reward], properties: {reward: {type: number}}}
  - {required: [withdrawn], properties: {withdrawn: {const: true}}}
  - {required: [activated], properties: {activated: {const: true}}}
  - {required: [outcomes], properties: {outcomes: {type: object, minProperties: 1}}}
properties:
  v: {type: integer, minimum: 1, description: of the record's layout}
  id: {type: string, description: of the round}
  unit: {description: whose last draw it is of, in the place of id}
  loss: {type: [number, 'null'], description: on the model's scale}
  reward: {type: [number, 'null'], description: on the model's scale}
  withdrawn: {type: [boolean, 'null'], description: the decision was never shown}
  activated: {type: [boolean, 'null'], description: 'the decision was shown, for a model with activation: required'}
  outcomes:
    type: [object, 'null']
    maxProperties: 32
    additionalProperties: {type: [number, 'null']}
    description: those that the model names, each on its own scale; null withdraws one. Several records add up
  action: {type: [string, 'null'], description: if it is another one than was decided the outcome is rejected}
  outcome_id: {type: [string, 'null'], maxLength: 256, description: a second outcome with it is a duplicate}
`
