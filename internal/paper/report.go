package paper

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"hindsight/internal/whole"
	"hindsight/internal/words"
)

// Write writes a finding for people.
func (f *Finding) Write(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "── %s · %s\n%s\n\n", f.Claim, f.Source, f.Says)
	for i := range f.Tables {
		f.Tables[i].write(&b)
		b.WriteByte('\n')
	}
	for _, fit := range f.Fits {
		slope := fmt.Sprintf("%.3f", fit.Slope)
		if fit.SE != nil {
			slope = words.WithError(fit.Slope, *fit.SE)
		}
		fmt.Fprintf(&b, "  slope of %s: %s", fit.What, slope)
		fmt.Fprintf(&b, "  (%s %.3g)", fit.Kind, fit.Predicted)
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
	fmt.Fprintf(&b, "  Seen: %s\n\n", f.Seen)
	_, err := io.WriteString(w, b.String())
	return err
}

// Save writes a finding into a folder that exists: CLAIM.json, CLAIM-1.csv, … a table
// each, and its pictures as NAME.png.
func (f *Finding) Save(dir string) error {
	out, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return err
	}
	if err := whole.WriteText(filepath.Join(dir, f.Claim+".json"), string(out)+"\n"); err != nil {
		return err
	}
	for i := range f.Tables {
		name := filepath.Join(dir, fmt.Sprintf("%s-%d.csv", f.Claim, i+1))
		if err := whole.Write(name, f.Tables[i].writeCSV); err != nil {
			return err
		}
	}
	for i := range f.Charts {
		if err := f.Charts[i].Chart.Save(filepath.Join(dir, f.Charts[i].Name+".png")); err != nil {
			return err
		}
	}
	return nil
}
