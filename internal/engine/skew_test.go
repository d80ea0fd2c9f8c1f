package engine

import (
	"testing"

	"hindsight/pkg/stream/kafkatest"
)

// TestClockSkew: log times of brokers are of clocks that differ, those of a process of one.
func TestClockSkew(t *testing.T) {
	t.Parallel()
	brokers, _ := kafkatest.Fake(t, 1)
	for log, differ := range map[string]bool{"mem:": false, "embedded:" + t.TempDir(): false,
		"kafka://" + brokers[0]: true} {
		e, err := Open(t.Context(), Options{Log: log})
		if err != nil {
			t.Fatalf("%s: %v", log, err)
		}
		if got := e.ClockSkew > 0; got != differ {
			t.Errorf("%s: clocks may differ by %v", log, e.ClockSkew)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}
