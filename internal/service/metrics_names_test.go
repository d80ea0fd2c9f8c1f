package service

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"hindsight/internal/watch"
)

// checkExposed compares a scrape with the documented list: names, types, help, labels
// and their values, and that nothing from outside is in it.
func checkExposed(t *testing.T, page []byte, partitions int) (names map[string]bool) {
	t.Helper()
	if bytes.Contains(page, []byte("planted")) {
		t.Error("a text from outside is in a metric")
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	docs := map[string]watch.MetricDoc{}
	for _, d := range watch.MetricDocs() {
		docs[d.Name] = d
	}
	names = map[string]bool{}
	for name, f := range families {
		d, ok := docs[name]
		if !ok {
			t.Errorf("%s is not in the list", name)
			continue
		}
		names[name] = true
		if got := strings.ToLower(f.GetType().String()); got != d.Type || f.GetHelp() != d.Help {
			t.Errorf("%s is a %s, %q; the list says %s, %q", name, got, f.GetHelp(), d.Type, d.Help)
		}
		for _, m := range f.GetMetric() {
			if len(m.GetLabel()) != len(d.Labels) {
				t.Errorf("%s has %d labels, the list has %v", name, len(m.GetLabel()), d.Labels)
			}
			for _, l := range m.GetLabel() {
				values, ok := d.Values[l.GetName()]
				n, notNumber := strconv.Atoi(l.GetValue())
				if !ok || values != nil && !slices.Contains(values, l.GetValue()) || values == nil &&
					(notNumber != nil || n < 0 || n >= partitions) {
					t.Errorf("%s: label %s=%q is not in the list", name, l.GetName(), l.GetValue())
				}
			}
		}
	}
	return names
}
