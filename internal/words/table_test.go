package words

import (
	"strings"
	"testing"
)

func written(t *testing.T, table *Table, width int) string {
	t.Helper()
	var b strings.Builder
	if err := table.Write(&b, width); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// By hand: figures to the right, what does not fit below with the names again, and text that goes on in the next
// line.
func TestTable(t *testing.T) {
	figures := &Table{Left: 1}
	figures.Row("name", "x", "much", "z")
	figures.Row("é", "1.25", "2", "–")
	if got, want := written(t, figures, figures.Width()), "name     x  much  z\né     1.25     2  –\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := written(t, figures, figures.Width()-1),
		"name     x  much\né     1.25     2\n\nname  z\né     –\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := written(t, figures, 1),
		"name     x\né     1.25\n\nname  much\né        2\n\nname  z\né     –\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	text := &Table{Indent: "  ", Left: All}
	text.Pair("a", "%s goes on", "this")
	text.Row("bc", "short")
	if got, want := written(t, text, 13), "  a   this\n      goes on\n  bc  short\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := written(t, &Table{}, 10); got != "" {
		t.Errorf("%q of nothing", got)
	}
}
