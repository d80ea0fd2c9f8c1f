package oracle

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"
)

// read returns the terms and statistics of a text.
func read(text string) ([]Term, [TextStatistics]float64) {
	var t Texts
	var s [TextStatistics]float64
	return t.Append(nil, &s, 0, text), s
}

// overlap is the inner product of the terms of two texts: 1 of equal ones.
func overlap(a, b string) (sum float64) {
	x, _ := read(a)
	y, _ := read(b)
	at := map[int32]float64{}
	for _, t := range x {
		at[t.Place] = t.Value
	}
	for _, t := range y {
		sum += at[t.Place] * t.Value
	}
	return sum
}

// TestTextWords: texts of equal words and pairs have equal terms, others differ.
func TestTextWords(t *testing.T) {
	for _, c := range []struct {
		a, b   string
		lo, hi float64
	}{
		{"Write A Poem, Zoe", "write  a\npoem, zoe", 1, 1},
		{"it costs 17", "it costs 2345", 1, 1},         // a number is 0
		{"gpt4 wins", "gpt3 wins", .1, .5},             // part of a word it is itself
		{"Grüße ÀÖÜ", "grüße àöü", 1, 1},               // Latin-1, whose first letter is À
		{"ПРИВЕТ Ёж", "привет ёж", 1, 1},               // Cyrillic
		{"ΣΟΦΙΑ", "σοφια", 1, 1},                       // Greek
		{"機械学習", "機械 学習", 1, 1},                        // each character is a word
		{"機械学習", "学習機械", .7, .9},                       // and pairs count
		{"dog bites man", "man bites dog", .5, .7},     // 3 of 5: the pairs differ
		{"hello, world", "hello world", .3, .7},        // a sign is a word
		{"entirely other", "nothing alike", -.01, .01}, // of 4,096 places
		{"", "", 0, 0},
	} {
		if got := overlap(c.a, c.b); !(got >= c.lo-1e-12 && got <= c.hi+1e-12) {
			t.Errorf("%q and %q: %v, want %v…%v", c.a, c.b, got, c.lo, c.hi)
		}
	}
	seen, twice := overlap("one two", "one two"), overlap("one one one two", "one two")
	if !(twice < seen && twice > .4) {
		t.Errorf("repeated words: %v of %v", twice, seen)
	}
}

// TestTextTerms: places are distinct and lie behind the first, and the norm is 1.
func TestTextTerms(t *testing.T) {
	var r Texts
	var s [TextStatistics]float64
	words := &strings.Builder{}
	for i := range 20_000 {
		fmt.Fprintf(words, "w%d ", i*i)
	}
	for _, text := range []string{"one", words.String(), "a b a b", "", strings.Repeat(".", 3*TextBytes)} {
		terms := r.Append([]Term{{7, 7}}, &s, 1000, text)
		if terms[0] != (Term{7, 7}) {
			t.Fatal("what was there is gone")
		}
		seen, sum := map[int32]bool{}, 0.0
		for _, x := range terms[1:] {
			if seen[x.Place] || x.Place < 1000 || x.Place >= 1000+TextPlaces {
				t.Fatalf("%.20q: place %d", text, x.Place)
			}
			seen[x.Place] = true
			sum += x.Value * x.Value
		}
		if text != "" && math.Abs(sum-1) > 1e-12 {
			t.Errorf("%.20q: the squares sum to %v", text, sum)
		}
	}
}

func TestTextStatistics(t *testing.T) {
	_, s := read("Sum 12 + 3!\nÉtude (x)")
	want := [TextStatistics]float64{math.Log(22), math.Log(7), 12.0 / 6, math.Log(2), 3.0 / 21, 2.0 / 21, 4.0 / 21,
		3.0 / 21}
	want[2] = float64(3+2+1+5+1) / 5
	want[1] = math.Log(6)
	for i, v := range s {
		if math.Abs(v-want[i]) > 1e-12 {
			t.Errorf("%s is %v, want %v", TextStatistic(i).Name, v, want[i])
		}
	}
	if _, empty := read(""); empty != [TextStatistics]float64{} {
		t.Errorf("of no text: %v", empty)
	}
}

