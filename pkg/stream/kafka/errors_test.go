package kafka

import (
	"errors"
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
	if said := classify(999).Error(); !strings.Contains(said, "no name here (Kafka error 999)") {
		t.Error(said)
	}
}
