package clients

import (
	"os"
	"testing"

	"hindsight/internal/model"
)

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
