package codec

import (
	"bytes"
	"fmt"
	"math/bits"
	"slices"
	"unsafe"
)

// maxDepth bounds the nesting of values that are skipped.
const maxDepth = 32

// token is the kind of a value that comes next.
type token uint8

const (
	tokNone  token = iota // the end, or bytes that start no value
	tokNull               // nil or null
	tokBool               //
	tokNum                // any integer or float
	tokText               // str, or a JSON string
	tokBytes              // bin
	tokList               //
	tokMap                //
	tokExt                // a MessagePack extension
)

// reader reads one record, MessagePack or JSON, value by value. The grammar of an event is written once, over these
// methods; each of them asks which of the two formats it reads. An error sticks: the first one is kept, everything
// after it reads as zero and every map and list ends. No method allocates unless it fails or meets a JSON string with
// an escape.
type reader struct {
	b    []byte
	i    int // next unread byte
	json bool

	inner    bool // reading the data of a CloudEvent
	cloud    bool // met the mark of a CloudEvent
	features int  // read so far, those of actions included
	alike    int  // of the action at hand: finite numbers that are called as those in their places before
	checked  int  // actions, from the first on, all of whose features are, but for the first's

	unread int    // keys of a context, and of its actions, that neither has
	strays *Names // what they are called; nil: nobody asks

	err   error
	at    int    // where err was met
	field string // what err concerns, from the inside out

	numbers *[]byte // where those of vectors go
}

// span is what is left of a map or list that is being read.
type span struct {
	left  int  // MessagePack: entries to come
	close byte // JSON: the closing bracket
	comma bool // JSON: an entry was read
}

// entries is what is left of a map whose keys entry reads.
type entries struct {
	span
	key string // of the entry at hand
	met bool   // there is one
}

// newReader returns a reader at the first value of b.
func newReader(b []byte) reader {
	if IsMap(b) {
		return reader{b: b}
	}
	r := reader{b: b, json: IsJSON(b)}
	if r.json {
		r.space()
	}
	return r
}

// byteOrderMark is what some tools write before text in UTF-8.
const byteOrderMark = "\ufeff"

// TrimMark returns b without the byte order mark of UTF-8 that JSON may begin with, against
// its standard (RFC 8259, section 8.1). No record in MessagePack begins so.
func TrimMark(b []byte) []byte { return bytes.TrimPrefix(b, []byte(byteOrderMark)) }

// IsMap reports whether b is meant as MessagePack: whether its first byte begins a map, as all
// events are. What is neither is answered in JSON, which everybody can read.
func IsMap(b []byte) bool { return len(b) > 0 && packTokens[b[0]] == tokMap }

// IsJSON reports whether b is JSON rather than MessagePack: whether its first byte that is not white space is {.
func IsJSON(b []byte) bool {
	for _, c := range b {
		switch c {
		case '{':
			return true
		case ' ', '\t', '\r', '\n':
		default:
			return false
		}
	}
	return false
}

func (r *reader) fail(err error) {
	if r.err == nil {
		if r.json && err == errTruncated {
			err = errCut
		}
		r.err, r.at = err, r.i
		r.i = len(r.b)
	}
}

// in names what encloses the value that failed.
func (r *reader) in(name string) {
	switch {
	case r.field == "":
		r.field = name
	case r.field[0] == '[':
		r.field = name + r.field
	default:
		r.field = name + "." + r.field
	}
}

// inKey names the key, which came with the bytes, of the value that failed.
func (r *reader) inKey(key string) { r.in(label(key)) }

// end checks that nothing follows the record and returns the error, if any.
func (r *reader) end(event string) error {
	if r.json && r.err == nil {
		r.space()
	}
	if r.err == nil && r.i != len(r.b) {
		r.fail(errTrailing)
	}
	if r.err == nil {
		return nil
	}
	return wrong(event, r.field, fmt.Errorf("%w (at byte %d)", r.err, r.at))
}

// once notes that a key was met, fails if it was met before, and returns r, which reads its value.
func (r *reader) once(seen *uint32, bit int) *reader {
	if *seen&(1<<bit) != 0 {
		r.fail(errTwice)
	}
	*seen |= 1 << bit
	return r
}

// require fails if one of keys was not met; key i has bit i.
func (r *reader) require(seen uint32, keys []string) {
	if i := bits.TrailingZeros32(^seen); i < len(keys) && r.err == nil {
		r.fail(errMissing)
		r.in(keys[i])
	}
}

// version reads the value of "v".
func (r *reader) version() int64 { return r.versionUpTo(Newest) }

func (r *reader) versionUpTo(newest int64) int64 {
	v := r.int()
	switch {
	case r.err != nil:
	case v > newest:
		r.fail(fmt.Errorf("%w: version %d, and this one reads versions up to %d", ErrVersion, v, newest))
	case v < 1:
		r.fail(errOldest)
	}
	return v
}

// kind tells what comes next, without reading it.
func (r *reader) kind() token {
	switch {
	case r.i >= len(r.b):
		return tokNone
	case r.json:
		return jsonToken(r.b[r.i])
	}
	return packTokens[r.b[r.i]]
}

// null reads a null if one comes next.
func (r *reader) null() bool {
	if r.kind() != tokNull {
		return false
	}
	if r.json {
		r.jsonWord("null")
	} else {
		r.i++
	}
	return r.err == nil
}

