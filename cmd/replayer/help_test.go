package main

import (
	"regexp"
	"strings"
	"testing"
)

// helpFlags are the flags that help shows, but for those of every program.
func helpFlags(t *testing.T, args ...string) (names []string, text string) {
	t.Helper()
	got := execute(t.Context(), args...)
	if got.code != 0 {
		t.Fatalf("%v: exit code %d: %s", args, got.code, got.stderr)
	}
	text, _, _ = strings.Cut(got.stdout, "Global Flags:")
	for _, m := range regexp.MustCompile(`(?m)^ +(?:-h, )?--([a-z-]+)`).FindAllStringSubmatch(text, -1) {
		names = append(names, m[1])
	}
	return names, text
}

// TestHelp: the first screen of a verb's help has at most 25 flags, in groups; the rest is behind
// --help-all. Verbs that reach servers have the same flags for that.
func TestHelp(t *testing.T) {
	servers := ""
	for _, verb := range strings.Fields("backtest inject teach window worst fit convert verify explain tail " +
		"paper list") {
		first, text := helpFlags(t, verb, "--help")
		if len(first) > 25 {
			t.Errorf("%s: %d flags", verb, len(first))
		}
		all := first
		if strings.Contains(text, "--help-all") {
			if all, text = helpFlags(t, verb, "--help-all"); len(all) <= len(first) {
				t.Errorf("%s: --help-all shows %d flags, --help %d", verb, len(all), len(first))
			}
		}
		if _, of, ok := strings.Cut(text, "Servers:\n"); ok {
			if of = regexp.MustCompile(`\s+`).ReplaceAllString(of, " "); servers == "" {
				servers = of
			}
			if of != servers {
				t.Errorf("%s: flags of servers\n%s\nwant\n%s", verb, of, servers)
			}
		}
	}
	_, text := helpFlags(t, "backtest", "--help-all")
	at := -1
	for _, group := range groups {
		if i := strings.Index(text, "\n"+group+":\n"); i <= at {
			t.Errorf("%s is not in its place:\n%s", group, text)
		} else {
			at = i
		}
	}
	if got := execute(t.Context(), "fit", "--window", "5"); got.code != 2 || !strings.Contains(got.stderr,
		"unknown flag") {
		t.Errorf("fit has no window: %+v", got)
	}
}
