package embedded

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

// TestServerLogIsBounded holds how many lines the server gets to write, at and over the
// limit, and that those left out are counted.
func TestServerLogIsBounded(t *testing.T) {
	var out bytes.Buffer
	l := &serverLog{log: slog.New(slog.NewTextHandler(&out, nil))}
	for range logLines + 30 {
		l.Errorf("cid:%d - Publish Violation", 7)
	}
	if n := strings.Count(out.String(), "Publish Violation"); n != logLines {
		t.Errorf("%d lines, want %d", n, logLines)
	}
	if l.room(l.from.Add(logInterval - 1)) {
		t.Error("room beyond the limit")
	}
	if !l.room(l.from.Add(logInterval)) || !strings.Contains(out.String(), "lines=31") {
		t.Errorf("no room in the next interval, or nothing told of what was left out:\n%s", out.String())
	}
}
