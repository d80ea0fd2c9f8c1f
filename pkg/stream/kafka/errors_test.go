package kafka

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
)

// Every error that Kafka has a name of is told with it.
func TestErrorsHaveNames(t *testing.T) {
	plain := func(s string) string { return strings.ToLower(strings.NewReplacer(" ", "", "_", "").Replace(s)) }
	for code := int16(1); code <= 133; code++ {
		var k *kerr.Error
		if !errors.As(kerr.ErrorForCode(code), &k) || k == kerr.UnknownServerError {
			continue
		}
		said := classify(code).Error()
		if strings.Contains(said, ": : ") || strings.Contains(said, ":  (") || strings.Contains(said, "no name") {
			t.Errorf("%s is told as %s", k.Message, said)
		}
		if code >= 107 && !strings.Contains(plain(said), plain(k.Message)) {
			t.Errorf("%s is told as %s", k.Message, said)
		}
	}
	for _, code := range []int16{134, 999} { // after the last that has one, and far behind
		want := fmt.Sprintf("no name here (Kafka error %d)", code)
		if said := classify(code).Error(); !strings.HasSuffix(said, want) {
			t.Error(said)
		}
	}
}
