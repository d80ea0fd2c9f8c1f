package codec

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
)

// TestRules holds what the rules say of each field of each event, and of each part of its lists, at the ends of what
// it may be and beyond them: a line in testdata/rules.txt each, which -update writes anew.
func TestRules(t *testing.T) {
	var out strings.Builder
	known := map[string]bool{} // what is said already of an event of the same type
	for _, c := range []struct {
		name string
		x    any // a pointer
		rule func(x any) error
	}{
		{"context", ptr(sampleContext()), contextRule},
		{"context with a vector", ptr(sampleVector()), contextRule},
		{"context with a law", ptr(sampleAssigned()), contextRule},
		{"context with a propensity", ptr(sampleAssignedAlone()), contextRule},
		{"context with slots", ptr(sampleSlots()), contextRule},
		{"context of a unit", ptr(sampleUnit()), contextRule},
		{"outcome", ptr(sampleOutcome()), outcomeRule},
		{"outcome of a unit", &Outcome{Unit: "user-17", Kind: Reward, Value: 1}, outcomeRule},
		{"named outcome", ptr(sampleNamed()), outcomeRule},
		{"decision", ptr(sampleEraDecision()), decisionRule},
		{"decision in shadow", ptr(samplePrices()), decisionRule},
		{"decision of another system", ptr(sampleExternal(UnknownRest)), decisionRule},
		{"decision that repeats", ptr(sampleRepeat()), decisionRule},
		{"feedback", ptr(sampleFeedback()), feedbackRule},
		{"feedback of a stage", ptr(sampleStage()), feedbackRule},
		{"feedback of the last stage", ptr(sampleLastStage()), feedbackRule},
		{"feedback of a repeat", ptr(sampleRepeatFeedback()), feedbackRule},
	} {
		if err := c.rule(c.x); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		leaves(reflect.ValueOf(c.x).Elem(), "", func(path string, v reflect.Value) {
			var line strings.Builder
			was, last := reflect.New(v.Type()).Elem(), ""
			was.Set(v)
			for _, x := range others(v) {
				v.Set(reflect.ValueOf(x).Convert(v.Type()))
				said := "fine"
				if err := c.rule(c.x); err != nil {
					said = err.Error()
				}
				if said != last && last != "" {
					fmt.Fprintf(&line, " = %s;", last)
				}
				last = said
				fmt.Fprintf(&line, " %s", brief(x))
			}
			v.Set(was)
			text := fmt.Sprintf("%s:%s = %s", path, line.String(), last)
			if key := fmt.Sprintf("%T %s", c.x, text); !known[key] {
				known[key] = true
				fmt.Fprintf(&out, "%s%s\n", c.name, strings.ReplaceAll(text, strings.Repeat("x", 64), "xx"))
			}
		})
	}
	sameText(t, "testdata/rules.txt", out.String())
}

func ptr[T any](x T) *T { return &x }

func contextRule(x any) error {
	c := x.(*Context)
	if err := c.Validate(); err != nil {
		return err
	}
	return c.CheckUnit()
}

func outcomeRule(x any) error  { return x.(*Outcome).Validate() }
func decisionRule(x any) error { return x.(*Decision).Validate() }
func feedbackRule(x any) error { return x.(*Feedback).Validate() }

// leaves visits the numbers, texts and lists of a value; of a list its first and its last part.
func leaves(v reflect.Value, path string, visit func(path string, v reflect.Value)) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() {
				leaves(f, path+" "+v.Type().Field(i).Name, visit)
			}
		}
	case reflect.Slice:
		visit(path, v)
		if v.Type().Elem().Kind() == reflect.Uint8 || v.Len() == 0 {
			return
		}
		leaves(v.Index(0), path+" first", visit)
		if n := v.Len(); n > 1 {
			leaves(v.Index(n-1), path+" last", visit)
		}
	default:
		visit(path, v)
	}
}

// others returns what a field is set to.
func others(v reflect.Value) (all []any) {
	switch v.Kind() {
	case reflect.Float64:
		return []any{math.NaN(), math.Inf(-1), -1.0, -0x1p-53, 0.0, 0x1p-60, 0x1p-53, .3, .5, 1 - 0x1p-53,
			1 - 2e-6, 1.0,
			1 + 0x1p-52, 2.0, math.Inf(1)}
	case reflect.String:
		for _, n := range []int{0, 1, MaxIDBytes, MaxIDBytes + 1, MaxTextBytes, MaxTextBytes + 1} {
			all = append(all, strings.Repeat("x", n))
		}
		for _, s := range []string{"b", "\x1f", " ", "~", "\x7f", "\u0080", "\u009f", "\u00a0", "\xff", "1234567\x1f",
			"12345678\x1f", "1234567\x80", ReasonOverflow, ReasonLost, ReasonRepeat} {
			all = append(all, s)
		}
		return all
	case reflect.Bool:
		return []any{false, true}
	case reflect.Slice:
		all = []any{reflect.Zero(v.Type()).Interface(), reflect.MakeSlice(v.Type(), 0, 0).Interface()}
		n := v.Len()
		for _, n := range []int{31, 32, 33} {
			all = append(all, reflect.MakeSlice(v.Type(), n, n).Interface())
		}
		if n > 0 {
			all = append(all, v.Slice(0, n-1).Interface(), v.Slice(1, n).Interface(),
				reflect.AppendSlice(reflect.AppendSlice(reflect.Zero(v.Type()), v), v.Slice(0, 1)).Interface())
		}
		return all
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uint:
		for n := range 10 {
			all = append(all, n)
		}
		return all
	}
	return []any{math.MinInt16, -2, -1, 0, 1, 2, 3, 4, 5, 6, math.MaxInt16}
}

// brief shows a value in little room.
func brief(x any) string {
	switch v := reflect.ValueOf(x); v.Kind() {
	case reflect.String:
		if v.Len() > 20 {
			return fmt.Sprintf("x*%d", v.Len())
		}
		return fmt.Sprintf("%+q", x)
	case reflect.Slice:
		if v.IsNil() {
			return "none"
		}
		return fmt.Sprintf("[%d]", v.Len())
	}
	return fmt.Sprint(x)
}
