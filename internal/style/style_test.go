package style

import (
	"crypto/sha256"
	"encoding/hex"
	"image/color"
	"strings"
	"testing"
)

// The library is the one that is named.
func TestLibrary(t *testing.T) {
	for name, want := range map[string]string{
		"uPlot.iife.min.js": LibrarySHA256,
		"uPlot.min.css":     "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
		"LICENSE":           "8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd"} {
		b, err := assets.ReadFile("assets/" + folder + name)
		if err != nil {
			t.Fatal(err)
		}
		if sum := sha256.Sum256(b); hex.EncodeToString(sum[:]) != want {
			t.Errorf("%s has the SHA-256 %x", name, sum)
		}
	}
	b, _ := assets.ReadFile("assets/" + folder + "uPlot.iife.min.js")
	if _, version, _ := strings.Cut(Library, " "); !strings.Contains(string(b[:200]), "v"+version) {
		t.Errorf("the library says it is %.80s", b)
	}
}

// Pictures have the colours that the style sheet gives to series on white.
func TestPalette(t *testing.T) {
	p := Palette()
	if len(p) != series || p[0] != (color.RGBA{0x00, 0x72, 0xb2, 0xff}) || strings.Count(Sheet, "--s0: ") != 2 {
		t.Errorf("%v", p)
	}
}
