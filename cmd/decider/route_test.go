package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestSDKRoute has the programs of the routing kit ask which model to call, call it, and report what it was worth.
func TestSDKRoute(t *testing.T) {
	var called []string
	models := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q struct{ Model string }
		if r.URL.Path != "/v1/chat/completions" || json.NewDecoder(r.Body).Decode(&q) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		called = append(called, q.Model)
		fmt.Fprint(w,
			`{"choices":[{"message":{"role":"assistant","content":"391"}}],"usage":{"completion_tokens":212}}`)
	}))
	defer models.Close()
	p := start(t, decider(t, "--log", "embedded:"+t.TempDir(), "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0",
		"--model", "../../compose/route/route.yaml")).ready()
	const dir = "../../compose/route"
	source, err := os.ReadFile(dir + "/route.ts")
	if err != nil {
		t.Fatal(err)
	}
	rounds := 0
	for _, c := range []struct {
		needs, start []string
		stdin        string
	}{
		{[]string{"python3", "-c", "import requests"}, []string{"python3", "route.py", "What is 17 * 23?"}, "0.9\n"},
		// Node 20 does not take TypeScript by its name.
		{[]string{"node", "--version"}, []string{"node", "--input-type=module", "-", "What is 17 * 23?", "0.9"},
			string(source)},
	} {
		if out, err := exec.CommandContext(t.Context(), c.needs[0], c.needs[1:]...).CombinedOutput(); err != nil {
			if os.Getenv("HINDSIGHT_SDKS") == "require" {
				t.Fatal(err, string(out))
			}
			continue
		}
		rounds++
		cmd := exec.CommandContext(t.Context(), c.start[0], c.start[1:]...)
		cmd.Dir, cmd.Stdin = dir, bytes.NewReader([]byte(c.stdin))
		cmd.Env = append(os.Environ(), "ROUTE="+p.http(), "MODELS="+models.URL+"/v1", "MODELS_KEY=k")
		out, err := cmd.CombinedOutput()
		if err != nil || len(called) != rounds || !strings.Contains(string(out), called[rounds-1]+" 391") {
			t.Errorf("%v: %v, %s; called %q", c.start, err, out, called)
		}
	}
	addr := p.admin()
	learned := fmt.Sprintf(`"observed": %d,`, rounds) // with all of its outcomes a round is over at once
	eventually(t, "the rounds are learned", func() bool {
		_, state := p.page(addr, "/state")
		return rounds == 0 || strings.Contains(state, learned)
	})
	p.stop(patience)
}
