package paper

import (
	"encoding/csv"
	"encoding/json"
	"io"
	"math"
	"strconv"

	"hindsight/internal/chart"
	"hindsight/internal/replay"
	"hindsight/internal/words"
)

// Table is a table of figures. A row has a cell a column: a string, an int, a float64
// or a [replay.Estimate]; in JSON a figure that is not finite is null.
type Table struct {
	Title   string   `json:"title"`
	Columns []string `json:"columns"`
	Rows    [][]any  `json:"rows"`
}

func (t *Table) row(cells ...any) { t.Rows = append(t.Rows, cells) }

// draw shows a table, and as a picture the columns listed over the first one, of numbers or names. Figures without an
// error are what is predicted, dashed; behind an estimate they are what is predicted of that.
func (f *Finding) draw(t Table, name string, pic chart.Chart, columns ...int) *chart.Chart {
	for k, i := range columns {
		s := chart.Series{Name: t.Columns[i]}
		for r, row := range t.Rows {
			x := float64(r)
			switch v := row[0].(type) {
			case int:
				x = float64(v)
			case float64:
				x = v
			case string:
				if k == 0 {
					pic.Names = append(pic.Names, v)
				}
			}
			switch v := row[i].(type) {
			case replay.Estimate:
				addPoint(&s, x, v)
			case float64:
				s.Dashed, s.X, s.Y = true, append(s.X, x), append(s.Y, v)
				if _, ok := row[i-1].(replay.Estimate); ok {
					s.Name = t.Columns[i-1] + ": " + t.Columns[i]
				}
			}
		}
		pic.Series = append(pic.Series, s)
	}
	f.Tables, f.Charts = append(f.Tables, t), append(f.Charts, picture{name, pic})
	return &f.Charts[len(f.Charts)-1].Chart
}

// MarshalJSON writes figures that are not finite as null.
func (t Table) MarshalJSON() ([]byte, error) {
	type plain Table
	out := plain(t)
	out.Rows = make([][]any, len(t.Rows))
	for i, row := range t.Rows {
		for _, c := range row {
			if v, ok := c.(float64); ok && (math.IsInf(v, 0) || math.IsNaN(v)) {
				c = nil
			}
			out.Rows[i] = append(out.Rows[i], c)
		}
	}
	return json.Marshal(out)
}

// Texts returns the rows as they are written for people.
func (t *Table) Texts() (rows [][]string) {
	for _, row := range t.Rows {
		var text []string
		for _, c := range row {
			text = append(text, cellText(c))
		}
		rows = append(rows, text)
	}
	return rows
}

func cellText(c any) string {
	switch v := c.(type) {
	case string:
		return v
	case int:
		return strconv.Itoa(v)
	case float64:
		return number(v)
	case replay.Estimate:
		if v.SE == nil {
			return number(v.Value)
		}
		return words.WithError(v.Value, *v.SE)
	}
	return "?"
}

// number writes four digits.
func number(v float64) string {
	switch {
	case math.IsInf(v, 1):
		return "∞"
	case math.IsNaN(v):
		return "–"
	case math.Abs(v) >= 1000:
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

// writeCSV writes the table with a second column NAME_se for each column of estimates.
func (t *Table) writeCSV(w io.Writer) error {
	c := csv.NewWriter(w)
	estimates := make([]bool, len(t.Columns))
	for _, row := range t.Rows {
		for i, cell := range row {
			if _, ok := cell.(replay.Estimate); ok {
				estimates[i] = true
			}
		}
	}
	var head []string
	for i, name := range t.Columns {
		head = append(head, name)
		if estimates[i] {
			head = append(head, name+"_se")
		}
	}
	rows := [][]string{head}
	for _, row := range t.Rows {
		var out []string
		for i, cell := range row {
			out = append(out, csvCell(cell))
			if e, ok := cell.(replay.Estimate); ok && e.SE != nil {
				out = append(out, csvCell(*e.SE))
			} else if estimates[i] {
				out = append(out, "")
			}
		}
		rows = append(rows, out)
	}
	return c.WriteAll(rows)
}

func csvCell(c any) string {
	switch v := c.(type) {
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case replay.Estimate:
		return strconv.FormatFloat(v.Value, 'g', -1, 64)
	}
	return cellText(c)
}
