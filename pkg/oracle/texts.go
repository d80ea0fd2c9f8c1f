package oracle

import (
	"math"
	"unicode/utf8"
)

// Limits of what is made of a text.
const (
	TextPlaces     = 4096     // places of its words
	TextBytes      = 64 << 10 // bytes that are read of it
	TextStatistics = 8        // numbers that describe it
)

// TextStatistic returns the i-th number that describes a text: its name, and the range by which learners map it.
// Sizes are logarithms, the last four are shares of all characters. The ranges are about ten times as wide as what
// is common: a statistic then moves a prediction by little until many examples agree. Standardised ones cost more at
// the start than they gained in 1,800 rounds.
func TextStatistic(i int) FeatureSpec {
	return [...]FeatureSpec{
		{Name: "chars", Lo: -4.5, Hi: 15.5}, {Name: "words", Lo: -6, Hi: 14}, {Name: "word_length", Lo: -5.5, Hi: 14.5},
		{Name: "lines", Lo: -10, Hi: 10}, {Name: "digits", Lo: -.6, Hi: .6}, {Name: "capitals", Lo: -.6, Hi: .6},
		{Name: "signs", Lo: -.6, Hi: .6}, {Name: "code", Lo: -.6, Hi: .6}}[i]
}

// Texts makes terms and statistics of texts: the same of the same bytes, on every machine and for good. It
// reads the first 64 KiB.
//
// Words are runs of letters and digits in lower case, each other sign, and each character from U+2E80 on
// (CJK); a run of digits is the word 0. Letters are those of ASCII and U+00C0…U+1FFF; lower case is that of
// ASCII, Latin-1, Greek and Cyrillic. Each word and each pair of neighbours is hashed (FNV-1a, mixed) to a
// place and a sign; one that occurs n times has the value 1 + ln n, and all values together have norm 1.
//
// The zero value is ready. It holds scratch space.
type Texts struct {
	grams []gram // open addressing; as many as a power of two
	used  []int32
	last  uint64 // word before
	place [TextPlaces]int32
}

// gram is a word or a pair of words of the text at hand.
type gram struct {
	hash uint64
	n    int32 // 0: free
}

// textCounts are what the statistics are made of.
type textCounts struct{ chars, words, letters, lines, digits, capitals, signs, code int }

// Append appends the terms of a text, whose places begin at first, and sets its statistics.
func (t *Texts) Append(dst []Term, statistics *[TextStatistics]float64, first int32, text string) []Term {
	if len(text) > TextBytes {
		text = text[:TextBytes]
	}
	n := t.count(text)
	*statistics = n.statistics()
	return t.terms(dst, first)
}

// count counts the grams of a text.
func (t *Texts) count(text string) (n textCounts) {
	t.last = 0
	word, run, number := uint64(fnvOffset), 0, true // the run of letters and digits at hand
	end := func() {
		if run == 0 {
			return
		}
		if number {
			word = fnv('0')
		}
		t.add(word)
		n.words++
		n.letters += run
		word, run, number = fnvOffset, 0, true
	}
	for i := 0; i < len(text); n.chars++ {
		c := text[i]
		if low := c | 0x20; 'a' <= low && low <= 'z' {
			if c != low {
				n.capitals++
			}
			word = (word ^ uint64(low)) * fnvPrime
			run, number = run+1, false
			i++
			continue
		}
		switch {
		case '0' <= c && c <= '9':
			n.digits++
			word = (word ^ uint64(c)) * fnvPrime
			run++
			i++
		case c < utf8.RuneSelf:
			end()
			i++
			if c <= ' ' || c == 0x7f {
				if c == '\n' {
					n.lines++
				}
				continue
			}
			n.signs++
			if isCode(c) {
				n.code++
			}
			t.add(fnv(uint64(c)))
		default:
			r, size := utf8.DecodeRuneInString(text[i:])
			i += size
			low := lower(r)
			if low != r {
				n.capitals++
			}
			if 0xc0 <= r && r < 0x2000 {
				word = (word ^ uint64(low)) * fnvPrime
				run, number = run+1, false
				continue
			}
			end()
			if r < 0x2e80 {
				n.signs++
			} else {
				n.words++
				n.letters++
			}
			t.add(fnv(uint64(r)))
		}
	}
	end()
	return n
}

const (
	fnvOffset = 0xcbf29ce484222325
	fnvPrime  = 0x100000001b3
)

