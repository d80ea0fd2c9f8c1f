package report

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"hindsight/internal/dataset"
	"hindsight/internal/logs"
	"hindsight/internal/ope"
	"hindsight/internal/replay"
)

// told are the figures of JSON, or of CSV.
type told []float64

// json collects the figures below v, also those in texts.
func (f *told) json(v any) {
	switch x := v.(type) {
	case float64:
		*f = append(*f, x)
	case string:
		f.text(x)
	case []any:
		for _, e := range x {
			f.json(e)
		}
	case map[string]any:
		for key, e := range x {
			f.text(key)
			f.json(e)
		}
	}
}

// figureIn finds figures in texts, with what follows them.
var figureIn = regexp.MustCompile(`-?\b\d[\d,]*(\.\d+)?(e[+-]?\d+)?\b%?`)

func (f *told) text(text string) {
	for _, token := range figureIn.FindAllString(text, -1) {
		if v, err := strconv.ParseFloat(strings.TrimSuffix(strings.ReplaceAll(token, ",", ""), "%"), 64); err == nil {
			*f = append(*f, v)
		}
	}
}

// has reports whether a figure as it is shown is one of those, rounded; a share may be
// shown in percent.
func (f told) has(token string) bool {
	bare := strings.TrimSuffix(strings.ReplaceAll(token, ",", ""), "%")
	shown, err := strconv.ParseFloat(bare, 64)
	if err != nil {
		return false
	}
	mantissa, power, _ := strings.Cut(bare, "e")
	e, _ := strconv.Atoi(power)
	_, decimals, _ := strings.Cut(mantissa, ".")
	half := .5000001 * math.Pow(10, float64(e-len(decimals)))
	for _, v := range f {
		if strings.HasSuffix(token, "%") {
			v *= 100
		}
		if math.Abs(v-shown) <= half || math.Abs(-v-shown) <= half {
			return true
		}
	}
	return false
}

// missing returns the figures of the tables and charts of a page that are not there.
func (f told) missing(p *Page) (out []string) {
	check := func(where, text string) {
		for _, token := range figureIn.FindAllString(text, -1) {
			if !f.has(token) {
				out = append(out, where+": "+token+" of "+text)
			}
		}
	}
	for _, s := range p.Sections {
		if s.ID == "parameters" { // texts
			continue
		}
		for _, part := range s.Parts {
			switch x := part.(type) {
			case *table:
				for _, row := range x.Rows {
					for i, c := range row {
						check(s.ID+", "+x.Caption+", "+x.Columns[i].Name, strings.ReplaceAll(c.Text, "SHA-256", ""))
					}
				}
			case *pageChart:
				for _, v := range x.Views {
					for _, line := range v.Series {
						for i, y := range line.Y {
							if !math.IsNaN(float64(y)) {
								check(x.ID+", "+line.Name+", "+fmt.Sprint(i), strconv.FormatFloat(float64(y),
									'g', -1, 64))
							}
						}
					}
				}
			}
		}
	}
	return out
}

// distinct gives the example figures that hardly any other is equal to.
func distinct() *Results {
	r := example()
	for i := range r.Runs {
		x, d := &r.Runs[i], float64(i)
		x.MeanLoss, x.Regret, x.RoundsPerSecond = some(.31417+d/13), some(3.7713+d), 87_123+d
		x.Delays.Raw.Mean, x.Delays.Released.Mean, x.Delays.Raw.P99, x.Delays.Overtaken = 2.7183+d, 5.7721+d, 613, 7
	}
	for i, p := range r.Policies {
		d := float64(i)
		p.ESS, p.MaxWeight, p.MeanWeight, p.Overlap = ope.Figure(91.37+d), ope.Figure(33.19+d),
			ope.Figure(.9713-d/31), .3719+d/17
		p.Estimates = ope.Estimates{ope.Normal("ips", .1283+d/19, .0213), ope.Normal("dr", .1173+d/7, .0117),
			ope.Normal("cips10", .1371+d/5, .0319)}
	}
	r.Intake = &dataset.Intake{Account: logs.Account{Format: "dsjson", Files: 3, Bytes: 98_761, Read: 4_211,
		Events: 3_907, Duplicates: 83, Dangling: 71, Skipped: 97, Malformed: 53,
		Reasons: map[string]int64{"checkpoint line": 59, "not activated": 38}, Defaulted: 1_203}, Rows: 20, Joined: 61,
		Unmatched: 9, Weighted: 811, Baselines: 1_733}
	for i := range r.Sweep {
		r.Sweep[i].MeanLoss = &replay.Estimate{Value: .34567 + float64(i)/23, SE: some(.00123)}
	}
	r.Estimators.Events, r.Estimators.WithoutOutcome = 2_347, 29
	return r
}

// Every figure of the tables and the charts is in JSON, and in CSV.
func TestPanelsAreTold(t *testing.T) {
	r := distinct()
	page := r.Page()
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]any
	if err := json.Unmarshal(b, &all); err != nil {
		t.Fatal(err)
	}
	// Two shares are of figures that stand beside them.
	beside := told{float64(r.Intake.Events) / float64(r.Intake.Read), float64(r.Data.Observed) / float64(r.Data.Rounds)}
	inJSON := func() (f told) { f.json(all); return append(f, beside...) }
	inCSV := func(without string) (f told) {
		for _, file := range r.files() {
			if file.Name != without {
				for _, row := range file.Rows {
					f.text(strings.Join(row, " ; "))
				}
			}
		}
		return append(f, beside...)
	}
	for _, m := range inJSON().missing(page) {
		t.Error("not in JSON: ", m)
	}
	for _, m := range inCSV("").missing(page) {
		t.Error("not in CSV: ", m)
	}
	// The check can fail: without one of its sources figures are missing.
	for _, file := range strings.Fields("summary.csv standings.csv estimates.csv policies.csv sweep.csv skipped.csv " +
		"intake.csv") {
		if len(inCSV(file).missing(page)) == 0 {
			t.Errorf("without %s nothing is missing", file)
		}
	}
	delete(all, "standings")
	if len(inJSON().missing(page)) == 0 {
		t.Error("without standings nothing is missing")
	}
}
