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

// TestEpochAlarm holds that the feedback at which the guard alarmed is read from the cause that it gives, in the
// words of all programs, and from no other.
func TestEpochAlarm(t *testing.T) {
	for cause, want := range map[string]int64{
		AlarmCause(41): 41,
		"guard: worse than the baseline at feedback 41":        41,
		"guard: worse than the baseline at feedback 4x":        0,
		"guard: other words":                                   0,
		"admin: guard: worse than the baseline at feedback 41": 0,
		"lost": 0,
		"41":   0,
		"":     0,
	} {
		if got := (&Epoch{Cause: cause}).Alarm(); got != want {
			t.Errorf("%q: %d, want %d", cause, got, want)
		}
	}
}
