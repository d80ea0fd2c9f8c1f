package codec

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// roundTrip holds what is true of every hot event: it is valid, what was written
// reads back as it was, into fresh and into used memory alike, and is written again
// to the same bytes.
func roundTrip[T any](t *rapid.T, x, other T, appendTo func([]byte, *T) []byte, parse func(*T, []byte) error) {
	prefix := []byte("before")
	b := appendTo(prefix, &x)
	if string(b[:len(prefix)]) != "before" {
		t.Fatal("append changed what was there")
	}
	b = b[len(prefix):]
	var fresh, used T
	if err := parse(&fresh, b); err != nil {
		t.Fatalf("%v\n%q", err, b)
	}
	if !same(fresh, x) {
		t.Fatalf("\n got %+v\nwant %+v\nfrom %q", fresh, x, b)
	}
	if err := parse(&used, appendTo(nil, &other)); err != nil {
		t.Fatal(err)
	}
	if err := parse(&used, b); err != nil || !same(used, fresh) {
		t.Fatalf("into used memory: %v\n got %+v\nwant %+v", err, used, fresh)
	}
	if again := appendTo(nil, &fresh); string(again) != string(b) {
		t.Fatalf("written again: %q, was %q", again, b)
	}
}

func TestContextRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, other := genContext().Draw(t, "x"), genContext().Draw(t, "other")
		if err := x.ValidateFor(anything); err != nil {
			t.Fatal(err)
		}
		roundTrip(t, x, other, AppendContext, ParseContext)
		roundTrip(t, x, other, AppendContextJSON, ParseContext)
		if b := AppendContextJSON(nil, &x); !json.Valid(b) {
			t.Fatalf("not JSON: %q", b)
		}
	})
}

func TestOutcomeRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, other := genOutcome().Draw(t, "x"), genOutcome().Draw(t, "other")
		if err := x.Validate(); err != nil {
			t.Fatal(err)
		}
		roundTrip(t, x, other, AppendOutcome, ParseOutcome)
		roundTrip(t, x, other, AppendOutcomeJSON, ParseOutcome)
	})
}

func TestDecisionRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, other := genDecision().Draw(t, "x"), genDecision().Draw(t, "other")
		if err := x.Validate(); err != nil {
			t.Fatal(err)
		}
		roundTrip(t, x, other, AppendDecision, ParseDecision)
	})
}

func TestFeedbackRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, other := genFeedback().Draw(t, "x"), genFeedback().Draw(t, "other")
		if err := x.Validate(); err != nil {
			t.Fatal(err)
		}
		roundTrip(t, x, other, AppendFeedback, ParseFeedback)
	})
}

// A JSON number reads as strconv reads it, and what JSON does not call a number
// is none here.
func TestJSONNumbers(t *testing.T) {
	number := rapid.OneOf(
		rapid.StringMatching(`-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?`),
		rapid.StringMatching(`-?[0-9]{0,3}\.?[0-9]{0,3}[eE]?[+-]?[0-9]{0,2}`),
		rapid.StringMatching(`[-+0-9.eE_xXinfaN]{1,6}`),
	)
	rapid.Check(t, func(t *rapid.T) {
		s := number.Draw(t, "number")
		var c Context
		err := ParseContext(&c, []byte(`{"features":[`+s+`]}`))
		want, wantErr := strconv.ParseFloat(s, 64)
		if !json.Valid([]byte("["+s+"]")) || wantErr != nil {
			if err == nil && s != "" && s != "null" {
				t.Fatalf("%q was read as %v", s, c.Vector)
			}
			return
		}
		if err != nil || math.Float64bits(c.Vector[0]) != math.Float64bits(want) {
			t.Fatalf("%q: %v, %v; want %v", s, c.Vector, err, want)
		}
	})
}

