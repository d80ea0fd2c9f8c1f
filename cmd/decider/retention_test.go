package main

import (
	"testing"
	"time"
)

func TestRetentionInDays(t *testing.T) {
	for text, want := range map[string]time.Duration{"7d": 7 * 24 * time.Hour, "168h": 7 * 24 * time.Hour,
		"90m": 90 * time.Minute, "0": 0, "0d": 0, "-1h": -time.Hour} {
		var r retention
		if err := r.Set(text); err != nil || time.Duration(r) != want {
			t.Errorf("%s: %v, %v", text, &r, err)
		}
	}
	for _, text := range []string{"", "7", "d", "1.5d", "-1d", "7y", "99999999999d"} {
		var r retention
		if err := r.Set(text); err == nil {
			t.Errorf("%q: %v", text, &r)
		}
	}
}
