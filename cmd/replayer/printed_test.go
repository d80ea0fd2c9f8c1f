package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPrintedPropensities holds that propensities that were printed with six digits are no
// alarm: neither a policy's probabilities beside them, nor their sum.
func TestPrintedPropensities(t *testing.T) {
	var text strings.Builder
	for i := range 300 {
		fmt.Fprintf(&text,
			`{"id":"e%d","features":{"x":%d},"actions":["a","b","c"],"action":%q,"propensity":0.33333,`+
				`"propensities":{"a":0.333333,"b":0.333333,"c":0.333333},"reward":%d}`+"\n",
			i, i%7, []string{"a", "b", "c"}[i%3], i%2)
	}
	log := filepath.Join(t.TempDir(), "log.jsonl")
	if err := os.WriteFile(log, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	o := object(t, "backtest", "--data", log, "--policy", "uniform", "--policy", "logging", "--bootstrap",
		"0", "--json")
	if n := number(t, o, "intake.malformed"); n != 0 {
		t.Errorf("%v rows are malformed", n)
	}
	for _, p := range o["policies"].([]any) {
		for _, flag := range need(t, p.(map[string]any), "flags").([]any) {
			if strings.Contains(flag.(string), "mean weight") {
				t.Errorf("%s", flag)
			}
		}
	}
}
