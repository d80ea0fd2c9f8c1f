package codec

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"
)

// A reject of any record fits the log, tells how much of it is missing, and tells
// its record from others.
func TestFit(t *testing.T) {
	for _, size := range []int{0, 1, MaxRecordBytes - 3000, MaxRecordBytes - 1000, MaxRecordBytes, 1 << 20, 1<<20 + 1} {
		for _, detail := range []string{"", "short", strings.Repeat("ä€", MaxRecordBytes/5)} {
			record := bytes.Repeat([]byte{'x'}, size)
			x := Reject{Topic: "outcomes", Offset: 1 << 62, Time: 1 << 62, Reason: ReasonDuplicateID, Detail: detail,
				ID: strings.Repeat("i", 256), Bytes: record}
			x.Fit()
			b := AppendReject(nil, &x)
			if len(b)+len(x.ID) > MaxRecordBytes {
				t.Errorf("%d bytes with %d of detail make %d", size, len(detail), len(b))
			}
			y, err := ParseReject(b)
			if err != nil || !y.Tells(record) || !utf8.ValidString(y.Detail) || len(y.Detail) < min(len(detail), 1000) {
				t.Fatalf("%d bytes: %v, %d of detail", size, err, len(y.Detail))
			}
			if cut := y.Size > 0; cut != (len(y.Bytes) < size) || cut != strings.Contains(y.Detail, "are kept") ||
				cut && y.Size != size {
				t.Errorf("%d bytes: %d kept, of %d", size, len(y.Bytes), y.Size)
			}
			if size > 0 && (y.Tells(record[1:]) || y.Tells(append([]byte("y"), record[1:]...))) {
				t.Errorf("%d bytes: tells of others", size)
			}
		}
	}
}

// What is shown of a detail where many are is short, and text.
func TestShort(t *testing.T) {
	for _, c := range []struct{ detail, want string }{
		{"", ""}, {"short", "short"}, {strings.Repeat("x", 200), strings.Repeat("x", 200)},
		{strings.Repeat("x", 201), strings.Repeat("x", 200) + "…"},
		{strings.Repeat("€", 100), strings.Repeat("€", 66) + "…"},
	} {
		if got := (&Reject{Detail: c.detail}).Short(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// What tells of lost tails is left out where there is none, and
// read back.
func TestLossKeys(t *testing.T) {
	d := sampleDecisionMark()
	d.Time, d.ContextsLost, d.LearnedLost = 17, 1300, 995
	if got, err := ParseDecisionMark(AppendDecisionMark(nil, &d)); err != nil || got != d {
		t.Errorf("%+v, %v", got, err)
	}
}
