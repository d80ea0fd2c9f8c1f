package report

import (
	"fmt"
	"strings"

	"hindsight/internal/paper"
)

// Paper makes the report of what was seen of the paper's claims.
func Paper(findings []*paper.Finding, p *Parameters) *Page {
	b := &builder{Results: &Results{Parameters: p}}
	page := &Page{Title: "What the paper claims, and what was seen", Foot: b.foot()}
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
			page.Flags = append(page.Flags, pageFlag{bad, f.Claim + ": does not hold: " + c.What + "."})
		}
		for i := range f.Charts {
			s.add(fromChart(f.Charts[i].Name, "", &f.Charts[i].Chart))
		}
		for i := range f.Tables {
			s.add(paperTable(&f.Tables[i]))
		}
		page.Sections = append(page.Sections, s)
	}
	if held == checks {
		page.Flags = append(page.Flags, pageFlag{good, fmt.Sprintf("all %d checks hold.", checks)})
	}
	page.Subtitle = fmt.Sprintf("%d claims · %d of %d checks hold", len(findings), held, checks)
	page.Says = []string{"An upper bound is a promise for the worst case: a run that stays below it agrees with it, and " +
		"no number of runs proves it."}
	page.Sections = append(page.Sections, b.parameters())
	return page
}

func paperTable(from *paper.Table) *table {
	t := headed(1, from.Columns...)
	t.Caption = from.Title
	for _, row := range from.Texts() {
		for i := range row {
			row[i] = strings.ReplaceAll(row[i], "±", " ±\u00a0") // a line may break before it
		}
		t.row(row...)
	}
	return t
}
