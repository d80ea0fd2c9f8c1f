package engine

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"hindsight/pkg/stream/embedded"
)

// TestSync holds the values of --sync and what logs they are for, and that the log gets it.
func TestSync(t *testing.T) {
	for _, c := range []struct{ log, sync, wrong string }{
		{"embedded:x", "always", ""},
		{"embedded:x", "interval", ""},
		{"nats://host", "interval", ""},
		{"embedded:x", "1s", "expected always or interval"},
		{"nats://host", "always", "sync_interval"},
		{"kafka://host", "always", "flush.messages"},
		{"mem:", "always", "memory"},
	} {
		spec, err := Parse(c.log)
		if err != nil {
			t.Fatal(err)
		}
		switch err := CheckSync(spec, c.sync); {
		case err == nil && c.wrong != "", err != nil && (c.wrong == "" || !strings.Contains(err.Error(), c.wrong)):
			t.Errorf("--log %s --sync %s: %v", c.log, c.sync, err)
		}
	}
	var sync string
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	RegisterSync(f, &sync)
	if sync != embedded.SyncInterval {
		t.Errorf("the default is %q", sync)
	}
	if _, err := Open(t.Context(), Options{Log: "embedded:" + t.TempDir(), Listen: "127.0.0.1:0",
		Sync: "often"}); err == nil || !strings.Contains(err.Error(), "often") {
		t.Errorf("the log is not told how to sync: %v", err)
	}
}
