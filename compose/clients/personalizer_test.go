package clients

import (
	"os"
	"strings"
	"testing"

	"hindsight/internal/model"
)

// block returns the commands of a page behind a mark.
func block(t *testing.T, page, mark string) string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "<!-- "+mark+" -->\n```")
	_, rest, _ = strings.Cut(rest, "\n") // its language
	out, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatalf("%s has no commands marked %q", page, mark)
	}
	return out
}

// TestPersonalizerModel holds that the model of the page has Personalizer's defaults.
func TestPersonalizerModel(t *testing.T) {
	text, err := os.ReadFile("../personalizer.yaml")
	if err != nil {
		t.Fatal(err)
	}
	m, err := model.Parse("personalizer.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	if !m.Reward || !m.Impute || m.DefaultLoss != 1 || m.Window.Nanos != 10*60*1e9 || m.Activation {
		t.Errorf("%+v", m)
	}
}
