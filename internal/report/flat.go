package report

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// A struct is flat as a row of cells whose columns are the paths of its JSON. Lists are
// left out, but for lists of words, which are joined.

var (
	timeType  = reflect.TypeFor[time.Time]()
	wordsType = reflect.TypeFor[[]string]()
)

func columnsOf[T any]() []string { return columns(nil, reflect.TypeFor[T](), "") }

func cellsOf[T any](v *T) []string {
	return cells(nil, reflect.ValueOf(v).Elem(), reflect.TypeFor[T]())
}

// leaf reports whether a type is one cell; no whether it is none.
func leaf(t reflect.Type) (is, no bool) {
	switch t.Kind() {
	case reflect.Struct:
		return t == timeType, false
	case reflect.Slice:
		return t == wordsType, t != wordsType
	case reflect.Map:
		return false, true
	case reflect.Pointer:
		return leaf(t.Elem())
	}
	return true, false
}

// jsonName returns the key of a field; embedded reports that its fields stand in its place.
func jsonName(f reflect.StructField) (name string, embedded, skip bool) {
	name, _, _ = strings.Cut(f.Tag.Get("json"), ",")
	switch {
	case name == "-" || f.Tag.Get("csv") == "-" || !f.IsExported():
		return "", false, true
	case name == "" && f.Anonymous:
		return "", true, false
	case name == "":
		return f.Name, false, false
	}
	return name, false, false
}

func columns(dst []string, t reflect.Type, prefix string) []string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	for i := range t.NumField() {
		f := t.Field(i)
		name, embedded, skip := jsonName(f)
		is, no := leaf(f.Type)
		switch {
		case skip || no:
		case is:
			dst = append(dst, prefix+name)
		case embedded:
			dst = columns(dst, f.Type, prefix)
		default:
			dst = columns(dst, f.Type, prefix+name+".")
		}
	}
	return dst
}

// cells appends those of v; of no value, as many empty ones as t has columns.
func cells(dst []string, v reflect.Value, t reflect.Type) []string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
		if v.IsValid() {
			v = v.Elem()
		}
	}
	for i := range t.NumField() {
		f := t.Field(i)
		_, _, skip := jsonName(f)
		is, no := leaf(f.Type)
		var field reflect.Value
		if v.IsValid() {
			field = v.Field(i)
		}
		switch {
		case skip || no:
		case is:
			dst = append(dst, cell(field))
		default:
			dst = cells(dst, field, f.Type)
		}
	}
	return dst
}

func cell(v reflect.Value) string {
	if v.IsValid() && v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if !v.IsValid() {
		return ""
	}
	switch x := v.Interface().(type) {
	case time.Time:
		return x.UTC().Format(time.RFC3339Nano)
	case []string:
		return strings.Join(x, " | ")
	}
	if v.CanFloat() {
		if x := v.Float(); math.IsNaN(x) || math.IsInf(x, 0) {
			return ""
		}
		return strconv.FormatFloat(v.Float(), 'g', -1, 64)
	}
	return fmt.Sprint(v.Interface())
}
