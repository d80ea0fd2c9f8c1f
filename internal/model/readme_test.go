package model

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// TestReadmeModel holds that the model file in README.md is the default, but for its name.
func TestReadmeModel(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, found := strings.Cut(string(text), "```yaml\nname: shop")
	block, _, ended := strings.Cut("name: shop"+block, "```")
	if !found || !ended {
		t.Fatal("README.md shows no model file")
	}
	m, err := Parse("README.md", []byte(block))
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.Name = "shop"
	if got, want := m.Canonical(), want.Canonical(); !bytes.Equal(got, want) {
		t.Errorf("README.md has\n%s\nthe default is\n%s", got, want)
	}
}
