package model

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"hindsight/internal/loop"
)

// numbers are the numbers of a model file by where they end up in a [Model]: the line that
// says them, and values that are too large or too small.
var numbers = map[string]struct {
	line string
	bad  []string
}{
	"Version":     {"version: %s", []string{"0", "1e300"}},
	"MaxActions":  {"max_actions: %s", []string{"0", "10001", "1000000000000"}},
	"MaxFeatures": {"max_features: %s", []string{"0", "65537", "1000000000000"}},
	"Features.Lo": {"features: {x: {number: [%s, 1]}}", []string{"-1e999", "2", ".nan"}},
	// a vector's too: TestErrors
	"Features.Hi":     {"features: {x: {number: [0, %s]}}", []string{"1e999", "-1", ".nan"}},
	"Range.Min":       {"loss: {min: %s, max: 1}", []string{"-1.7e308", "2", "-.inf"}},
	"Range.Max":       {"loss: {min: 0, max: %s}", []string{"1.7e308", "-1", ".inf"}},
	"Learner.Epsilon": {"learner: {egreedy: %s}", []string{"-0.1", "1.1", ".nan"}},
	"Delays": {"learner: {kind: exp4dale, policies: p, d: %s, horizon: 1}",
		[]string{"-1", "1e300", "4503599627370497"}},
	"Horizon": {"learner: {kind: exp4dale, policies: p, d: 1, horizon: %s}",
		[]string{"0", "1e300", "1099511627777"}},
	"Explore.Factor":    {"explore: %s", []string{"0", "-1", "1e10"}},
	"Explore.Horizon":   {"explore: {paper: %s}", []string{"0", "1e300", "99999999999999999999"}},
	"Oracle.Version":    {"oracle: {kind: linear, version: %s}", []string{"0", "99"}},
	"Oracle.Beta":       {"oracle: {kind: linear, beta: %s}", []string{"-0.1", "1.1"}},
	"Oracle.Lambda":     {"oracle: {kind: linear, lambda: %s}", []string{"0", "1e10", "-1"}},
	"Oracle.Forget":     {"oracle: {kind: linear, forget: %s}", []string{"0.4", "1"}},
	"Oracle.Hashed":     {"oracle: {kind: shared, hashed: %s}", []string{"1", "1000000000000"}},
	"Oracle.Fourier":    {"oracle: {kind: linear, fourier: %s}", []string{"-1", "1000000", "1.5"}},
	"Oracle.Columns":    {"oracle: {kind: auto, columns: %s}", []string{"-1", "1000000", "1.5"}},
	"Oracle.Bandwidth":  {"oracle: {kind: linear, fourier: 8, bandwidth: %s}", []string{"0", "1e4"}},
	"Oracle.Seed":       {"oracle: {kind: linear, fourier: 8, seed: %s}", []string{"-1", "9007199254740993"}},
	"Oracle.Eta":        {"oracle: {kind: hedge, class: c, unproved: true, eta: %s}", []string{"0", "1e7"}},
	"Window.Rounds":     {"window: %s rounds", []string{"0", "1000000001"}},
	"Window.Nanos":      {"window: %s", []string{"-1s", "87601h"}},
	"DefaultLoss":       {"missing: impute\ndefault_loss: %s", []string{"-0.1", "1.1"}},
	"Certificate.Alpha": {"certificate: {alpha: %s}", []string{"0", "0.6"}},
	"Warm.Through":      {"warm: %s", []string{"0", "9007199254740993"}},
	"Guard.Margin":      {"guard: {worse_by: %s}", []string{"-0.1", "1"}},
	"Guard.LoseAtMost":  {"guard: {lose_at_most: %s}", []string{"-0.1", "1", ".nan"}},
	"Guard.Alpha":       {"guard: {alpha: %s}", []string{"0", "0.6"}},
	"Promote.BetterBy":  {"candidates: [uniform]\npromote: {of: uniform, better_by: %s}", []string{"-0.1", "1"}},
	"Promote.Share": {"candidates: [learner]\npromote: {of: learner, only: switch, share: %s}",
		[]string{"0.4", "1.1", ".nan"}},
	"HoldOut":             {"hold_out: %s", []string{"-0.1", "0.6"}},
	"Sticky":              {"unit: {sticky: %s}", []string{"-1s", "999ms", "87601h"}},
	"Promote.Alpha":       {"candidates: [uniform]\npromote: {of: uniform, alpha: %s}", []string{"0", "0.6"}},
	"Named.Range.Min":     {"reward: q\noutcomes: {q: {min: %s}}", []string{"-1.7e308", "2", "-.inf"}},
	"Named.Range.Max":     {"reward: q\noutcomes: {q: {max: %s}}", []string{"1.7e308", "-1", ".inf"}},
	"Named.Window.Rounds": {"reward: q\noutcomes: {q: {window: %s rounds}}", []string{"0", "1000000001"}},
	"Named.Window.Nanos":  {"reward: q\noutcomes: {q: {window: %s}}", []string{"-1s", "87601h"}},
	"Named.Default":       {"reward: q\noutcomes: {q: {missing: {impute: %s}}}", []string{"-0.1", "1.1", ".nan", "x"}},
	"Constants.Values":    {"reward: q/k\noutcomes: {q: {}}\nconstants: {k: %s}", []string{"0", ".inf", "x"}},
	"Budgets.Limit": {"reward: q\noutcomes: {q: {}}\nbudget: {b: {of: q, mean_at_most: %s}}",
		[]string{"0", "1", ".nan"}},
	"Budgets.About": {"reward: q\noutcomes: {q: {}}\nbudget: {b: {of: q, mean_at_most: 0.1, about: %s}}",
		[]string{"-1", "1.1", ".nan"}},
	"Budgets.PayBack": {"reward: q\noutcomes: {q: {}}\nbudget: {b: {of: q, mean_at_most: 0.1, pay_back: %s}}",
		[]string{"0", "10m", "-1", "1e9"}},
}

// TestNumbersOfModels holds that every number of a model file has bounds: a number that a
// model gets anew must have its row.
func TestNumbersOfModels(t *testing.T) {
	found := map[string]bool{}
	leaves("", reflect.TypeFor[Model](), func(path string) { found[path] = true })
	for path := range found {
		if _, ok := numbers[path]; !ok {
			t.Errorf("%s has no row", path)
		}
	}
	for path, n := range numbers {
		if !found[path] {
			t.Errorf("%s is no number of a model", path)
		}
		for _, bad := range n.bad {
			if _, err := Parse("m", fmt.Appendf(nil, n.line, bad)); err == nil {
				t.Errorf(n.line+" is allowed", bad)
			}
		}
	}
}

// leaves calls f for each number of a type; words that are kept as numbers have types of
// their own.
func leaves(path string, of reflect.Type, f func(path string)) {
	switch kind := of.Kind(); {
	case of == reflect.TypeFor[Number]():
		f(path)
	case of == reflect.TypeFor[loop.FilePolicies](): // is made from files
	case kind == reflect.Struct:
		for i := range of.NumField() {
			field := of.Field(i)
			name := strings.TrimPrefix(strings.TrimPrefix(path, "Learner.EXP4")+"."+field.Name, ".")
			if field.Anonymous {
				name = path
			}
			leaves(name, field.Type, f)
		}
	case kind == reflect.Slice:
		leaves(path, of.Elem(), f)
	case of.PkgPath() == "" && kind >= reflect.Int && kind <= reflect.Float64:
		f(path)
	}
}
