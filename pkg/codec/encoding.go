package codec

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"hash/crc32"
	"slices"
	"strconv"
	"unicode/utf8"
	"unsafe"
)

// Encoding is the form of the records that a model's programs write. It is fixed when the model's
// topics are made; Parse functions read both, whatever the model's is.
type Encoding uint8

// The encodings.
const (
	MessagePack Encoding = iota
	JSON
)

// Encodings are the names of the encodings, in their order.
func Encodings() []string { return []string{"msgpack", "json"} }

// ParseEncoding returns the encoding of a name.
func ParseEncoding(name string) (Encoding, error) {
	i := slices.Index(Encodings(), name)
	if i < 0 {
		return 0, fmt.Errorf("unknown encoding %q: expected msgpack or json", label(name))
	}
	return Encoding(i), nil
}

// String returns the encoding's name in flags.
func (e Encoding) String() string { return Encodings()[e] }

// ContentType returns the media type of a record.
func (e Encoding) ContentType() string {
	return [...]string{"application/msgpack", "application/json"}[e]
}

// EncodingOf returns the encoding of a record.
func EncodingOf(record []byte) Encoding {
	if IsJSON(record) {
		return JSON
	}
	return MessagePack
}

const typeKey = "type" // of a control record in JSON

// AppendJSON appends a record, which an Append function wrote, as JSON with the same keys. A control
// record has its type beside them, as the header has it. The context is the object that came, bytes
// are base64, numbers keep all bits, and the checksum of a rare record is that of its JSON.
func AppendJSON(dst []byte, kind string, record []byte) []byte {
	from, r := len(dst), reader{b: record}
	dst = append(dst, '{')
	if kind != "" {
		dst = AppendJSONText(jsonKey(dst, typeKey), kind)
	}
	for s := r.open(tokMap); r.more(&s); {
		switch key := r.key(); key {
		case "context":
			dst = CarriedContext(jsonKey(dst, key), r.bytes())
		case "crc":
			sum := crc32.Checksum(dst[from:], castagnoli)
			dst = jsonInt(jsonKey(dst, key), int64(sum)) // it comes last
		default:
			dst = r.appendJSON(jsonKey(dst, key), maxDepth, jsonBytes)
		}
	}
	return append(dst, '}')
}

// asJSON turns the map in dst[from:] into JSON without its version, as clients write it.
func asJSON(dst []byte, from int) []byte {
	r, text := reader{b: dst[from:]}, append(dst, '{')
	for s := r.open(tokMap); r.more(&s); {
		if key := r.key(); key == "v" {
			r.skip()
		} else {
			text = r.appendJSON(jsonKey(text, key), maxDepth, AppendJSONText)
		}
	}
	return slices.Delete(append(text, '}'), from, len(dst))
}

// Like returns a data record, which an Append function wrote, in the encoding of another: as a model
// of that encoding stores it.
func Like(other, record []byte) []byte {
	return Stored(nil, EncodingOf(other), "", record)
}

// Stored returns a record, which an Append function wrote, as a model stores it, in memory of dst or
// its own. One that is too large as JSON stays MessagePack.
func Stored(dst []byte, e Encoding, kind string, record []byte) []byte {
	if e == MessagePack {
		return record
	}
	if dst = AppendJSON(dst, kind, record); len(dst) > MaxRecordBytes {
		return record
	}
	return dst
}

// EventTime returns the log time of what a record, which an Append function wrote, tells of, ns since
// 1970; 0: it says none. Of feedback that is when the round was closed.
func EventTime(record []byte) (at int64) {
	r := newReader(record)
	for s := r.open(tokMap); r.find(&s, "time", "closed_at"); {
		at = r.int()
	}
	return at
}

// OpenValue returns the bytes of the record with which an owner opens a topic of a model.
func OpenValue(e Encoding) []byte {
	if e == MessagePack {
		return nil
	}
	return []byte(`{"type":"open"}`)
}

// CarriedContext appends a context as records in JSON carry it: as it came, or as JSON if it came as
// MessagePack. Of its own result that is the same. Bytes that are no context are base64.
func CarriedContext(dst, raw []byte) []byte {
	r := newReader(raw)
	if r.json {
		from := r.i
		r.skipAt(contextDepth)
		to := r.i
		if r.end("") == nil {
			if raw = raw[from:to]; !utf8.Valid(raw) { // where nobody reads it
				raw = bytes.ToValidUTF8(raw, []byte("\ufffd"))
			}
			return append(dst, raw...)
		}
	} else if r.kind() == tokMap {
		from := len(dst)
		dst = r.appendJSON(dst, maxDepth-contextDepth, AppendJSONText)
		if r.end("") == nil {
			return dst
		}
		dst = dst[:from]
	}
	return jsonBytes(dst, string(raw))
}

