package logs

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/klauspost/compress/zstd"

	"hindsight/internal/scan"
)

// wide writes text as UTF-16, little endian, without a mark.
func wide(text string) string {
	var b strings.Builder
	for _, u := range utf16.Encode([]rune(text)) {
		b.WriteByte(byte(u))
		b.WriteByte(byte(u >> 8))
	}
	return b.String()
}

const oneEvent = `{"id":"a","action":"red","reward":1,"propensity":0.5}` + "\n"

// What is no log is told by name, with the file and with what to do.
func TestForeignFiles(t *testing.T) {
	csv := "at,item\n1,red\n"
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	for range 400 {
		_, _ = z.Write([]byte(oneEvent))
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	e, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	zst := string(e.EncodeAll([]byte(oneEvent), nil))
	for _, c := range []struct {
		file, content string
		table         bool // its columns are named
		want          string
	}{
		{"a.csv", "\xff\xfe" + wide(csv), true, "iconv -f UTF-16 "},
		{"b.csv", wide(csv), true, "iconv -f UTF-16LE"},
		{"c.jsonl", wide(oneEvent), false, "UTF-16 text"},
		{"d.csv", csv + "\x002", true, "byte 15 is 0"},
		{"e.json", " [\n {\"id\":\"a\"}]", false, "jq -c '.[]'"},
		{"f.json", "<!DOCTYPE html>", false, "HTML"},
		{"g.xlsx", "PK\x03\x04", false, "zip"},
		{"h.json.gz", packed.String()[:packed.Len()-9], false, "cut off"},
		{"i.json.gz", packed.String() + "what follows it", false, "something follows"},
		{"j.json.zst", zst + "tail", false, "zstd -dc"},
		{"k.csv.gz", "\x1f\x8b\x00", true, "gzip"},
		{"n.vw", "slates shared -0.8 | s\nslates action 0 | a\n", false, "slates (slates), which are not read"},
		{"o.vw", "ca 185.121:0.657567:6.20426e-05 | a b\n", false, "continuous actions (ca), which are not read"},
		{"l.txt", "what is this", false, `it begins with "what is this"`},
	} {
		path := filepath.Join(t.TempDir(), c.file)
		if err := os.WriteFile(path, []byte(c.content), 0o600); err != nil {
			t.Fatal(err)
		}
		o := Options{}
		if c.table {
			o.Format = Labelled
		}
		r, err := Open(path, o)
		if err == nil {
			_, err = readAll(t, r)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.file) {
			t.Errorf("%s: %v, want %q", c.file, err, c.want)
		}
	}
}

// What is a log is not refused: checkpoints begin with a bracket, MessagePack has zeros.
func TestNotForeign(t *testing.T) {
	for _, text := range []string{"[CHECKPOINT INFO LINE]\n" + oneEvent, "\ufeff" + oneEvent, "1:0.5:0.5 | a\n"} {
		if format, err := detect([]byte(text)); err != nil {
			t.Errorf("%q: %s, %v", text, format, err)
		}
	}
	for text, want := range map[string]string{
		"\x80": Msgpack, "\x81\xa1v\x00": Msgpack, "\x8f": Msgpack, "\xde\x00": Msgpack, "\xdf\x00": Msgpack,
		"\x90": "", "\x7f": "", "PAR1": Parquet,
		"shared | a\n0:1:0.5 | b\n": CBADF, "shared\n": "", "| a\n": CBADF, " | a\n| b\n": CBADF, "0:1:1 | a\n": CBADF,
		"1:0:1 | a\n\n1:0:1 | b\n": CBADF, "1:0:1 | a\n2:0:1 | b\n\n": CB, "\n1:0:1 | a\n": CB, "1:0:1 | a\nb": CB,
		"1:0:1 | a\nb\n": "", "1:0:1 | a\nccb shared |\n": CCB,
		"[CHECKPOINT]\n{\"c\":{}}\n": Dsjson, `{"x":{"v":1},"pdrop":0}`: Dsjson, `{"x":{"c":1}}`: JSONL,
		`{"x":1,"v":1,"EventId":""}`: JSONL, `{"x":`: JSONL,
	} {
		if format, err := detect([]byte(text)); format != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v, want %q", text, format, err, want)
		}
	}
	for header, want := range map[string]byte{"a,b;c": ',', "a;b": ';', "a\tb;c": ';', "a\tb": '\t',
		`"a,b";c`: ';', "a": 0} {
		if got := scan.Separator([]byte(header)); got != want {
			t.Errorf("%q: %q, want %q", header, got, want)
		}
	}
}
