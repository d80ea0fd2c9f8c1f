package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

// TestOnlyJSON holds that whoever asks for JSON reads nothing else on standard error, and
// durations with their units.
func TestOnlyJSON(t *testing.T) {
	talk := func(_ context.Context, env *Env, _ *cobra.Command) error {
		env.Logger.Info("slow", "took", 1500*time.Millisecond)
		fmt.Fprint(env.Stderr, "first line\nsecond ")
		fmt.Fprintln(env.Stderr, "line")
		return errors.New("boom \u009b2J")
	}
	for _, c := range []struct {
		args string
		vars map[string]string
		code int
		says []string
	}{
		{"work --log-format json", nil, Failed, []string{`"took":"1.5s"`, `"msg":"first line"`, `"msg":"second line"`,
			`"msg":"boom \u009b2J"`}},
		{"work", map[string]string{"HINDSIGHT_LOG_FORMAT": "json"}, Failed, []string{`"level":"ERROR"`,
			`"exit_code":1`}},
		{"work --bogus --log-format=json", nil, WrongUsage, []string{`"msg":"unknown flag: --bogus"`}},
		{"wrok --log-format json", nil, WrongUsage, []string{"wrok"}},
		{"work x", map[string]string{"HINDSIGHT_LOG_FORMAT": "json"}, WrongUsage, []string{`unknown command`}},
	} {
		got := try(t, c.vars, talk, strings.Fields(c.args)...)
		for line := range strings.Lines(got.stderr) {
			if !json.Valid([]byte(line)) {
				t.Errorf("%s: not JSON: %q", c.args, line)
			}
		}
		for _, want := range c.says {
			if got.code != c.code || !strings.Contains(got.stderr, want) {
				t.Errorf("%s: exit code %d, %s; want %s", c.args, got.code, got.stderr, want)
			}
		}
	}
	if got := try(t, map[string]string{"HINDSIGHT_LOG_FORMAT": "json"}, talk, "work", "--log-format",
		"text"); !strings.Contains(got.stderr, "demo: boom") {
		t.Errorf("text: %s", got.stderr)
	}
}

// TestVisible holds that no text makes a terminal do anything, wherever it is cut.
func TestVisible(t *testing.T) {
	const text = "a\u009b31m \u202eb\u2066c\x1b[2J\x9b\x7f\u061c ünchanged 日本\n\tend\r"
	const want = `a\u009b31m \u202eb\u2066c\u001b[2J\u009b\u007f\u061c ünchanged 日本` + "\n\tend\r"
	for cut := range len(text) {
		var b bytes.Buffer
		v := &Visible{w: &b}
		for _, part := range []string{text[:cut], text[cut:]} {
			if n, err := v.Write([]byte(part)); n != len(part) || err != nil {
				t.Fatal(n, err)
			}
		}
		if b.String() != want {
			t.Errorf("cut at %d: %q", cut, b.String())
		}
	}
	if w := (&Visible{w: os.Stdout}); File(w) != os.Stdout || Raw(w, false) != os.Stdout || Raw(w, true) != w {
		t.Error("a file is not found")
	}
}

// TestVisibleEverywhere holds that results, the log and errors go through it.
func TestVisibleEverywhere(t *testing.T) {
	const bad = "\u009b\u202e"
	got := try(t, nil, func(_ context.Context, env *Env, c *cobra.Command) error {
		fmt.Fprintln(env.Stdout, "result", bad)
		fmt.Fprintln(c.OutOrStdout(), "result", bad)
		env.Logger.Info("log", "name", bad)
		return errors.New("error " + bad)
	}, "work")
	if all := got.stdout + got.stderr; strings.ContainsAny(all, bad) || strings.Count(all, `\u009b`) != 4 {
		t.Errorf("%q", all)
	}
}