// TestTextIsBounded: what lies behind the first 64 KiB has no influence, even where it cuts a character.
func TestTextIsBounded(t *testing.T) {
	long := strings.Repeat("все люди ", 1<<13)[:TextBytes+1]
	a, s := read(long)
	b, u := read(long + strings.Repeat(" other words", 1<<17))
	if s != u || fmt.Sprint(a) != fmt.Sprint(b) {
		t.Error("the rest of the text was read")
	}
}

// TestTextGolden pins the bits: learners that were fed by them stand in logs.
func TestTextGolden(t *testing.T) {
	h := sha256.New()
	for _, text := range []string{"Explain: why is 2+2=4, not 5?", "Schöne GRÜSSE, ПРИВЕТ. 機械学習!", "a a a " +
		"b\n\n{x: [1]}", strings.Repeat("all the same again ", 5000)} {
		terms, s := read(text)
		for _, x := range terms {
			h.Write(binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint32(nil, uint32(x.Place)),
				math.Float64bits(x.Value)))
		}
		for _, v := range s {
			h.Write(binary.LittleEndian.AppendUint64(nil, math.Float64bits(v)))
		}
	}
	if got := fmt.Sprintf("%x", h.Sum(nil)[:8]); got != "a5c024381786256a" {
		t.Errorf("terms and statistics are %s", got)
	}
	h.Reset()
	for i := range TextStatistics {
		fmt.Fprintf(h, "%+v", TextStatistic(i))
	}
	if got := fmt.Sprintf("%x", h.Sum(nil)[:8]); got != "5162400ea75e4626" {
		t.Errorf("names and ranges of statistics are %s", got)
	}
}

func TestVectorTerms(t *testing.T) {
	for _, v := range [][]float64{{3, 4}, {3e300, 4e300}, {3e-320, 4e-320}} {
		got := AppendVector(nil, 5, 2, func(i int) float64 { return v[i] })
		if got[0].Place != 5 || got[1].Place != 6 || math.Abs(got[0].Value-.6) > 1e-3 ||
			math.Abs(got[1].Value-.8) > 1e-3 {
			t.Errorf("%v: %v", v, got)
		}
	}
	if got := AppendVector(nil, 0, 1, func(int) float64 { return 0 }); got[0].Value != 0 {
		t.Errorf("of 0: %v", got)
	}
}

func TestTextAllocatesNothing(t *testing.T) {
	var r Texts
	var s [TextStatistics]float64
	text := strings.Repeat("Which of the following is 1 of 4 answers? Это всё. ", 20)
	var terms []Term
	if n := testing.AllocsPerRun(20, func() { terms = r.Append(terms[:0], &s, 0, text) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkText300(b *testing.B) {
	text := "Which of the following is true of the equation x^2 + 3x + 2 = 0 over the field of real numbers? Answer " +
		"with the letter of one of the four choices below and explain why you think that it is right.\n" +
		"(A) It has two roots\n(B) It has one root\n(C) It has no root\n(D) It has more than 12 roots, all of " +
		"them real."
	var r Texts
	var s [TextStatistics]float64
	var terms []Term
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		terms = r.Append(terms[:0], &s, 0, text)
	}
}

// TestTextSigns: each statistic has its own name, and signs beyond ASCII are signs where CJK is words.
func TestTextSigns(t *testing.T) {
	names := map[string]int{}
	for i := range TextStatistics {
		f := TextStatistic(i)
		if names[f.Name] = i; !(f.Lo < 0 && f.Hi > 0) {
			t.Errorf("%+v", f)
		}
	}
	if len(names) != TextStatistics {
		t.Errorf("names %v", names)
	}
	_, arrow := read("\u2192\u2192")
	_, ascii := read("??")
	_, words := read("\u6a5f\u68b0")
	for _, name := range []string{"chars", "words", "signs"} {
		i := names[name]
		if arrow[i] != ascii[i] || (arrow[i] == words[i]) != (name == "chars") {
			t.Errorf("%s: %v of arrows, %v of question marks, %v of words", name, arrow[i], ascii[i], words[i])
		}
	}
}
