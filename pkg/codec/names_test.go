package codec

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// What nobody reads of a context is counted and named, in any format; what is read is not.
func TestReadContext(t *testing.T) {
	whole := `{"v":1,"id":"x","features":{"hour":3},"actions":["a",{"name":"b","features":{"price":1}}],"baseline":"a"}`
	for in, want := range map[string]string{
		whole: "",
		`{"fatures":{"hour":9},"acions":["news"],"actions":["a"]}`: "fatures, acions",
		`{"actions":[{"name":"a","fatures":{}},{"name":"b","fatures":{}},{"nme":1,"name":"c"}]}`: "actions.fatures, " +
			"actions.nme", `{"specversion":"1.0","id":"e","source":"s","data":{"features":{},"tiem":1}}`: "tiem",
		`{"subject":"planted","id":"e","specversion":"1.0","data":` + whole + `,"source":"s"}`: "",
		"\x82\xa7fatures\x80\xa7actions\x92\xa1a\x82\xa4name\xa1b\xa3nme\x01":                  "fatures, actions.nme",
		"\x81\xa8features\x81\xa1x\x01":                                                        "",
		`{"a,b":1,"":1,"c\nd":1,"e\"":1,"tail…":1,"größe":1,"\u202egnp":1,"x y":1,"nine":1,"ten":{}}`: `"a,b", "", ` +
			`"c\nd", "e\"", "tail…", größe, "\u202egnp", "x y", …`,
	} {
		var c Context
		var names Names
		n, err := ReadContext(&c, []byte(in), &names)
		if err != nil || names.String() != want || n == 0 != (want == "") {
			t.Errorf("%q: %d, %s, %v; want %s", in, n, &names, err, want)
		}
		if plain, err := ReadContext(&c, []byte(in), nil); err != nil || plain != n {
			t.Errorf("%q: %d and %d", in, n, plain)
		}
	}
	var c Context
	b := []byte(whole)
	if n := testing.AllocsPerRun(10, func() { ReadContext(&c, b, nil) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// However many names come, and of whatever length and bytes, a line is short and can be read.
func TestNamesAreShort(t *testing.T) {
	var n Names
	for i := range 1000 {
		n.Add(strings.Repeat("ä\x00\xff", 1+i))
	}
	for name, want := range map[string]string{strings.Repeat("x", nameBytes): strings.Repeat("x", nameBytes),
		strings.Repeat("x", nameBytes+1):       strings.Repeat("x", nameBytes) + "…",
		"x" + strings.Repeat("ä", nameBytes/2): "x" + strings.Repeat("ä", nameBytes/2-1) + "…",
		strings.Repeat("\x80", nameBytes+1):    `""…`} { // it has no place to cut
		if got := shown(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if s := n.String(); len(s) > keptNames*(4*nameBytes+8) || !utf8.ValidString(s) || strings.ContainsAny(s,
		"\x00\n") || !strings.HasSuffix(s, ", …") {
		t.Errorf("%d bytes: %q", len(s), s)
	}
}

func TestFormatOfAnswers(t *testing.T) {
	for in, packed := range map[string]bool{
		"": false, "hello": false, "[]": false, "{}": false, " {}": false, "\x80": true, "\x8f": true,
		"\xde\x00\x00": true,
		"\xdf":         true, "\xef\xbb\xbf{}": false, "\x90": false, "\xc1": false, "\x00": false,
	} {
		if IsMap([]byte(in)) != packed {
			t.Errorf("%q", in)
		}
	}
	if s := TrimMark([]byte("\xef\xbb\xbf{}")); string(s) != "{}" {
		t.Errorf("%q", s)
	}
	if s := TrimMark([]byte("\xef\xbb{}")); string(s) != "\xef\xbb{}" {
		t.Errorf("%q", s)
	}
}
