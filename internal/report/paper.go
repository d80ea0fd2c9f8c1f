package report

import (
	"fmt"
	"strings"

	"hindsight/internal/paper"
	"hindsight/internal/words"
)

// Paper makes the report of what was seen of the paper's claims.
func Paper(findings []*paper.Finding, p *Parameters) *Page {
	b := &builder{Results: &Results{Parameters: p}}
	page := &Page{Title: "The claims of the paper, measured", Foot: b.foot()}
	checks, held := 0, 0
	for _, f := range findings {
		s := section{ID: "claim-" + f.Claim, Title: f.Claim, Says: []string{f.Says + " (" + f.Source + ")", "Seen: " +
			f.Seen}}
		for _, c := range f.Checks {
			checks++
			if c.Holds {
				held++
				continue
			}
			page.flag(bad, "%s: does not hold: %s.", f.Claim, c.What)
		}
		for i := range f.Charts {
			s.add(fromChart(f.Charts[i].Name, "", &f.Charts[i].Chart))
		}
		for i := range f.Tables {
			s.add(paperTable(&f.Tables[i], func(cell string) string {
				return strings.ReplaceAll(cell, "±", " ±\u00a0") // a line may break before it
			}))
		}
		page.Sections = append(page.Sections, s)
	}
	if held == checks {
		page.flag(good, "all %d checks hold.", checks)
	}
	page.Subtitle = fmt.Sprintf("%s · %d of %d checks hold", number(int64(len(findings)), "claim"), held, checks)
	page.Says = []string{"An upper bound is a promise for the worst case: a run that stays below it agrees with it, " +
		"and no number of runs proves it."}
	page.Sections = append(page.Sections, b.parameters())
	return page
}

// Claim makes the page of what was seen of one claim, for a terminal.
func Claim(f *paper.Finding) *Page {
	page := brief(note(fmt.Sprintf("── %s · %s\n%s", f.Claim, f.Source, f.Says)))
	s := &page.Sections[0]
	for i := range f.Tables {
		t := paperTable(&f.Tables[i], func(cell string) string { return cell })
		t.Inset = true
		s.add(t)
	}
	var b strings.Builder
	for _, fit := range f.Fits {
		slope := fmt.Sprintf("%.3f", fit.Slope)
		if fit.SE != nil {
			slope = words.WithError(fit.Slope, *fit.SE)
		}
		fmt.Fprintf(&b, "  slope of %s: %s  (%s %.3g)", fit.What, slope, fit.Kind, fit.Predicted)
		if fit.Bound != nil {
			fmt.Fprintf(&b, ", of its bound %.3f", *fit.Bound)
		}
		b.WriteByte('\n')
	}
	held := 0
	for _, c := range f.Checks {
		if c.Holds {
			held++
			continue
		}
		fmt.Fprintf(&b, "  DOES NOT HOLD: %s\n", c.What)
	}
	if len(f.Checks) > 0 {
		fmt.Fprintf(&b, "  %d of %d checks hold: %s\n", held, len(f.Checks), f.Checked)
	}
	s.add(note(b.String() + "  Seen: " + f.Seen + "\n"))
	return page
}

// paperTable returns a table whose cells are written by write.
func paperTable(from *paper.Table, write func(cell string) string) *table {
	t := headed(1, from.Columns...)
	t.Caption = from.Title
	for _, row := range from.Texts() {
		for i := range row {
			row[i] = write(row[i])
		}
		t.row(row...)
	}
	return t
}
