package codec

// want is the type that a key of a rare record must have.
type want uint8

const (
	wantVersion want = iota + 1
	wantInt
	wantText
	wantBytes // or nil
	wantInts  // a list, or nil
	wantMaps  // a list of records of the shape inside, or nil
)

// shape lists the keys of a rare record. The library that decodes these records is
// lenient: a missing key reads as zero, a float as an integer. A record with a
// damaged key or type must not pass.
type shape []keyShape

type keyShape struct {
	key      string
	want     want
	optional bool
	inside   shape
}

var (
	epochShape = shape{
		{key: "v", want: wantVersion}, {key: "epoch", want: wantInt}, {key: "name", want: wantText},
		{key: "version", want: wantInt}, {key: "partitions", want: wantInt},
		{key: "seed_hash", want: wantText}, {key: "model", want: wantBytes},
		{key: "sha256", want: wantText}, {key: "files", want: wantMaps, inside: shape{
			{key: "name", want: wantText}, {key: "size", want: wantInt}, {key: "sha256", want: wantText},
		}}, {key: "through", want: wantInt}, {key: "warm_from", want: wantInt, optional: true},
		{key: "warm_to", want: wantInt, optional: true}, {key: "warm_epoch", want: wantInt, optional: true},
		{key: "continues", want: wantInt, optional: true}, {key: "cause", want: wantText, optional: true}, // never beside warm_*: a head of one byte has room for 15 keys
	}
	classShape = shape{
		{key: "v", want: wantVersion}, {key: "file", want: wantText}, {key: "part", want: wantInt},
		{key: "parts", want: wantInt}, {key: "bytes", want: wantBytes},
	}
	feedbackMarkShape = shape{
		{key: "v", want: wantVersion}, {key: "n", want: wantInt}, {key: "time", want: wantInt},
		{key: "positions", want: wantMaps, inside: shape{
			{key: "partition", want: wantInt}, {key: "released", want: wantInt},
			{key: "ahead", want: wantInts, optional: true}, {key: "decisions_from", want: wantInt},
			{key: "decisions_time", want: wantInt}, {key: "outcomes_through", want: wantInt},
			{key: "outcomes_from", want: wantInt}, {key: "outcomes_time", want: wantInt},
			{key: "parked", want: wantInts, optional: true}, {key: "decisions_through", want: wantInt, optional: true},
			{key: "outcomes_lost", want: wantInt, optional: true},
			{key: "refused", want: wantMaps, optional: true, inside: shape{{key: "offset", want: wantInt}, {key: "reason", want: wantText}}},
			{key: "ahead_bits", want: wantBytes, optional: true}, {key: "parked_deltas", want: wantBytes, optional: true},
			{key: "refused_runs", want: wantMaps, optional: true, inside: shape{{key: "reason", want: wantText}, {key: "offsets", want: wantBytes}}},
		}},
		{key: "epochs", want: wantMaps, inside: shape{
			{key: "epoch", want: wantInt}, {key: "offset", want: wantInt},
		}}, {key: "lost", want: wantInt, optional: true},
		{key: "void", want: wantMaps, optional: true, inside: shape{{key: "sha256", want: wantText}}},
		{key: "guard", want: wantBytes, optional: true},
	}
	decisionMarkShape = shape{
		{key: "v", want: wantVersion}, {key: "n", want: wantInt},
		{key: "contexts_through", want: wantInt}, {key: "learned_through", want: wantInt},
		{key: "gap_from", want: wantInt}, {key: "gap_to", want: wantInt},
		{key: "time", want: wantInt, optional: true}, {key: "contexts_lost", want: wantInt, optional: true},
		{key: "learned_lost", want: wantInt, optional: true},
		{key: "epoch", want: wantInt, optional: true}, {key: "version", want: wantInt, optional: true}, {key: "mode", want: wantText, optional: true},
	}
	snapshotShape = shape{
		{key: "v", want: wantVersion}, {key: "epoch", want: wantInt},
		{key: "learned_through", want: wantInt}, {key: "feedback_from", want: wantInt},
		{key: "nonce", want: wantText}, {key: "part", want: wantInt}, {key: "parts", want: wantInt},
		{key: "sha256", want: wantText}, {key: "bytes", want: wantBytes},
	}
	rejectShape = shape{
		{key: "v", want: wantVersion}, {key: "topic", want: wantText},
		{key: "partition", want: wantInt}, {key: "offset", want: wantInt},
		{key: "time", want: wantInt}, {key: "reason", want: wantText},
		{key: "detail", want: wantText}, {key: "id", want: wantText}, {key: "bytes", want: wantBytes},
		{key: "size", want: wantInt, optional: true},
	}
)

// shape reads a map and checks that it has the shape.
func (r *reader) shape(want shape) {
	var seen uint32
	for s := r.open(tokMap); r.more(&s); {
		key := r.key()
		known := false
		for i := range want {
			if want[i].key == key {
				known = true
				r.once(&seen, i)
				r.shapeValue(&want[i])
				break
			}
		}
		if !known {
			r.skip(0)
		}
		if r.err != nil {
			r.inKey(key)
			return
		}
	}
	for i := range want {
		if r.err == nil && !want[i].optional && seen&(1<<i) == 0 {
			r.fail(errMissing)
			r.in(want[i].key)
		}
	}
}

func (r *reader) shapeValue(k *keyShape) {
	switch k.want {
	case wantVersion:
		r.noFloat()
		r.version()
	case wantInt:
		r.noFloat()
		r.int()
	case wantText:
		r.text()
	case wantBytes:
		if !r.null() {
			r.bytes()
		}
	case wantInts:
		if !r.null() {
			for s := r.open(tokList); r.more(&s); {
				r.noFloat()
				r.int()
			}
		}
	case wantMaps:
		if r.null() {
			return
		}
		i := 0
		for s := r.open(tokList); r.more(&s); i++ {
			if r.shape(k.inside); r.err != nil {
				r.in(item("", i))
			}
		}
	}
}

// noFloat fails if a float comes next, which the library would cut to an integer.
func (r *reader) noFloat() {
	if r.i < len(r.b) && (r.b[r.i] == mpFloat32 || r.b[r.i] == mpFloat64) {
		r.fail(errWantInt)
	}
}
