package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
)

// schemathesisConfig turns one check off, and relaxes another: which contexts a model takes, and which requests of a
// batch fail, no schema can tell.
const schemathesisConfig = `
[checks]
positive_data_acceptance.enabled = false
negative_data_rejection.expected-statuses = ["4xx", 503]
[[operations]]
include-path = "/v1/batch"
checks.negative_data_rejection.enabled = false
`

// TestSDKSchemathesis holds that openapi.yaml is OpenAPI 3.1, and that a client that makes up requests from it gets no
// answer that it does not describe, and no 500. HINDSIGHT_TEST_SEED is the seed of the requests.
func TestSDKSchemathesis(t *testing.T) {
	dir := t.TempDir()
	python := func(args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "python3", args...)
		cmd.Dir = dir // it writes what it did there
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := python("-c", "import schemathesis"); err != nil {
		if os.Getenv("HINDSIGHT_SDKS") == "require" {
			t.Fatal(out)
		}
		t.Skip("schemathesis is not installed: .ci/sdks does it")
	}
	config := filepath.Join(dir, "schemathesis.toml")
	if err := os.WriteFile(config, []byte(schemathesisConfig), 0o600); err != nil {
		t.Fatal(err)
	}
	p := start(t, decider(t, "--log", "embedded:"+filepath.Join(dir, "log"), "--listen", "127.0.0.1:0")).ready()
	url := p.http() + "/openapi.yaml"
	if out, err := python("-c", "import schemathesis, sys; schemathesis.openapi.from_url(sys.argv[1]).validate()",
		url); err != nil {
		t.Errorf("it is no OpenAPI: %s", out)
	}
	out, err := python("-m", "schemathesis.cli", "--config-file", config, "run", url, "--phases", "coverage,fuzzing",
		"--max-time", strconv.Itoa(long(6, 300)), "--seed", strconv.FormatUint(testSeed(t), 10),
		"--continue-on-failure",
		"--no-color")
	if err != nil {
		t.Error(out)
	} else {
		t.Log(out)
	}
	p.stop(patience)
}
