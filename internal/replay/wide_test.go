package replay

import (
	"strconv"
	"strings"
	"testing"

	"hindsight/internal/logs"
)

// TestWideHeader holds that a header is refused by its width, before names are looked for in it.
func TestWideHeader(t *testing.T) {
	var b strings.Builder
	b.WriteString("label,a,r")
	for i := range 300_000 {
		b.WriteString(",x" + strconv.Itoa(i))
	}
	m := logs.Mapping{Action: "a", Reward: "r", FeaturePrefix: "x"}
	const want = "log:1: the header has 300003 columns, at most 131072 are allowed"
	if _, err := readLog("log", strings.NewReader(b.String()+"\n"),
		logOptions{Options: logs.Options{Mapping: m}}); err == nil || err.Error() != want {
		t.Errorf("%.200v; want %s", err, want)
	}
	if _, err := readLabelled("log", strings.NewReader(b.String()+"\n")); err == nil || err.Error() != want {
		t.Errorf("%.200v; want %s", err, want)
	}
}
