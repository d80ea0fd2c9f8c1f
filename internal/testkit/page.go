// Package testkit helps tests.
package testkit

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"hindsight/internal/daemon"
)

// Page holds that a page is what the code says, after it has written it where update asks for that.
func Page(t testing.TB, update bool, path, want string) {
	t.Helper()
	if update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != want {
		t.Errorf("%s is not what the code says (%v); write it with: go test -run '^%s$' -update", path, err, t.Name())
	}
}

// Block returns what a page shows behind a mark, whatever its language.
func Block(t testing.TB, page, mark string) string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "<!-- "+mark+" -->\n```")
	_, rest, _ = strings.Cut(rest, "\n") // its language
	out, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatalf("%s has no block marked %q", page, mark)
	}
	return out
}

// Flags returns the page of a program's help, of each of its commands.
func Flags(t testing.TB, program string, command func(*daemon.Env) *cobra.Command, commands ...string) string {
	t.Helper()
	var page strings.Builder
	page.WriteString("# " + program + "\n\nThe help of the program and its commands. Flags may stand in the " +
		"environment, too: `HINDSIGHT_SEED_FILE` for\n`--seed-file`. This page is made by `go test ./cmd/" + program +
		" -run Reference -update`.\n")
	for _, c := range append([]string{""}, commands...) {
		help := func(flag string) (string, int) {
			var out bytes.Buffer
			env := &daemon.Env{Args: append(strings.Fields(c), flag), Getenv: func(string) string { return "" },
				Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out}
			code := daemon.Run(t.Context(), env, command(env))
			return out.String(), code
		}
		text, code := help("--help-all")
		if code != 0 {
			text, code = help("--help")
		}
		if code != 0 {
			t.Errorf("%s %s --help: exit code %d: %s", program, c, code, text)
		}
		text, _, _ = strings.Cut(text, "\nGlobal Flags:")
		page.WriteString("\n## " + strings.TrimSpace(program+" "+c) + "\n\n```\n" + strings.TrimSpace(text) + "\n```\n")
	}
	return page.String()
}