// A JSON string reads as encoding/json reads it.
func TestJSONStrings(t *testing.T) {
	text := rapid.OneOf(rapid.String(), rapid.StringMatching(
		`(\\[bfnrt/"\\]|\\u[0-9a-fA-F]{4}|\\[a-z]|[a-zé"\\]){0,8}`))
	rapid.Check(t, func(t *rapid.T) {
		quoted := `"` + text.Draw(t, "text") + `"`
		var o Outcome
		err := ParseOutcome(&o, []byte(`{"loss":0,"id":`+quoted+`}`))
		var want string
		if wantErr := json.Unmarshal([]byte(quoted), &want); wantErr != nil {
			if err == nil {
				t.Fatalf("%q was read as %q", quoted, o.ID)
			}
			return
		}
		// encoding/json turns half a surrogate pair into U+FFFD; here it is an error.
		if err != nil && containsReplacement(want) {
			return
		}
		if err != nil || o.ID != want {
			t.Fatalf("%q: %q, %v; want %q", quoted, o.ID, err, want)
		}
	})
}

func containsReplacement(s string) bool {
	for _, u := range s {
		if u == '\ufffd' {
			return true
		}
	}
	return false
}

// No part of a record is a record, and no record with something behind it is one.
func TestTruncatedAndTrailing(t *testing.T) {
	for _, k := range kinds() {
		b := k.append()
		for n := range b {
			if x, err := k.parse(b[:n:n]); err == nil {
				t.Errorf("%s: the first %d of %d bytes were read as %+v", k.name, n, len(b), x)
			}
		}
		for _, more := range []string{"\x00", "}", "\xc0", " x"} {
			if _, err := k.parse(append(b[:len(b):len(b)], more...)); err == nil {
				t.Errorf("%s: %q behind the record went unnoticed", k.name, more)
			}
		}
	}
}

// A flipped bit changes what is read, or fails. The only exceptions are two
// spellings of one number (a float 0 read as an integer 0); whoever must see those
// too writes the value again and compares bytes, and then sees every flip. What damaged records
// read as, or why they are refused, is held as sums in testdata/damaged.txt.
func TestBitFlips(t *testing.T) {
	var all strings.Builder
	for _, k := range kinds() {
		b := k.append()
		want, err := k.parse(b)
		if err != nil {
			t.Fatal(err)
		}
		read := sha256.New()
		for i := range 8 * len(b) {
			flipped := append([]byte(nil), b...)
			flipped[i/8] ^= 1 << (i % 8)
			got, err := k.parse(flipped)
			if err != nil {
				fmt.Fprintln(read, err)
				continue
			}
			if !same(got, want) {
				read.Write(k.reappend(nil, got))
				continue
			}
			if string(k.reappend(nil, got)) == string(flipped) {
				t.Errorf("%s: bit %d of byte %d (%#x): even the bytes are the same", k.name, i%8, i/8, b[i/8])
			}
			if number := packToken(b[i/8]) == tokNum && packToken(flipped[i/8]) == tokNum; !number {
				t.Errorf("%s: bit %d of byte %d (%#x, %q) went unnoticed", k.name, i%8, i/8, b[i/8],
					b[max(0, i/8-8):i/8])
			}
		}
		damage(b, func(b []byte) {
			if got, err := k.parse(b); err != nil {
				fmt.Fprintln(read, err)
			} else {
				read.Write(k.reappend(nil, got))
			}
		})
		fmt.Fprintf(&all, "%x %s\n", read.Sum(nil)[:8], k.name)
	}
	for i, b := range documents() {
		read := sha256.New()
		damage(b, func(b []byte) {
			var c Context
			var o Outcome
			var x Round
			fmt.Fprintln(read, ParseContext(&c, b), ParseOutcome(&o, b), ParseRound(&x, b))
			fmt.Fprintf(read, "%+v %+v %+v %s\n", c, o, x, MediaType(b))
		})
		fmt.Fprintf(&all, "%x document %d\n", read.Sum(nil)[:8], i)
	}
	sameText(t, "testdata/damaged.txt", all.String())
}

