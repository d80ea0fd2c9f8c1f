package model

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// TestPageModel holds that the model file in docs/model-file.md is the default, but for its name.
func TestPageModel(t *testing.T) {
	text, err := os.ReadFile("../../docs/model-file.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, found := strings.Cut(string(text), "```yaml\nname: shop")
	block, _, ended := strings.Cut("name: shop"+block, "```")
	if !found || !ended {
		t.Fatal("the page shows no model file")
	}
	m, err := Parse("model-file.md", []byte(block))
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.Name = "shop"
	if got, want := m.Canonical(), want.Canonical(); !bytes.Equal(got, want) {
		t.Errorf("the page has\n%s\nthe default is\n%s", got, want)
	}
}
