package service

import (
	"strings"
	"testing"
	"time"

	"hindsight/internal/front"
	"hindsight/pkg/stream"
)

// TestPatience holds that a request whose client waits no longer is refused before it gets
// a number, and one whose client still waits is decided.
func TestPatience(t *testing.T) {
	r := newRig(t, nil)
	r.must(r.settle())
	for _, c := range []struct {
		timeout string // header; "": none
		waited  time.Duration
		code    string // "": decided
	}{
		{"", 0, ""},
		{"", front.MaxPatience - time.Second, ""},
		{"", front.MaxPatience, "503"},
		{"1h", front.MaxPatience, "503"},
		{"2s", time.Second, ""},
		{"2s", 2 * time.Second, "503"},
		{"soon", 0, "400"},
		{"-1s", 0, "400"},
		{"0s", 0, "400"},
	} {
		m := stream.Message{Data: []byte(`{"features":{},"actions":["a","b"]}`)}
		if c.timeout != "" {
			m.Headers = []stream.Header{{Key: "Hindsight-Timeout", Value: c.timeout}}
		}
		code := ""
		m.Respond = func(_ []byte, headers ...stream.Header) error {
			for _, h := range headers {
				if h.Key == "Nats-Service-Error-Code" {
					code = h.Value
				}
			}
			return nil
		}
		next := r.d.heart.Next()
		r.d.requestOf(m, time.Now().Add(-c.waited))
		if decided := r.d.heart.Next() - next; code != c.code || decided == 1 != (c.code == "") {
			t.Errorf("%q after %v: code %q, want %q; %d decided", c.timeout, c.waited, code, c.code, decided)
		}
	}
	if _, err := front.PatienceOf(
		&stream.Message{Headers: []stream.Header{
			{Key: "hindsight-timeout", Value: strings.Repeat("9", 1000)}}}); err == nil || len(err.Error()) > 200 {
		t.Errorf("a long value: %v", err)
	}
}
