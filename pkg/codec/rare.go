package codec

import (
	"encoding/binary"
	"hash/crc32"
	"reflect"
	"strings"
)

// AppendEpoch appends x as MessagePack, as all of these do, in this build's
// version whatever x.V says.
func AppendEpoch(dst []byte, x *Epoch) []byte {
	logged := *x
	logged.Model = x.LoggedModel()
	return appendRare(dst, epochRecord, epochVersion(x), &logged)
}

// ParseEpoch parses an epoch. It refuses, as all of these do, a version later
// than [Newest], a missing, repeated or mistyped key, bytes before or behind, and
// bytes that do not have their checksum. The result shares no memory with b.
func ParseEpoch(b []byte) (Epoch, error) {
	x, err := parsed[Epoch](epochRecord, b)
	x.splitModel()
	return x, err
}

// AppendClass appends one piece of a class file.
func AppendClass(dst []byte, x *Class) []byte { return appendRare(dst, classRecord, Version, x) }

// ParseClass parses one piece of a class file.
func ParseClass(b []byte) (Class, error) { return parsed[Class](classRecord, b) }

// AppendFeedbackMark appends a mark of the joiner.
func AppendFeedbackMark(dst []byte, x *FeedbackMark) []byte {
	return appendRare(dst, feedbackMarkRecord, cutMarkVersion, x)
}

// ParseFeedbackMark parses a mark of the joiner, of any version.
func ParseFeedbackMark(b []byte) (FeedbackMark, error) {
	if versionOf(b) >= cutMarkVersion {
		return parsed[FeedbackMark](feedbackMarkRecord, b)
	}
	x, err := parsed[OldMark](oldMarkRecord, b)
	if err != nil {
		return FeedbackMark{}, err
	}
	return x.mark()
}

// AppendDecisionMark appends a mark of a decider.
func AppendDecisionMark(dst []byte, x *DecisionMark) []byte {
	return appendRare(dst, decisionMarkRecord, Version, x)
}

// ParseDecisionMark parses a mark of a decider.
func ParseDecisionMark(b []byte) (DecisionMark, error) {
	return parsed[DecisionMark](decisionMarkRecord, b)
}

// AppendSnapshot appends one chunk of a snapshot.
func AppendSnapshot(dst []byte, x *Snapshot) []byte {
	return appendRare(dst, snapshotRecord, Version, x)
}

// ParseSnapshot parses one chunk of a snapshot.
func ParseSnapshot(b []byte) (Snapshot, error) { return parsed[Snapshot](snapshotRecord, b) }

// AppendReject appends a reject.
func AppendReject(dst []byte, x *Reject) []byte { return appendRare(dst, rejectRecord, Version, x) }

// ParseReject parses a reject.
func ParseReject(b []byte) (Reject, error) { return parsed[Reject](rejectRecord, b) }

// record is a kind of rare record. The fields of its struct declare its keys, in their
// order on the wire: numbers, texts, bytes, and lists of whole numbers or of structs of such.
type record struct {
	event  string
	newest int64 // version
	rows   bool  // what is inside is lists of values rather than maps
	fields []field
}

// field is a field of a record, or of what is inside one.
type field struct {
	key      string
	index    int  // of the field in its struct
	optional bool // left out where it is empty
	inside   []field
}

var (
	epochRecord        = &record{"epoch", Newest, false, fieldsOf(reflect.TypeFor[Epoch]())}
	classRecord        = &record{"class", Newest, false, fieldsOf(reflect.TypeFor[Class]())}
	cutRecord          = &record{"cut", Newest, true, fieldsOf(reflect.TypeFor[Cut]())}
	oldMarkRecord      = &record{"feedback mark", Newest, false, fieldsOf(reflect.TypeFor[OldMark]())}
	feedbackMarkRecord = &record{"feedback mark", cutMarkVersion, true, fieldsOf(reflect.TypeFor[FeedbackMark]())}
	decisionMarkRecord = &record{"decision mark", Newest, false, fieldsOf(reflect.TypeFor[DecisionMark]())}
	snapshotRecord     = &record{"snapshot", Newest, false, fieldsOf(reflect.TypeFor[Snapshot]())}
	rejectRecord       = &record{"reject", Newest, false, fieldsOf(reflect.TypeFor[Reject]())}
)

