package trace

import (
	"strings"
	"testing"

	"hindsight/pkg/stream"
)

const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// TestValid holds what W3C Trace Context says of traceparent.
func TestValid(t *testing.T) {
	for _, c := range []struct {
		value string
		valid bool
	}{
		{parent, true},
		{strings.TrimSuffix(parent, "1") + "0", true},
		{"cc" + parent[2:], true},
		{"cc" + parent[2:] + "-what-will-be", true},
		{"", false},
		{parent[1:], false},
		{"ff" + parent[2:], false},
		{parent + "-more", false},
		{"cc" + parent[2:] + ".more", false},
		{strings.ToUpper(parent), false},
		{strings.Replace(parent, "-", "_", 1), false},
		{strings.Replace(parent, "4bf92f3577b34da6a3ce929d0e0e4736", strings.Repeat("0", 32), 1), false},
		{strings.Replace(parent, "00f067aa0ba902b7", strings.Repeat("0", 16), 1), false},
		{strings.Replace(parent, "4b", "4-", 1), false},
		{parent[:size-1] + "g", false},
	} {
		if got := Valid(c.value); got != c.valid {
			t.Errorf("%q: %v", c.value, got)
		}
	}
	for i := range parent { // each place holds what it must
		if v := parent[:i] + "g" + parent[i+1:]; Valid(v) {
			t.Errorf("%q is valid", v)
		}
	}
}

// TestOf holds that the header is found whatever its case, that two of them are none, and that looking allocates
// nothing.
func TestOf(t *testing.T) {
	one, other := stream.Header{Key: "Traceparent", Value: parent}, stream.Header{Key: "ce-id", Value: "x"}
	if got := Of([]stream.Header{other, one}); got != parent {
		t.Errorf("%q", got)
	}
	for _, headers := range [][]stream.Header{nil, {other}, {one, one}, {{Key: Header, Value: "x"}},
		{one, {Key: Header, Value: "x"}}} {
		if got := Of(headers); got != "" {
			t.Errorf("%v: %q", headers, got)
		}
	}
	headers := []stream.Header{other, one}
	if n := testing.AllocsPerRun(100, func() { Of(headers) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
