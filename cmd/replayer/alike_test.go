package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"

	"hindsight/internal/daemon"
)

// given runs the command with text on standard input.
func given(t *testing.T, text string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, log bytes.Buffer
	env := &daemon.Env{Args: args, Getenv: func(string) string { return "" }, Stdin: strings.NewReader(text),
		Stdout: &out, Stderr: &log}
	code = daemon.Run(t.Context(), env, command(env))
	return code, out.String(), log.String()
}

// convert reads a file, a folder, standard input and named columns in the same way as backtest, whether the
// format is named, told to be found or left out: the accounts are the same.
func TestConvertReadsAlike(t *testing.T) {
	dir, text := t.TempDir(), rankLog()
	at := func(name string, b []byte) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	half := strings.Index(text, "\n{\"_label_cost\":0,") + 1
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = z.Write([]byte(text[half:]))
	z.Close()
	at("folder/1.json", []byte(text[:half]))
	at("folder/sub/2.gz", zipped.Bytes())
	file, table := at("log.json", []byte(text)), at("log.csv", []byte(banditText))
	columns := []string{"--action-column", "who", "--reward-column", "paid"}
	for _, c := range []struct {
		data string
		args []string
	}{
		{file, nil}, {file, []string{"--format", "auto"}}, {file, []string{"--format", "dsjson"}},
		{filepath.Join(dir, "folder"), nil}, {filepath.Join(dir, "folder"), []string{"--format", "auto"}},
		{"-", nil}, {"-", []string{"--format", "auto"}}, {"-", []string{"--format", "dsjson"}},
		{table, columns}, {table, append([]string{"--format", "auto"}, columns...)},
		{table, append([]string{"--format", "bandit"}, columns...)},
	} {
		var want struct{ Intake map[string]any }
		code, out, log := given(t, text, append([]string{"backtest", "--data", c.data, "--json", "--policy", "uniform",
			"--bootstrap", "0"}, c.args...)...)
		if code != 0 && c.data == table { // no propensities, and so no policies
			code, out, log = given(t, text, append([]string{"backtest", "--data", c.data, "--json"}, c.args...)...)
		}
		if err := json.Unmarshal([]byte(out), &want); code != 0 || err != nil {
			t.Fatalf("%s %v: exit code %d: %v %s", c.data, c.args, code, err, log)
		}
		var got map[string]any
		code, out, log = given(t, text, append([]string{"convert", c.data, "--json"}, c.args...)...)
		if err := json.Unmarshal([]byte(out), &got); code != 0 || err != nil {
			t.Fatalf("%s %v: exit code %d: %v %s", c.data, c.args, code, err, log)
		}
		for _, key := range []string{"format", "files", "bytes", "read", "events", "duplicates", "dangling", "skipped",
			"malformed"} {
			if got[key] != want.Intake[key] || got[key] == nil {
				t.Errorf("%s %v: %s is %v, and for backtest %v", c.data, c.args, key, got[key], want.Intake[key])
			}
		}
	}
}

// Every verb that reads a log refuses the same formats, with the same words.
func TestFormatsRefusedAlike(t *testing.T) {
	dir := t.TempDir()
	data, model := writeFile(t, "log.csv", banditText), writeFile(t, "m.yaml", "name: shop\nversion: 2\nwarm: keep\n")
	verbs := map[string][]string{"backtest": {"--data", data}, "inject": {"--data", data}, "window": {"--data", data},
		"worst": {"--data", data}, "fit": {"--data", data}, "convert": {data},
		"teach": {"--data", data, "--model", model, "--log", "embedded:" + filepath.Join(dir, "log")}}
	for verb, args := range verbs {
		for _, c := range []struct {
			args []string
			want string
		}{
			{[]string{"--format", "xml"}, `--format "xml": expected auto, multiclass, bandit, obd, or one of dsjson`},
			{[]string{"--format", "dsjson", "--action-column", "who"},
				"--format dsjson: columns are named for --format bandit only"},
			{[]string{"--format", "bandit"}, "--action-column"},
			{[]string{"--mapping", filepath.Join(dir, "none.yaml")}, "none.yaml"},
		} {
			r := execute(t.Context(), append(append([]string{verb}, args...), c.args...)...)
			if r.code == 0 || !strings.Contains(r.stderr, c.want) {
				t.Errorf("%s %v: exit code %d: %s, want %s", verb, c.args, r.code, r.stderr, c.want)
			}
		}
	}
}