// open starts a map or a list.
func (r *reader) open(want token) span {
	if r.kind() != want {
		switch {
		case r.i >= len(r.b):
			r.fail(errTruncated)
		case want == tokMap && r.i == 0 && !r.json:
			r.fail(errFormat)
		case want == tokMap:
			r.fail(errWantMap)
		default:
			r.fail(errWantList)
		}
		return span{}
	}
	if r.json {
		s := span{close: '}'}
		if want == tokList {
			s.close = ']'
		}
		r.i++
		return s
	}
	return span{left: r.packCount()}
}

// more reports whether another entry of s comes, and moves to it.
func (r *reader) more(s *span) bool {
	if r.err != nil {
		return false
	}
	if r.json {
		return r.jsonMore(s)
	}
	s.left--
	return s.left >= 0
}

// entries starts a map.
func (r *reader) entries() entries { return entries{span: r.open(tokMap)} }

// entry is more of a map; it reads the key too. What failed in the entry before is named by its key.
func (r *reader) entry(s *entries) bool {
	switch {
	case r.err != nil:
		if s.met {
			r.inKey(s.key)
		}
		s.met = false
	case r.json:
		if s.met = r.jsonMore(&s.span); s.met {
			s.key = r.jsonKey()
		}
	case s.left > 0: // without more and key, which costs a tenth
		s.left--
		if s.key, s.met = r.shortText(); !s.met {
			s.key, s.met = r.text(), true
		}
	default:
		s.met = false
	}
	return s.met
}

// find is more of a map up to the next entry that has one of some keys. It skips the others, one of which may be a
// context.
func (r *reader) find(s *span, keys ...string) bool {
	for r.more(s) {
		if slices.Contains(keys, r.key()) {
			return true
		}
		r.skipAt(contextDepth)
	}
	return false
}

// key reads the key of a map's entry and moves to its value.
func (r *reader) key() string {
	if r.json {
		return r.jsonKey()
	}
	return r.text()
}

// text reads text; a bin is text too, as older MessagePack writers mean it. The
// result aliases the record, except for JSON with escapes.
func (r *reader) text() string {
	if r.json {
		return r.jsonString()
	}
	if s, ok := r.shortText(); ok {
		return s
	}
	b := r.packBytes(errWantText)
	return unsafe.String(unsafe.SliceData(b), len(b))
}

// shortText reads a text of MessagePack of at most 31 bytes, as most are.
func (r *reader) shortText() (string, bool) {
	rest := r.b[r.i:]
	if len(rest) == 0 || rest[0]&0xe0 != 0xa0 || int(rest[0]&31) >= len(rest) {
		return "", false
	}
	n := int(rest[0] & 31)
	r.i += 1 + n
	return unsafe.String(unsafe.SliceData(rest[1:]), n), true
}

// bytes reads a bin, or text, and returns an alias of it; of JSON, what its text is the base64 of.
func (r *reader) bytes() []byte {
	if r.json {
		return r.jsonBin()
	}
	return r.packBytes(errWantBytes)
}

// float reads a number; integers and decimals are rounded to the nearest.
func (r *reader) float() float64 {
	if r.json {
		return r.jsonNumber()
	}
	return r.packFloat()
}

// int reads a whole number, which may be written as a float if that is exact.
func (r *reader) int() int64 {
	if !r.json {
		return r.packInt()
	}
	return r.jsonInt()
}

// small reads an int.
func (r *reader) small() int {
	v := r.int()
	if int64(int(v)) != v {
		r.fail(errRange)
	}
	return int(v)
}

// whole returns f as an integer and fails if it is none.
func (r *reader) whole(f float64) int64 {
	if !(f >= -1<<63 && f < 1<<63) || float64(int64(f)) != f {
		r.fail(errWantInt)
		return 0
	}
	return int64(f)
}

// bool reads true or false.
func (r *reader) bool() bool {
	if r.kind() != tokBool {
		r.fail(errWantBool)
		return false
	}
	c := r.b[r.i]
	switch {
	case !r.json:
		r.i++
		return c == mpTrue
	case c == 't':
		r.jsonWord("true")
		return true
	}
	r.jsonWord("false")
	return false
}

// skip reads a value of any kind and checks that it is well formed.
func (r *reader) skip() { r.skipAt(0) }

func (r *reader) skipAt(depth int) {
	switch r.kind() {
	case tokNull:
		r.null()
	case tokBool:
		r.bool()
	case tokNum:
		r.float()
	case tokText, tokBytes:
		r.text()
	case tokMap:
		if depth >= maxDepth {
			r.fail(errDepth)
		}
		for s := r.open(tokMap); r.more(&s); {
			r.skipKey(depth + 1)
			r.skipAt(depth + 1)
		}
	case tokList:
		if depth >= maxDepth {
			r.fail(errDepth)
		}
		for s := r.open(tokList); r.more(&s); {
			r.skipAt(depth + 1)
		}
	case tokExt:
		r.packExt()
	default:
		r.fail(r.noValue())
	}
}

// skipKey skips a map's key, which in MessagePack may be of any kind.
func (r *reader) skipKey(depth int) {
	if r.json {
		r.jsonKey()
	} else {
		r.skipAt(depth)
	}
}

// noValue tells why no value comes next.
func (r *reader) noValue() error {
	switch {
	case r.i >= len(r.b):
		return errTruncated
	case r.json:
		return errSyntax
	}
	return errNoValue
}
