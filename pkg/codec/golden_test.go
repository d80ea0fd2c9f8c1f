package codec

import (
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files of this version")

// appendHex appends b in lines of 32 bytes.
func appendHex(dst, b []byte) []byte {
	for len(b) > 0 {
		n := min(32, len(b))
		dst = append(hex.AppendEncode(dst, b[:n]), '\n')
		b = b[n:]
	}
	return dst
}

func readGolden(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b, err := hex.DecodeString(strings.ReplaceAll(string(text), "\n", ""))
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return b
}

// sameText holds a text against a golden file, which -update writes anew.
func sameText(t *testing.T, path, text string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	got, lines := strings.Split(text, "\n"), strings.Split(string(want), "\n")
	for i := range min(len(got), len(lines)) {
		if got[i] != lines[i] {
			t.Errorf("%s:%d:\n got %s\nwant %s", path, i+1, got[i], lines[i])
		}
	}
	if len(got) != len(lines) {
		t.Errorf("%s: %d lines, want %d", path, len(got), len(lines))
	}
}

// This version writes these bytes.
func TestGoldenWrite(t *testing.T) {
	dir := filepath.Join("testdata", fmt.Sprintf("v%d", Version))
	for _, k := range kinds() {
		path := filepath.Join(dir, k.name+".golden")
		if *update {
			if err := os.MkdirAll(dir, 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, appendHex(nil, k.append()), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		if got, want := k.append(), readGolden(t, path); string(got) != string(want) {
			t.Errorf("%s:\n got %x\nwant %x", path, got, want)
		}
	}
}

// Every version's bytes are read, forever, and mean the samples.
func TestGoldenRead(t *testing.T) {
	for v := 1; v <= Version; v++ {
		for _, k := range kinds() {
			path := filepath.Join("testdata", fmt.Sprintf("v%d", v), k.name+".golden")
			got, err := k.parse(readGolden(t, path))
			if err != nil {
				t.Errorf("%s: %v", path, err)
				continue
			}
			want, err := k.parse(k.append())
			if err != nil || !same(got, want) {
				t.Errorf("%s:\n got %+v\nwant %+v (%v)", path, got, want, err)
			}
		}
	}
}

// A record of a later version is refused with the error that says so, whatever
// else it holds.
func TestLaterVersion(t *testing.T) {
	for _, k := range kinds() {
		later := append([]byte("\x82\xa1v"), Newest+1, 0xa5, 'f', 'r', 'e', 's', 'h', mpNil)
		if _, err := k.parse(later); !errors.Is(err, ErrVersion) {
			t.Errorf("%s: %v", k.name, err)
		}
	}
	var c Context
	if err := ParseContext(&c, fmt.Appendf(nil, `{"v":%d,"features":7}`, Newest+1)); !errors.Is(err, ErrVersion) {
		t.Error(err)
	}
}