// fieldsOf returns the fields of a struct that have a key.
func fieldsOf(t reflect.Type) (fields []field) {
	for i := range t.NumField() {
		key, option, _ := strings.Cut(t.Field(i).Tag.Get("msgpack"), ",")
		if key == "" || key == "-" {
			continue
		}
		f := field{key: key, index: i, optional: option == "omitempty"}
		inside := t.Field(i).Type
		if inside.Kind() == reflect.Slice {
			inside = inside.Elem()
		}
		if inside.Kind() == reflect.Struct {
			f.inside = fieldsOf(inside)
		}
		fields = append(fields, f)
	}
	return fields
}

// Rare records end with the key "crc": the CRC-32C of all bytes of the record
// before that key, always as five bytes. Nothing else vouches for them: what is in
// a mark or a reject cannot be told from other records to the bit, as a decision can.
const (
	crcKey   = "\xa3crc\xce"
	crcBytes = len(crcKey) + 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendRare appends a record, x points to, in a version.
func appendRare(dst []byte, rec *record, version int, x any) []byte {
	from := len(dst)
	dst = rec.appendStruct(dst, rec.fields, reflect.ValueOf(x).Elem(), version)
	sum := crc32.Checksum(dst[from:], castagnoli)
	return binary.BigEndian.AppendUint32(append(dst, crcKey...), sum)
}

// appendStruct appends a struct. A record, which has a version, is a map with room for the checksum.
func (rec *record) appendStruct(dst []byte, fields []field, v reflect.Value, version int) []byte {
	row, n := rec.rows && version == 0, len(fields)
	if version > 0 {
		n++
	}
	for i := range fields {
		if fields[i].leftOut(v) {
			n--
		}
	}
	if row {
		dst = appendList(dst, n)
	} else {
		dst = appendMap(dst, n)
	}
	for i := range fields {
		f := &fields[i]
		if f.leftOut(v) {
			continue
		}
		if !row {
			dst = appendKey(dst, f.key)
		}
		if version > 0 && f.key == "v" {
			dst = appendInt(dst, int64(version))
		} else {
			dst = rec.appendValue(dst, f, v.Field(f.index))
		}
	}
	return dst
}

// leftOut reports whether a field of v is not written.
func (f *field) leftOut(v reflect.Value) bool {
	if !f.optional {
		return false
	}
	v = v.Field(f.index)
	return v.IsZero() || v.Kind() == reflect.Slice && v.Len() == 0
}

func (rec *record) appendValue(dst []byte, f *field, v reflect.Value) []byte {
	switch v.Kind() {
	case reflect.String:
		return appendText(dst, v.String())
	case reflect.Uint32:
		return appendInt(dst, int64(v.Uint()))
	case reflect.Slice:
		switch {
		case v.IsNil() && !rec.rows:
			return append(dst, mpNil)
		case v.Type().Elem().Kind() == reflect.Uint8:
			return appendBytes(dst, v.Bytes())
		}
		dst = appendList(dst, v.Len())
		for i := range v.Len() {
			dst = rec.appendValue(dst, f, v.Index(i))
		}
		return dst
	case reflect.Struct:
		return rec.appendStruct(dst, f.inside, v, 0)
	}
	return appendInt(dst, v.Int())
}

// parsed is parseRare into a record of its own.
func parsed[T any](rec *record, b []byte) (x T, err error) {
	err = parseRare(rec, b, &x)
	return x, err
}

// parseRare parses b into the struct that x points to, which is empty but for memory to reuse.
func parseRare(rec *record, b []byte, x any) error {
	v := reflect.ValueOf(x).Elem()
	r := newReader(b)
	r.record(rec, rec.fields, v, true)
	err := r.end(rec.event)
	if err == nil {
		err = wrong(rec.event, "crc", checkCRC(b))
	}
	if err != nil {
		v.SetZero()
	}
	return err
}

func checkCRC(b []byte) error {
	if IsJSON(b) {
		return checkJSONCRC(b)
	}
	body := b[:max(0, len(b)-crcBytes)]
	tail := b[len(body):]
	if len(tail) < crcBytes || string(tail[:len(crcKey)]) != crcKey {
		return errNoCRC
	}
	if binary.BigEndian.Uint32(tail[len(crcKey):]) != crc32.Checksum(body, castagnoli) {
		return errCRC
	}
	return nil
}

// versionOf returns the version that a record says; 0 if it says none.
func versionOf(b []byte) int64 {
	r := newReader(b)
	if s := r.open(tokMap); r.find(&s, "v") {
		return r.int()
	}
	return 0
}

// record reads a map into a struct. A missing key, or one of another type, must not pass.
func (r *reader) record(rec *record, fields []field, v reflect.Value, outer bool) {
	var seen uint32
	s := r.entries()
	for r.entry(&s) {
		i := 0
		for i < len(fields) && fields[i].key != s.key {
			i++
		}
		if i == len(fields) {
			r.skip()
		} else {
			r.once(&seen, i)
			f := v.Field(fields[i].index)
			if outer && s.key == "v" {
				r.noFloat()
				f.SetInt(r.versionUpTo(rec.newest))
			} else {
				r.value(rec, &fields[i], f)
			}
		}
	}
	for i := range fields {
		if r.err == nil && !fields[i].optional && seen&(1<<i) == 0 {
			r.fail(errMissing)
			r.in(fields[i].key)
		}
	}
}

// value reads the value of a field, or an item of its list.
func (r *reader) value(rec *record, f *field, v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(strings.Clone(r.text()))
	case reflect.Slice:
		r.list(rec, f, v)
	case reflect.Struct:
		if rec.rows {
			r.row(rec, f.inside, v)
		} else {
			r.record(rec, f.inside, v, false)
		}
	case reflect.Uint32:
		r.noFloat()
		n := r.int()
		if n != int64(uint32(n)) {
			r.fail(errRange)
		}
		v.SetUint(uint64(n))
	default:
		r.noFloat()
		v.SetInt(r.int())
	}
}

