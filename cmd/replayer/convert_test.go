package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const convertLog = `{"_label_cost":-1,"EventId":"e","Timestamp":"2021-02-04T16:31:29.2460000Z","a":[2,1],"p":[0.25,` +
	`0.75],"c":{"u":{"x":1},"_multi":[{"_tag":"l"},{"_tag":"r"}]}}
{"_label_cost":-1,"EventId":"e","Timestamp":"2021-02-04T16:31:29.2460000Z","a":[2,1],"p":[0.25,0.75],` +
	`"c":{"u":{"x":1},"_multi":[{"_tag":"l"},{"_tag":"r"}]}}
{"c":
[CHECKPOINT INFO LINE]
`

func TestConvert(t *testing.T) {
	dir := t.TempDir()
	in, out, rejects := filepath.Join(dir, "in.json"), filepath.Join(dir, "out.jsonl"), filepath.Join(dir,
		"rejects.jsonl")
	if err := os.WriteFile(in, []byte(convertLog), 0o644); err != nil {
		t.Fatal(err)
	}
	r := execute(t.Context(), "convert", in, "--to", "jsonl", "--out", out, "--rejects", rejects, "--json")
	var a struct {
		Read, Events, Duplicates, Skipped, Malformed int64
		Errors                                       []string `json:"first_malformed"`
	}
	if err := json.Unmarshal([]byte(r.stdout), &a); r.code != 0 || err != nil {
		t.Fatal(r, err)
	}
	if a.Read != 4 || a.Events != 1 || a.Duplicates != 1 || a.Skipped != 1 || a.Malformed != 1 || len(a.Errors) != 1 ||
		!strings.Contains(a.Errors[0], in+":3:") {
		t.Errorf("%s", r.stdout)
	}
	const want = `{"id":"e","features":{"u.x":1},"actions":["l","r"],"time":"2021-02-04T16:31:29.246Z","action":"r",` +
		`"propensity":0.25,"propensities":{"l":0.75,"r":0.25},"reward":1}` + "\n"
	if b, _ := os.ReadFile(out); string(b) != want {
		t.Errorf("%s", b)
	}
	if b, _ := os.ReadFile(rejects); strings.Count(string(b), "\n") != 3 {
		t.Errorf("%s", b)
	}
	if r := execute(t.Context(), "convert", in, "--strict"); r.code != 1 || !strings.Contains(r.stderr, in+":3:") {
		t.Errorf("%+v", r)
	}
	if r := execute(t.Context(), "convert", in, "--to", "csv"); r.code != 2 {
		t.Errorf("%+v", r)
	}
}
