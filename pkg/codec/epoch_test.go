package codec

import (
	"bytes"
	"testing"
)

// TestEpochMode holds that the mode is a field in this program and the last line of the model in the log, as
// programs without the field write and read it.
func TestEpochMode(t *testing.T) {
	const model = "name: shop\n"
	for i, name := range Modes() {
		for _, cause := range []string{"", "admin: prices"} {
			x := sampleEpoch()
			x.Model, x.Mode, x.Cause = []byte(model), Mode(i), cause
			older := x
			want := model
			if x.Mode != Live || cause != "" {
				want += "mode: " + name + "\n"
			}
			b := AppendEpoch(nil, &x)
			older.Model = []byte(want)
			if got := appendRare(nil, epochRecord, epochVersion(&x), &older); !bytes.Equal(got, b) {
				t.Errorf("%s, cause %q: its bytes are\n%q, those of before the field\n%q", name, cause, b, got)
			}
			got, err := ParseEpoch(b)
			if err != nil || !same(got, x) || string(got.LoggedModel()) != want {
				t.Errorf("%s, cause %q: %+v, %v", name, cause, got, err)
			}
		}
	}
}

// TestEpochRaised holds that an alarm of the guard is a field of its record, and is read from one of before that
// field, which has it in the cause.
func TestEpochRaised(t *testing.T) {
	for _, c := range []struct {
		cause        string
		raised, want int64
	}{
		{GuardCause + "41", 0, 41},
		{GuardCause + "41", 42, 42},
		{"guard: other words", 42, 42},
		{"admin: " + GuardCause + "41", 0, 0},
		{"lost", 0, 0},
		{"", 0, 0},
	} {
		x := sampleEpoch()
		x.Cause, x.Raised = c.cause, c.raised
		got, err := ParseEpoch(AppendEpoch(nil, &x))
		if err != nil || got.Raised != c.want || got.Cause != c.cause {
			t.Errorf("%q, %d: raised at %d, cause %q, %v", c.cause, c.raised, got.Raised, got.Cause, err)
		}
		if b := AppendEpoch(nil, &x); bytes.Contains(b, []byte("raised")) != (c.raised > 0) {
			t.Errorf("%q", b)
		}
	}
}
