package codec

import (
	"reflect"
	"strings"
	"testing"
)

// The shapes list exactly the keys of the records, with their types.
func TestShapes(t *testing.T) {
	checkShape(t, reflect.TypeFor[Epoch](), epochShape)
	checkShape(t, reflect.TypeFor[Class](), classShape)
	checkShape(t, reflect.TypeFor[FeedbackMark](), feedbackMarkShape)
	checkShape(t, reflect.TypeFor[DecisionMark](), decisionMarkShape)
	checkShape(t, reflect.TypeFor[Snapshot](), snapshotShape)
	checkShape(t, reflect.TypeFor[Reject](), rejectShape)
}

func checkShape(t *testing.T, record reflect.Type, have shape) {
	t.Helper()
	if record.NumField() != len(have) {
		t.Fatalf("%v has %d fields, its shape %d keys", record, record.NumField(), len(have))
	}
	for i, k := range have {
		f := record.Field(i)
		key, option, _ := strings.Cut(f.Tag.Get("msgpack"), ",")
		if key != k.key || (option == "omitempty") != k.optional {
			t.Errorf("%v.%s: the shape has %q, optional: %v", record, f.Name, k.key, k.optional)
		}
		want := map[reflect.Kind]want{reflect.Int: wantInt, reflect.Int64: wantInt, reflect.String: wantText}[f.Type.Kind()]
		switch {
		case k.key == "v":
			want = wantVersion
		case f.Type == reflect.TypeFor[[]byte]():
			want = wantBytes
		case f.Type == reflect.TypeFor[[]int64]():
			want = wantInts
		case f.Type.Kind() == reflect.Slice:
			want = wantMaps
			checkShape(t, f.Type.Elem(), k.inside)
		}
		if k.want != want {
			t.Errorf("%v.%s: the shape wants %d, the type %d", record, f.Name, k.want, want)
		}
	}
}
