package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestSDKOpenFeature has the OFREP providers of OpenFeature for Python and for Node evaluate a flag and report rewards,
// and holds that what they get is what the decider decides and learns.
func TestSDKOpenFeature(t *testing.T) {
	dir := t.TempDir()
	shop := filepath.Join(dir, "shop.yaml")
	const text = "name: shop\nactions: [blue, red]\nreward: {min: 0, max: 1}\n"
	if err := os.WriteFile(shop, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p := start(t, decider(t, "--log", "embedded:"+filepath.Join(dir, "log"), "--listen", "127.0.0.1:0", "--model",
		shop)).ready()
	learned := func() (n int64) {
		got, err := http.Get(p.http() + "/v1/certificate")
		if err != nil {
			t.Fatal(err)
		}
		defer got.Body.Close()
		var page struct {
			LearnedThrough int64 `json:"learned_through"`
		}
		if b, err := io.ReadAll(got.Body); err != nil || json.Unmarshal(b, &page) != nil {
			t.Fatalf("%v %s", err, b)
		}
		return page.LearnedThrough
	}
	want := int64(0)
	for _, cmd := range [][]string{
		{"python3", "-c", "import openfeature.contrib.provider.ofrep", "ofrep.py"},
		{"node", "-e", "require('@openfeature/ofrep-provider')", "ofrep.js"},
	} {
		t.Run(cmd[0], func(t *testing.T) {
			if err := exec.CommandContext(t.Context(), cmd[0], cmd[1:3]...).Run(); err != nil {
				if os.Getenv("HINDSIGHT_SDKS") == "require" {
					t.Fatal(err)
				}
				t.Skip("the provider is not installed: .ci/sdks does it")
			}
			evaluate(t, exec.CommandContext(t.Context(), cmd[0], filepath.Join("testdata", cmd[3]), p.http()),
				learned() > 0)
			want += 20
			eventually(t, "the rewards are learned", func() bool { return learned() == want })
		})
	}
	p.stop(patience)
}

// evaluate runs a client and checks what it got: mostly blue once that was learned.
func evaluate(t *testing.T, client *exec.Cmd, learned bool) {
	t.Helper()
	var said bytes.Buffer
	client.Stderr = &said
	out, err := client.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, said.Bytes())
	}
	var got struct {
		Evaluations []struct {
			Value, Variant, Reason, ID string
			Propensity                 float64
			Epoch                      int64
		}
		Other, Nobody string
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	blue := 0.0
	for _, e := range got.Evaluations {
		if e.Value != e.Variant || e.Reason != "SPLIT" || !strings.Contains(e.ID, "@") || e.Propensity <= 0 ||
			e.Propensity >= 1 || e.Epoch == 0 {
			t.Errorf("%+v", e)
		}
		if e.Variant == "red" {
			e.Propensity = 1 - e.Propensity
		}
		blue += e.Propensity / 20
	}
	if learned && blue < 0.6 {
		t.Errorf("blue, the best, has probability %v", blue)
	}
	if len(got.Evaluations) != 20 || got.Other != "FLAG_NOT_FOUND" ||
		got.Nobody != "TARGETING_KEY_MISSING" {
		t.Errorf("%+v", got)
	}
}