// damage gives a record whole, and without each of its bytes, and with others in its place that give what is around
// it another meaning.
func damage(b []byte, read func(b []byte)) {
	read(b)
	for i := range b {
		for _, by := range []string{"", "\"", "\x81"} {
			read(slices.Concat(b[:i], []byte(by), b[i+1:]))
		}
	}
}

// documents are what clients and files may say, as contexts, outcomes and rounds.
func documents() (all [][]byte) {
	for _, text := range []string{
		`{"id":"\u00e9\ud83d\ude00\n","features":{"a\"b":1e-7,"t":"\\","l":[1,2.5]},"v":1,"more":[{"x":null}]}`,
		`{"specversion":"1.0","id":"e","time":"2021-02-04T16:45:00Z","data":{"features":{"h":1},"action":"a"}}`,
		`{"specversion":"1.0","id":"e","time":"2021-02-04T16:45:00Z","data":{"id":"i","reward":1}}`,
		`{"data":{"id":"i","features":[1,-2.5e3]},"specversion":"1.0","id":"e","actions":7}`,
		`{"unit":"u","baseline":{"a":0.25,"b":0.75},"logged_propensity":0.5,` +
			`"actions":["a",{"name":"b","features":null}]}`,
		`{"id":"i","assigned":{"action":"a","propensities":{"a":0.5,"b":0.5},"by":"r"},"slots":["h",{"name":"s"}]}`,
		`{"id":"i","action":"a","stage":2,"outcomes":{"q":{"fate":"observed","value":0.5},"c":{"fate":"imputed"}}}`,
		`{"id":"i","action":"a","fate":"skipped","closed_at":7,"first":{"partition":0,"n":3},"weight":2,"loss":null}`,
		`{"id":"i","outcomes":{"q":{"value":1,"time":"2021-02-04T16:45:00Z"},"t":null},"arms":{"a":{"q":1}},"v":4}`,
		`{"unit":7,"id":"i","withdrawn":true,"outcome_id":"o","action":"a","defaulted":true,"inactive":false}`,
	} {
		all = append(all, []byte(text))
	}
	x := sampleRound()
	all = append(all, AppendRound(nil, &x), AppendRoundJSON(nil, &x))
	x.Kind, x.Value, x.Values = Named, 0, []TimedValue{{Value{Name: "q", X: .9}, 7}, {Value{Name: "c"}, NoTime}}
	x.Arms = []Arm{{"a", []Value{{Name: "q", X: 1}}}}
	f := sampleRepeatFeedback()
	return append(all, AppendRound(nil, &x), AppendRoundJSON(nil, &x), AppendFeedback(nil, &f),
		AppendRound(nil, &Round{Context: Context{ID: "i"}, Action: "a", Decided: true, Time: NoTime,
			OutcomeTime: NoTime}))
}

// anything declares all features as long texts or vectors.
func anything(string) bool { return true }

func TestDecimalIsTheFloatNextToIt(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	taken := 0
	for range 20000 {
		b := []byte(strconv.Itoa(rng.IntN(1 << rng.IntN(62))))
		if at := rng.IntN(len(b) + 1); rng.IntN(4) > 0 {
			b = append(b[:at:at], append([]byte{'.'}, b[at:]...)...)
		}
		if rng.IntN(2) == 0 {
			b = append([]byte{"+-"[rng.IntN(2)]}, b...)
		}
		want, err := strconv.ParseFloat(string(b), 64)
		if err != nil {
			t.Fatal(err)
		}
		v, n := Decimal(string(b) + ",7")
		if n == 0 {
			continue
		}
		if taken++; n != len(b) || math.Float64bits(v) != math.Float64bits(want) {
			t.Fatalf("%s is %v of %d bytes, not %v", b, v, n, want)
		}
	}
	if taken < 10000 {
		t.Errorf("%d of 20000 were taken", taken)
	}
}
