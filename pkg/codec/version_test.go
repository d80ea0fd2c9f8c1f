package codec

import (
	"bytes"
	"errors"
	"testing"
)

// TestEpochVersion holds that an epoch that goes on with a learner is refused by programs
// that would begin a new one, and that all others are read by them.
func TestEpochVersion(t *testing.T) {
	for continues, want := range []int{1, 2, 2} {
		x := sampleEpoch()
		x.WarmFrom, x.WarmTo, x.WarmEpoch, x.Continues = 0, 0, 0, int64(continues)
		b := AppendEpoch(nil, &x)
		got, err := ParseEpoch(b)
		if err != nil || got.V != want {
			t.Errorf("continues %d: version %d, want %d: %v", continues, got.V, want, err)
		}
		later := bytes.Replace(b, []byte{0xa1, 'v', byte(want)}, []byte{0xa1, 'v', Newest + 1}, 1)
		if _, err := ParseEpoch(later); !errors.Is(err, ErrVersion) {
			t.Errorf("version %d: %v", Newest+1, err)
		}
	}
}
