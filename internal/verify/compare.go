package verify

import (
	"bytes"
	"fmt"
	"math"
	"reflect"
	"strings"
	"unicode"
)

// pair is one field of two records.
type pair struct {
	field     string
	want, got any
}

// firstUnequal returns the first field in which two records differ, "" if none.
func firstUnequal(fields []pair) (field, want, got string) {
	for _, f := range fields {
		if w, g := fmt.Sprint(f.want), fmt.Sprint(f.got); w != g {
			return f.field, w, g
		}
	}
	return "", "", ""
}

// unequal names the first field in which two records of one type differ, as it is called in the record,
// and shows both; "" if there is none. A context comes first: all else may follow from it.
func unequal(want, got any) (field, w, g string) {
	a, b := reflect.ValueOf(want).Elem(), reflect.ValueOf(got).Elem()
	order := []int{}
	for i := range a.NumField() {
		if order = append(order, i); a.Type().Field(i).Name == "Context" {
			copy(order[1:], order)
			order[0] = i
		}
	}
	for _, i := range order {
		if x, y := a.Field(i), b.Field(i); !reflect.DeepEqual(x.Interface(), y.Interface()) {
			if field, w, g = unequalField(a, b, i); field != "" {
				return field, w, g
			}
		}
	}
	return "", "", ""
}

func unequalField(a, b reflect.Value, i int) (field, w, g string) {
	x, y, name := a.Field(i), b.Field(i), wireName(a.Type().Field(i))
	switch p := x.Interface().(type) {
	case []byte:
		if q := y.Bytes(); !bytes.Equal(p, q) {
			_, w, g = bytesField(p, q)
			return name, w, g
		}
		return "", "", ""
	case float64:
		return name, exact(p), exact(y.Float())
	case []float64:
		actions := a.FieldByName("Actions").Interface().([]string)
		for k, q := range y.Interface().([]float64) {
			if k < len(p) && k < len(actions) && math.Float64bits(p[k]) != math.Float64bits(q) {
				return name + "." + actions[k], exact(p[k]), exact(q)
			}
		}
	case []string:
		if name == "actions" {
			name = "propensities" // whose keys they are
		}
	}
	if x.Kind() == reflect.Slice && x.Type().Elem().Kind() == reflect.Struct && x.Len() == y.Len() {
		for k := range x.Len() {
			if field, w, g = unequal(x.Index(k).Addr().Interface(), y.Index(k).Addr().Interface()); field != "" {
				return fmt.Sprintf("%s[%d].%s", name, k, field), w, g
			}
		}
	}
	if name == "action" {
		all, k := a.FieldByName("Actions"), [2]int64{x.Int(), y.Int()}
		return name, all.Index(int(k[0])).String(), all.Index(int(k[1])).String()
	}
	w, g = fmt.Sprint(x.Interface()), fmt.Sprint(y.Interface())
	if w == g { // nil and empty
		return "", "", ""
	}
	return name, w, g
}

// wireName is what a field is called in a record. Tags say the same of all fields that are compared.
func wireName(f reflect.StructField) string {
	var b strings.Builder
	for i, c := range f.Name {
		if i > 0 && unicode.IsUpper(c) && unicode.IsLower(rune(f.Name[i-1])) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(c))
	}
	return b.String()
}

// exact shows a float exactly.
func exact(x float64) string { return fmt.Sprintf("%v (%016x)", x, math.Float64bits(x)) }

// bytesField shows where two byte strings part; not what they say, for that may be
// about people.
func bytesField(want, got []byte) (field, w, g string) {
	i := 0
	for i < len(want) && i < len(got) && want[i] == got[i] {
		i++
	}
	show := func(b []byte) string {
		if i == len(b) {
			return fmt.Sprintf("%d bytes", len(b))
		}
		return fmt.Sprintf("%d bytes, with %#02x at %d", len(b), b[i], i)
	}
	return "bytes", show(want), show(got)
}

// differs names the first field in which two records of one type differ, whose bytes do, or shows where
// the bytes part.
func differs(want, got any, wantBytes, gotBytes []byte) (field, w, g string) {
	if field, w, g = unequal(want, got); field == "" {
		return bytesField(wantBytes, gotBytes)
	}
	return field, w, g
}
