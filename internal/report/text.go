package report

import (
	"io"
	"strings"

	"hindsight/internal/words"
)

// WriteText writes the parts of a page for a terminal, at most so many columns wide: tables and notes, charts left
// out, and flags as lines that begin with an exclamation mark.
func (p *Page) WriteText(w io.Writer, width int) error {
	var parts []string
	for _, s := range p.Sections {
		for _, part := range s.Parts {
			switch part := part.(type) {
			case *table:
				parts = append(parts, part.text(width))
			case note:
				parts = append(parts, words.Wrap(string(part), width, 0)+"\n")
			}
		}
	}
	flags := ""
	for _, f := range p.Flags {
		flags += words.Wrap("! "+f.Text, width, 2) + "\n"
	}
	if flags != "" {
		parts = append(parts, flags)
	}
	_, err := io.WriteString(w, strings.Join(parts, "\n"))
	return err
}

// brief makes a page of parts that need no heading.
func brief(parts ...any) *Page {
	p := &Page{Sections: make([]section, 1)}
	p.Sections[0].add(parts...)
	return p
}

// layout returns the table as columns of text. Those of words at its beginning are aligned to the left.
func (t *table) layout() *words.Table {
	out := &words.Table{Left: words.All}
	if t.Inset {
		out.Indent = "  "
	}
	var heads []string
	named := false
	for i, c := range t.Columns {
		heads = append(heads, c.Name)
		named = named || c.Name != ""
		if !c.Text && out.Left == words.All {
			out.Left = i
		}
	}
	if named {
		out.Row(heads...)
	}
	for _, row := range t.Rows {
		var cells []string
		for _, c := range row {
			cells = append(cells, c.Text)
		}
		out.Row(cells...)
	}
	return out
}

func (t *table) text(width int) string {
	var b strings.Builder
	if t.Caption != "" {
		b.WriteString(words.Wrap(t.Caption, width, 0) + "\n")
	}
	_ = t.layout().Write(&b, width) // a builder takes all
	return b.String()
}

// headed returns a table whose columns have names and nothing to explain, so many of words.
func headed(texts int, names ...string) *table {
	t := &table{}
	for i, name := range names {
		t.Columns = append(t.Columns, column{Name: name, Text: i < texts})
	}
	return t
}
