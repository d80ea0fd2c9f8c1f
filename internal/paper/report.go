package paper

import (
	"encoding/json"
	"fmt"
	"path/filepath"

	"hindsight/internal/whole"
)

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
