package words

import (
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf8"
)

// Table is text in aligned columns, two spaces apart.
type Table struct {
	Indent string // before each row
	Left   int    // so many columns are aligned to the left, the others to the right; [All]: all
	Rows   [][]string
}

// All columns of a table.
const All = math.MaxInt

// NoLimit is the width of what is written as wide as it is.
const NoLimit = math.MaxInt

// Row adds a row, which has as many cells as the others.
func (t *Table) Row(cells ...string) { t.Rows = append(t.Rows, cells) }

// Pair adds a row of a name and what there is to say of it.
func (t *Table) Pair(name, format string, args ...any) { t.Row(name, fmt.Sprintf(format, args...)) }

// Width returns how wide the table is.
func (t *Table) Width() int {
	width := len(t.Indent)
	for _, n := range t.sizes() {
		width += n + 2
	}
	return width - 2
}

// sizes returns how wide each column is.
func (t *Table) sizes() (sizes []int) {
	for _, r := range t.Rows {
		for i, c := range r {
			if i == len(sizes) {
				sizes = append(sizes, 0)
			}
			sizes[i] = max(sizes[i], utf8.RuneCountInString(c))
		}
	}
	return sizes
}

// Write writes the rows, at most so many columns wide. Where all is aligned to the left, a last cell that is too
// long goes on in the next line, broken at spaces; else the columns that do not fit go on in a table below, which
// begins with those to the left again.
func (t *Table) Write(w io.Writer, width int) error {
	var b strings.Builder
	sizes := t.sizes()
	columns := len(sizes)
	keep := min(t.Left, columns)
	for from := keep; from < columns || from == keep; {
		to, used := columns, len(t.Indent)+2*keep
		if t.Left < columns {
			for _, n := range sizes[:keep] {
				used += n
			}
			for to = from; to < columns && (to == from || used+sizes[to] <= width); to++ {
				used += sizes[to] + 2
			}
		}
		if from > keep {
			b.WriteByte('\n')
		}
		for _, r := range t.Rows {
			b.WriteString(t.line(sizes, append(r[:keep:keep], r[from:to]...), from-keep, width))
		}
		from = max(to, keep+1)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// line writes a row of which columns are left out behind those to the left.
func (t *Table) line(sizes []int, cells []string, out, width int) string {
	line, used := t.Indent, len(t.Indent)
	for i, c := range cells {
		at := i
		if i >= t.Left {
			at += out
		}
		space := strings.Repeat(" ", max(0, sizes[at]-utf8.RuneCountInString(c)))
		switch {
		case i >= t.Left:
			line += space + c
		case i == len(cells)-1:
			return line + Wrap(c, width-used, used) + "\n"
		default:
			line += c + space
		}
		if used += sizes[at] + 2; i < len(cells)-1 {
			line += "  "
		}
	}
	return line + "\n"
}

// Wrap breaks text at spaces into lines of at most width, indented but for the first.
func Wrap(text string, width, indent int) string {
	var b strings.Builder
	used := 0
	for i, word := range strings.Split(text, " ") {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case used+1+n > width:
			b.WriteByte('\n')
			b.WriteString(strings.Repeat(" ", indent))
			used = 0
		default:
			b.WriteByte(' ')
			used++
		}
		b.WriteString(strings.ReplaceAll(word, NoBreak, " "))
		used += n
	}
	return b.String()
}
