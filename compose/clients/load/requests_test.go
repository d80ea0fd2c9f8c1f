package main

import (
	"context"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"hindsight/internal/engine"
)

// The source of load asks again while no decider answers, and says so with the server's address.
func TestWrongServer(t *testing.T) {
	logger := slog.New(slog.DiscardHandler)
	e, err := engine.Open(t.Context(), engine.Options{Log: "embedded:" + t.TempDir(), Listen: "127.0.0.1:0",
		Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	nc, err := nats.Connect(e.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	a := &asker{plan: &plan{model: "shop", world: shop{}}, nc: nc}
	go a.insist(ctx, "decide", []byte("{}"))
	for a.seen.failure.Load() == nil && ctx.Err() == nil {
		runtime.Gosched()
	}
	want := "shop.decide on " + nc.ConnectedUrl() + ": nats: no responders available for request: no decider of " +
		"this model"
	if got := a.seen.text(shop{}); !strings.Contains(got, want) {
		t.Errorf("%s\nwant %s", got, want)
	}
}
