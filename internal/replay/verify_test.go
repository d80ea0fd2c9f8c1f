package replay

import (
	"bytes"
	"fmt"
	"testing"
)

func (r *VerifyReport) text() string {
	var b bytes.Buffer
	if err := r.Write(&b); err != nil {
		return err.Error()
	}
	return b.String()
}

// What the real shells wrote is what Verify recomputes, whatever happened on the
// way.
func TestVerifyIdentical(t *testing.T) {
	for parts := 1; parts <= 3; parts++ {
		for seed := range uint64(6) {
			t.Run(fmt.Sprint(parts, " partitions, seed ", seed), func(t *testing.T) {
				w := liveWorld(t, parts, seed, 60)
				r := w.verify()
				t.Log(r.text())
				if r.ExitCode() != VerifyIdentical {
					t.Fatal("not identical")
				}
			})
		}
	}
}
