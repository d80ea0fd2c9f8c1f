package codec

import (
	"errors"
	"math"
	"testing"
)

// TestLoggedPropensity: a probability that a context was logged with lies in [0,1].
func TestLoggedPropensity(t *testing.T) {
	for p, ok := range map[float64]bool{0: true, .5: true, 1: true, -.5: false, 1.5: false, math.Inf(1): false} {
		c := Context{ID: "a", Actions: []Action{{Name: "x"}}, LoggedPropensity: p}
		err := c.Validate()
		if e := (*Error)(nil); (err == nil) != ok || !ok && !errors.As(err, &e) {
			t.Errorf("%v: %v", p, err)
		}
	}
}
