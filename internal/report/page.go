package report

import (
	"embed"
	"fmt"
	"html/template"
	"io"
	"math"

	"hindsight/internal/ope"
	"hindsight/internal/style"
)

// Page is a report for people: what must be known first, some figures, sections with
// tables and charts. It is written as one HTML file that needs nothing else.
type Page struct {
	Title    string
	Subtitle string
	Verdict  string // whether it is worth having, in a sentence; "": that is not asked
	Flags    []pageFlag
	Says     []string // what the figures say, a sentence each
	Tiles    []tile
	Sections []section
	Foot     string
}

// level is how bad something is.
type level string

const (
	bad  level = "bad"
	warn level = "warn"
	good level = "good"
)

// pageFlag is what speaks against believing the figures, or that nothing does.
type pageFlag struct {
	Level level
	Text  string
}

// flag adds one.
func (p *Page) flag(l level, format string, args ...any) {
	p.Flags = append(p.Flags, pageFlag{l, fmt.Sprintf(format, args...)})
}

// tile is a figure in large type.
type tile struct{ Label, Value, Note string }

// section is a part of a page.
type section struct {
	ID, Title string
	Says      []string // a paragraph each
	Parts     []any    // [*table], [*pageChart] or [note], in order
}

// note is a paragraph between tables and charts.
type note string

type table struct {
	Caption string
	Inset   bool // as text it stands two columns in
	Columns []column
	Rows    [][]tableCell
}

// column is the head of a column; Means says what its figures are, below the table.
type column struct {
	Name, Means string
	Text        bool // it holds words, not figures
}

// Explained returns the columns whose figures are explained, which stands below the table:
// paper and fingers have no pointer to rest on a name.
func (t *table) Explained() (out []column) {
	for _, c := range t.Columns {
		if c.Means != "" {
			out = append(out, c)
		}
	}
	return out
}

// tableCell is a text; one of a level stands out.
type tableCell struct {
	Text  string
	Level level
}

// row adds a row of plain cells.
func (t *table) row(cells ...string) {
	var row []tableCell
	for _, c := range cells {
		row = append(row, tableCell{Text: c})
	}
	t.Rows = append(t.Rows, row)
}

// mark gives the last row a level.
func (t *table) mark(l level) {
	for i := range t.Rows[len(t.Rows)-1] {
		t.Rows[len(t.Rows)-1][i].Level = l
	}
}

const (
	lines  = "lines"
	bars   = "bars"
	points = "points" // with whiskers, beside each other at each name
)

const (
	logScale  = "log"
	timeScale = "time" // x in seconds since 1970
)

// pageChart is a chart with one or more views of the same x: all have a series of the same name at the same place.
type pageChart struct {
	ID    string `json:"id"`
	Title string `json:"-"`
	Says  string `json:"-"`
	Kind  string `json:"kind"`
	X     axis   `json:"x"`
	Y     axis   `json:"y"`
	// Names are what x = 0, 1, 2, … stand for; nil: x is At.
	Names []string  `json:"names,omitempty"`
	At    []float64 `json:"at,omitempty"`
	Views []view    `json:"views"`
}

// axis says what is along it.
type axis struct {
	Label string `json:"label"`
	Scale string `json:"scale,omitempty"`
	Zero  bool   `json:"zero,omitempty"` // it begins at 0, which stands at ½ of a logarithmic one
}

// view is one way to look at a chart.
type view struct {
	Name   string   `json:"name"`
	Series []series `json:"series"`
}

// series is one line, with its band if Low and High are there.
type series struct {
	Name  string       `json:"name"`
	Y     []ope.Figure `json:"y"`
	Low   []ope.Figure `json:"low,omitempty"`
	High  []ope.Figure `json:"high,omitempty"`
	Aside bool         `json:"aside,omitempty"` // to compare with: grey and dashed
	Off   bool         `json:"off,omitempty"`   // hidden at first
}

// empty reports whether there is nothing to draw.
func (c *pageChart) empty() bool {
	for _, v := range c.Views {
		for _, s := range v.Series {
			for _, y := range s.Y {
				if !math.IsNaN(float64(y)) {
					return false
				}
			}
		}
	}
	return true
}

//go:embed assets
var assets embed.FS

// Write writes the page as HTML.
func (p *Page) Write(w io.Writer) error {
	t, err := template.New("page.html").Funcs(template.FuncMap{
		"chart":   func(v any) *pageChart { c, _ := v.(*pageChart); return c },
		"table":   func(v any) *table { t, _ := v.(*table); return t },
		"number":  func(i int) int { return i + 1 },
		"script":  func() template.JS { return template.JS(style.Script) },
		"style":   func() template.CSS { return template.CSS(style.Sheet) },
		"licence": func() string { return style.Licence },
	}).ParseFS(assets, "assets/page.html")
	if err != nil {
		return err
	}
	if err := t.Execute(w, p); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

// Charts returns all charts in order.
func (p *Page) Charts() (out []*pageChart) {
	for _, s := range p.Sections {
		for _, part := range s.Parts {
			if c, ok := part.(*pageChart); ok {
				out = append(out, c)
			}
		}
	}
	return out
}

// add appends parts to a section, charts that have nothing to draw left out.
func (s *section) add(parts ...any) {
	for _, part := range parts {
		if c, ok := part.(*pageChart); ok && (c == nil || c.empty()) {
			continue
		}
		if t, ok := part.(*table); ok && (t == nil || len(t.Rows) == 0) {
			continue
		}
		s.Parts = append(s.Parts, part)
	}
}

func (s *section) say(format string, args ...any) {
	s.Says = append(s.Says, fmt.Sprintf(format, args...))
}
