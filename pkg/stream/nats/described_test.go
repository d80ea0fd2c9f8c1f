package nats

import (
	"strings"
	"testing"

	"hindsight/pkg/stream"
)

// Who looks at a server sees what each stream is, and who reads it.
func TestDescribed(t *testing.T) {
	s, stop := runServer(t, t.TempDir(), -1)
	defer stop()
	c := dialTest(t, s.ClientURL(), Options{})
	if err := c.Log().Create(t.Context(), "shop.contexts", 2, stream.TopicOptions{}); err != nil {
		t.Fatal(err)
	}
	a, err := c.Log().Writer(t.Context(), "shop.contexts", 1, nil)
	if err == nil {
		_, err = a.Append(t.Context(), &stream.Record{Value: []byte("x")})
	}
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.Log().Read(t.Context(), "shop.contexts", 1, stream.Earliest)
	if err == nil {
		_, err = r.Next(t.Context(), nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	js, err := connect(t, s.ClientURL()).JetStream()
	if err != nil {
		t.Fatal(err)
	}
	info, err := js.StreamInfo("shop_contexts_1")
	if err != nil || info.Config.Description != "Hindsight: partition 1 of 2 of shop.contexts" {
		t.Errorf("the stream: %+v, %v", info, err)
	}
	readers := 0
	for consumer := range js.Consumers("shop_contexts_1") {
		readers++
		if text := consumer.Config.Description; !strings.HasPrefix(text, "read by ") || len(text) < 10 {
			t.Errorf("a consumer is described as %q", text)
		}
	}
	if readers == 0 {
		t.Error("nobody reads")
	}
}

// A server that is too old is refused with the version that is needed, and one without headers.
func TestOldServer(t *testing.T) {
	for says, old := range map[string]bool{"2.9.25": true, "1.4.1": true, "2.10.0": false, "2.12.1-RC.1": false,
		"3.0.0": false, "": false, "dev": false} {
		if err := checkServer(says, true); (err != nil) != old || old && !strings.Contains(err.Error(),
			"2.10 or later") {
			t.Errorf("%q: %v", says, err)
		}
	}
	if err := checkServer("2.12.1", false); err == nil || !strings.Contains(err.Error(), "headers") {
		t.Errorf("without headers: %v", err)
	}
}
