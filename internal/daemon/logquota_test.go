package daemon

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// A message beyond its quota is left out and counted, others and other levels are not; what a
// logger is enriched with changes nothing.
func TestLogQuota(t *testing.T) {
	var b bytes.Buffer
	h := newQuota(slog.NewTextHandler(&b, nil))
	now := time.Unix(1000, 0)
	h.q.now = func() time.Time { return now }
	l := slog.New(h)
	flood := func(n int) {
		for i := range n {
			l.With("partition", i).WithGroup("g").Warn("flood", "i", i)
		}
	}
	flood(quotaLines + 50)
	l.Error("flood")
	l.Warn("other")
	if n := strings.Count(b.String(), "level=WARN msg=flood"); n != quotaLines {
		t.Errorf("%d lines", n)
	}
	if !strings.Contains(b.String(), "level=ERROR msg=flood") || !strings.Contains(b.String(), "msg=other") ||
		strings.Contains(b.String(), "left_out") {
		t.Errorf("%s", b.String())
	}
	b.Reset()
	now = now.Add(quotaSpan - 1)
	flood(1)
	if b.Len() > 0 {
		t.Errorf("before the minute is over: %s", b.String())
	}
	now = now.Add(1)
	flood(2)
	if s := b.String(); strings.Count(s, "left_out=51") != 1 || strings.Count(s, "msg=flood") != 2 {
		t.Errorf("%s", s)
	}
	for i := range 2 * quotaMessages {
		l.Info(fmt.Sprint(i))
	}
	if len(h.q.seen) > quotaMessages {
		t.Errorf("%d messages are remembered", len(h.q.seen))
	}
}