// fnv hashes a word of one character.
func fnv(c uint64) uint64 { return (fnvOffset ^ c) * fnvPrime }

// isCode reports whether a sign of ASCII is more common in programs and formulas than in prose.
func isCode(c byte) bool {
	switch c {
	case '{', '}', '[', ']', '(', ')', '<', '>', '=', '+', '*', '/', '\\', '_', '|', '&', '^', '%', '$', '#', '@',
		'~', ';', '`':
		return true
	}
	return false
}

// lower returns the small letter of a capital of Latin-1, Greek or Cyrillic. The tables of package unicode change
// with Unicode.
func lower(r rune) rune {
	switch {
	case 0xc0 <= r && r <= 0xde && r != 0xd7, 0x391 <= r && r <= 0x3a9, 0x410 <= r && r <= 0x42f:
		return r + 0x20
	case 0x400 <= r && r <= 0x40f:
		return r + 0x50
	}
	return r
}

// add counts a word, and the pair with the word before.
func (t *Texts) add(word uint64) {
	word = mix64(word)
	t.countGram(word)
	if t.last != 0 {
		t.countGram(mix64(t.last + mix64(word)))
	}
	t.last = word
}

func (t *Texts) countGram(hash uint64) {
	if 2*len(t.used) >= len(t.grams) {
		t.grow()
	}
	mask := uint64(len(t.grams) - 1)
	for i := hash >> 32 & mask; ; i = (i + 1) & mask {
		switch g := &t.grams[i]; {
		case g.n == 0:
			*g = gram{hash, 1}
			t.used = append(t.used, int32(i))
			return
		case g.hash == hash:
			g.n++
			return
		}
	}
}

// grow doubles the table.
func (t *Texts) grow() {
	old := t.grams
	t.grams = make([]gram, max(256, 2*len(old)))
	mask := uint64(len(t.grams) - 1)
	for k, at := range t.used {
		i := old[at].hash >> 32 & mask
		for t.grams[i].n != 0 {
			i = (i + 1) & mask
		}
		t.grams[i], t.used[k] = old[at], int32(i)
	}
}

// terms appends what was counted, in the order in which grams first occur, and forgets it.
func (t *Texts) terms(dst []Term, first int32) []Term {
	from := len(dst)
	for _, i := range t.used {
		g := &t.grams[i]
		v := 1.0
		if g.n > 1 {
			v += Log(float64(g.n))
		}
		if g.hash>>63 != 0 {
			v = -v
		}
		p := g.hash & (TextPlaces - 1)
		*g = gram{}
		if k := t.place[p]; k > 0 {
			dst[from+int(k)-1].Value += v
			continue
		}
		dst = append(dst, Term{first + int32(p), v})
		t.place[p] = int32(len(dst) - from)
	}
	t.used = t.used[:0]
	for _, x := range dst[from:] {
		t.place[x.Place-first] = 0
	}
	normalise(dst[from:])
	return dst
}

// normalise gives terms the norm 1, unless all are 0. Values of any size are fine.
func normalise(terms []Term) {
	sum := squares(terms)
	if !(sum > 1e-200 && sum < 1e200) { // squares may have overflowed, or become 0
		most := 0.0
		for i := range terms {
			most = max(most, math.Abs(terms[i].Value))
		}
		if most == 0 {
			return
		}
		for i := range terms {
			terms[i].Value /= most
		}
		sum = squares(terms)
	}
	scale := 1 / math.Sqrt(sum)
	for i := range terms {
		terms[i].Value *= scale
	}
}

func squares(terms []Term) (sum float64) {
	for i := range terms {
		sum += float64(terms[i].Value * terms[i].Value)
	}
	return sum
}

// AppendVector appends the numbers that number returns for i < n as terms of norm 1, whose places begin at first.
func AppendVector(dst []Term, first int32, n int, number func(i int) float64) []Term {
	from := len(dst)
	for i := range n {
		dst = append(dst, Term{first + int32(i), number(i)})
	}
	normalise(dst[from:])
	return dst
}

// statistics makes the numbers of [TextStatistic] of counts.
func (n *textCounts) statistics() [TextStatistics]float64 {
	log := func(n int) float64 { return Log(1 + float64(n)) }
	share := func(k int) float64 { return float64(k) / float64(max(n.chars, 1)) }
	return [...]float64{log(n.chars), log(n.words), float64(n.letters) / float64(max(n.words, 1)), log(n.lines),
		share(n.digits), share(n.capitals), share(n.signs), share(n.code)}
}
