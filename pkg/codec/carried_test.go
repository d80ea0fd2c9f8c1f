package codec

import (
	"bytes"
	"testing"
)

// TestCarriedDepth: a context in MessagePack is carried as JSON as deep as one may be inside a CloudEvent, and as
// the bytes that it is beyond that.
func TestCarriedDepth(t *testing.T) {
	const most = maxDepth - contextDepth
	for depth, json := range map[int]bool{1: true, maxDepth: true, most - 1: true, most: true, most + 1: false} {
		raw := append([]byte("\x81\xa1x"), bytes.Repeat([]byte{0x91}, depth-1)...)
		raw = append(raw, 0xc0)
		got := CarriedContext(nil, raw)
		if (got[0] == '{') != json || json && bytes.Count(got, []byte("[")) != depth-1 {
			t.Errorf("%d deep: %s", depth, got)
		}
		if !SameContext(raw, got) && json {
			t.Errorf("%d deep: what is carried is another context", depth)
		}
	}
}
