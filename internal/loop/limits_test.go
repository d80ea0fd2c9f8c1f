package loop

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"hindsight/pkg/codec"
)

// TestMaxActions holds a model's limit on the eligible actions under, at and over it.
func TestMaxActions(t *testing.T) {
	rules := anyRules()
	for n := rules.MaxActions - 1; n <= rules.MaxActions+1; n++ {
		var names []string
		for i := range n {
			names = append(names, fmt.Sprintf(`"a%d"`, i))
		}
		d := NewDecider(newReplica(t, rules), testSeed, "shop", 0, 10)
		var dec codec.Decision
		res := d.Decide(&dec, []byte(`{"id":"x","actions":[`+strings.Join(names, ",")+`]}`), "",
			Source{Offset: 5, Through: 6})
		if n <= rules.MaxActions && res.Verdict != Decided || n > rules.MaxActions &&
			(res.Verdict != Invalid || !errors.Is(res.Err, errManyActions)) {
			t.Errorf("%d actions of %d: %+v", n, rules.MaxActions, res)
		}
	}
}
