// Package layout writes what runs, windows, policies and searches came to as text tables, for terminals.
package layout

import (
	"io"
	"strings"
	"unicode/utf8"

	"hindsight/internal/words"
)

// table is text in aligned columns. With right all but the first two are aligned
// to the right.
type table struct {
	rows  [][]string
	right bool
}

func (t *table) row(cells ...string) { t.rows = append(t.rows, cells) }

// write writes the rows. A last cell that would pass the width goes on in the
// next line, broken at spaces.
func (t *table) write(w io.Writer, width int) error {
	var size []int
	for _, r := range t.rows {
		for i, c := range r {
			if i == len(size) {
				size = append(size, 0)
			}
			size[i] = max(size[i], utf8.RuneCountInString(c))
		}
	}
	last := len(size) - 1
	indent := 0
	for _, s := range size[:last] {
		indent += s + 2
	}
	var b strings.Builder
	for _, r := range t.rows {
		for i, c := range r[:last] {
			b.WriteString(t.pad(i, c, size[i]))
			b.WriteString("  ")
		}
		if t.right {
			b.WriteString(t.pad(last, r[last], size[last]))
		} else {
			b.WriteString(wrap(r[last], width-indent, indent))
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writeIn writes the rows and an empty line: in one table, or where that is too wide in
// several below each other, each with the first two columns as one and without the last.
func (t *table) writeIn(w io.Writer, width int) error {
	columns := make([][]string, len(t.rows[0]))
	total := -2
	for i := range columns {
		for _, r := range t.rows {
			columns[i] = append(columns[i], r[i])
		}
		total += broadest(columns[i]) + 2
	}
	if total <= width {
		if err := t.write(w, width); err != nil {
			return err
		}
		_, err := io.WriteString(w, "\n")
		return err
	}
	for i, second := range columns[1] {
		columns[1][i] = columns[0][i] + ", " + second
	}
	return writeColumns(w, columns[1:len(columns)-1], width)
}

func (t *table) pad(column int, cell string, size int) string {
	space := strings.Repeat(" ", max(0, size-utf8.RuneCountInString(cell)))
	if t.right && column > 1 {
		return space + cell
	}
	return cell + space
}

// wrap breaks text at spaces into lines of at most width, indented but for the
// first.
func wrap(text string, width, indent int) string {
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
		b.WriteString(strings.ReplaceAll(word, words.NoBreak, " "))
		used += n
	}
	return b.String()
}

// writeColumns writes columns, whose first cells are their heads, as tables of at most
// that width below each other: what does not fit goes on with the first column again.
func writeColumns(w io.Writer, columns [][]string, width int) error {
	for from := 1; from < len(columns); {
		t := table{right: true}
		used, to := broadest(columns[0])+2, from
		for to < len(columns) && (to == from || used+2+broadest(columns[to]) <= width) {
			used += 2 + broadest(columns[to])
			to++
		}
		for i := range columns[0] {
			row := []string{columns[0][i], ""} // of two, which a table aligns to the left
			for _, c := range columns[from:to] {
				row = append(row, c[i])
			}
			t.row(row...)
		}
		if err := t.write(w, width); err != nil {
			return err
		}
		if _, err := io.WriteString(w, "\n"); err != nil {
			return err
		}
		from = to
	}
	return nil
}

func broadest(cells []string) int {
	n := 0
	for _, c := range cells {
		n = max(n, utf8.RuneCountInString(c))
	}
	return n
}
