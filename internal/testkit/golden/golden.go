// Package golden helps tests with files that say what comes of inputs.
package golden

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// Blocks holds that a file says what say returns of each of its blocks; update writes it so. A block is == with words,
// an input, -- and what is said of it.
func Blocks(t *testing.T, update bool, file string, say func(words []string, input string) string) {
	t.Helper()
	all, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, block := range strings.Split(string(all), "== ")[1:] {
		head, rest, _ := strings.Cut(block, "\n")
		input, want, ok := strings.Cut(rest, "\n--\n")
		words := strings.Fields(head)
		if !ok || len(words) < 2 {
			t.Fatalf("%s: no block: %q", file, block)
		}
		got := say(words, input+"\n")
		if got != want && !update {
			t.Errorf("%s:\n%s\nwant\n%s", head, got, want)
		}
		fmt.Fprintf(&out, "== %s\n%s\n--\n%s", head, input, got)
	}
	if update {
		if err := os.WriteFile(file, []byte(out.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// Fields lists the exported fields of a struct, or of where it points, that are not zero, but for some, in a line.
func Fields(of any, but ...string) string {
	var out strings.Builder
	x := reflect.Indirect(reflect.ValueOf(of))
	for i := range x.NumField() {
		f := x.Type().Field(i)
		if v := x.Field(i); f.IsExported() && !f.Anonymous && !slices.Contains(but, f.Name) && !v.IsZero() {
			fmt.Fprintf(&out, " %s:%v", f.Name, v)
		}
	}
	return out.String() + "\n"
}
