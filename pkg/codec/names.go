package codec

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Names are names that came with a record, which may be anything and any number. The zero
// value is empty. It keeps the first few, so that what is made of them is short.
type Names struct {
	kept []string
	more bool
}

const (
	keptNames = 8  // of Names
	nameBytes = 40 // of each that are shown
)

// Add adds a name, unless it is there.
func (n *Names) Add(name string) {
	switch {
	case slices.Contains(n.kept, name):
	case len(n.kept) == keptNames:
		n.more = true
	default:
		n.kept = append(n.kept, strings.Clone(name))
	}
}

func (n *Names) clear() { *n = Names{} }

// String returns the names, with commas between them and … where there are more. One that is
// long is cut, and one that could be mistaken for something else is quoted.
func (n *Names) String() string {
	out := make([]string, len(n.kept), len(n.kept)+1)
	for i, name := range n.kept {
		out[i] = shown(name)
	}
	if n.more {
		out = append(out, "…")
	}
	return strings.Join(out, ", ")
}

func shown(name string) string {
	tail := ""
	if len(name) > nameBytes {
		cut := nameBytes
		for cut > 0 && !utf8.RuneStart(name[cut]) {
			cut--
		}
		name, tail = name[:cut], "…"
	}
	if quoted := strconv.QuoteToGraphic(name); name == "" || len(quoted) != len(name)+2 ||
		strings.ContainsAny(name, ", …") {
		return quoted + tail
	}
	return name + tail
}