// list reads bytes or a list; null is none, but in rows.
func (r *reader) list(rec *record, f *field, v reflect.Value) {
	if !rec.rows && r.null() {
		return
	}
	if v.Type().Elem().Kind() == reflect.Uint8 {
		v.SetBytes(append([]byte{}, r.bytes()...))
		return
	}
	for s := r.open(tokList); r.more(&s); {
		i := v.Len()
		v.Grow(1)
		v.SetLen(i + 1)
		v.Index(i).SetZero()
		if r.value(rec, f, v.Index(i)); r.err != nil && f.inside != nil {
			r.in(item("", i))
		}
	}
}

// row reads a list with one value for each of the fields of a struct.
func (r *reader) row(rec *record, fields []field, v reflect.Value) {
	s := r.open(tokList)
	if r.err == nil && !r.json && s.left != len(fields) {
		r.fail(errRow)
	}
	for i := range fields {
		if r.more(&s); r.err != nil {
			return
		}
		if r.value(rec, &fields[i], v.Field(fields[i].index)); r.err != nil {
			r.in(fields[i].key)
		}
	}
	if r.more(&s) {
		r.fail(errRow)
	}
}

// noFloat fails if a float comes next: no number of these records is one.
func (r *reader) noFloat() {
	if !r.json && r.i < len(r.b) && (r.b[r.i] == mpFloat32 || r.b[r.i] == mpFloat64) {
		r.fail(errWantInt)
	}
}