// SameContext reports whether a context that a record carries is the one that came.
func SameContext(came, carried []byte) bool {
	return bytes.Equal(came, carried) || IsJSON(carried) && bytes.Equal(CarriedContext(nil, came), carried)
}

// contextDepth is the depth at which a context begins that is skipped as a whole: what is inside
// it, or inside the CloudEvent around it, was allowed to be as deep as any value.
const contextDepth = -8

func jsonBytes(dst []byte, b string) []byte {
	return append(base64.StdEncoding.AppendEncode(append(dst, '"'), []byte(b)), '"')
}

// appendJSON reads a value of MessagePack and appends it as JSON, bytes as told, down to a depth.
func (r *reader) appendJSON(dst []byte, depth int, binary func([]byte, string) []byte) []byte {
	switch r.kind() {
	case tokNull:
		r.null()
	case tokBool:
		return strconv.AppendBool(dst, r.bool())
	case tokNum:
		return r.appendNumber(dst)
	case tokText:
		return AppendJSONText(dst, r.text())
	case tokBytes:
		return binary(dst, r.text())
	case tokList, tokMap:
		if depth > 0 {
			return r.appendInside(dst, depth-1, binary)
		}
		r.fail(errDepth)
	default:
		r.skip()
	}
	return append(dst, "null"...)
}

func (r *reader) appendInside(dst []byte, depth int, binary func([]byte, string) []byte) []byte {
	if r.kind() == tokList {
		dst = append(dst, '[')
		for s := r.open(tokList); r.more(&s); {
			dst = r.appendJSON(jsonComma(dst), depth, binary)
		}
		return append(dst, ']')
	}
	dst = append(dst, '{')
	for s := r.open(tokMap); r.more(&s); {
		switch r.kind() {
		case tokText, tokBytes:
			dst = jsonKey(dst, r.text())
		default: // a key that no context has
			dst = jsonKey(dst, string(r.appendJSON(nil, depth, binary)))
		}
		dst = r.appendJSON(dst, depth, binary)
	}
	return append(dst, '}')
}

func (r *reader) appendNumber(dst []byte) []byte {
	switch c := r.b[r.i]; c {
	case mpFloat32, mpFloat64:
		return jsonFloat(dst, r.packFloat())
	case mpUint64:
		return strconv.AppendUint(dst, r.uint(8), 10)
	}
	return jsonInt(dst, r.packInt())
}

// jsonInt reads a whole number, to the bit if it is digits alone.
func (r *reader) jsonInt() int64 {
	end := r.i
	for end < len(r.b) && (r.b[end]-'0' <= 9 || r.b[end] == '-') {
		end++
	}
	if end < len(r.b) && (r.b[end] == '.' || r.b[end]|0x20 == 'e') {
		return r.whole(r.jsonNumber())
	}
	n, err := strconv.ParseInt(unsafe.String(unsafe.SliceData(r.b[r.i:end]), end-r.i), 10, 64)
	if r.jsonNumber(); err == nil && r.err == nil {
		return n
	}
	r.fail(errWantInt)
	return 0
}

// jsonBin reads bytes in base64.
func (r *reader) jsonBin() []byte {
	b, err := base64.StdEncoding.Strict().DecodeString(r.jsonString())
	if err != nil && r.err == nil {
		r.fail(errWantBytes)
	}
	return b
}

// contextBytes reads the context that a record carries.
func (r *reader) contextBytes() []byte {
	if r.kind() != tokMap || !r.json {
		return r.bytes()
	}
	from := r.i
	r.skipAt(contextDepth)
	return r.b[from:r.i:r.i]
}

// checkJSONCRC is checkCRC of a record in JSON.
func checkJSONCRC(b []byte) error {
	i := bytes.LastIndex(b, []byte(jsonCRC))
	if i < 0 {
		return errNoCRC
	}
	if string(b[i:]) != fmt.Sprintf("%s%d}", jsonCRC, crc32.Checksum(b[:i], castagnoli)) {
		return errCRC
	}
	return nil
}

const jsonCRC = `,"crc":`
