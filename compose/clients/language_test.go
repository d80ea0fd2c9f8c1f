package clients

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The words of a dialect that the pages no longer speak, each with what to write.
var dialect = map[string]string{
	`\b(whoever|nobody|somebody|anybody)\b`:                               "name the actor",
	`\bwho (asks|looks|reads|listens|is there|goes on)\b`:                 "name the actor",
	`\bwhat is (there|kept|outstanding|missing is|over|asked)\b`:          "use a noun",
	`\b(but for|nothing but|not even that|next to nothing|but where)\b`:   "except, only, little",
	`\b(goes|go|going|went|gone) on (by|from|with|as|anew)\b|\bgoes on\b`: "continue, recover",
	`\b(ask|asks|asked) again\b`:                                          "retry",
	`\b(is|are|be|was) told\b|\btold (of|by|from)\b`:                      "acknowledged, reported",
	`\banew\b|\blikewise\b|\bof weight\b|\bthat is well\b`:                "again, the same",
	`\bchance has it\b|\bhowever often\b`:                                 "significantly",
	`\bmend(s|ed|ing)?\b`:                                                 "fix, correct",
	`\b(limbo|parcel|crew|pulse)\b`:                                       "a noun of the domain",
}

var (
	blocks     = regexp.MustCompile("(?s)```.*?```|<!--.*?-->")
	inline     = regexp.MustCompile("`[^`\n]*`")
	target     = regexp.MustCompile(`\]\([^)]*\)`)
	sentence   = regexp.MustCompile(`[.!?](\s|$)|\n\n|\n[|#*-]|\|`)
	nameOfTest = regexp.MustCompile(`\b(Test|Benchmark|Fuzz)[A-Z]\w+`)
)

// faults returns what a page for users does wrong: name is its path from the root of the project.
func faults(name, text string) (out []string) {
	say := func(format string, args ...any) { out = append(out, name+": "+fmt.Sprintf(format, args...)) }
	for _, m := range nameOfTest.FindAllString(text, -1) {
		say("the name of a test, %s: it belongs in internal/rules/proofs.md", m)
	}
	made := filepath.Dir(name) == "docs/reference" && filepath.Base(name) != "README.md"
	if len(text) > 9000 && !made {
		say("%d bytes: split it, 9,000 are the most", len(text))
	}
	prose := text // where help texts stand in blocks
	if !made {
		prose = target.ReplaceAllString(inline.ReplaceAllString(blocks.ReplaceAllString(text, ""), "x"), "")
	}
	for words, instead := range dialect {
		for _, m := range regexp.MustCompile("(?i)"+words).FindAllString(prose, -1) {
			say("%q: %s", m, instead)
		}
	}
	if name == "README.md" {
		if n := strings.Count(text, "\n"); n > 150 {
			say("%d lines, 150 are the most", n)
		}
		if _, block, _ := strings.Cut(text, "```"); !strings.HasPrefix(block, "sh\ngo run ./cmd/replayer inject ") {
			say("the first block of code is not the two commands")
		}
	}
	if name == "README.md" || name == "docs/quickstart.md" {
		for _, s := range sentence.Split(prose, -1) {
			if n := len(strings.Fields(s)); n > 35 {
				say("a sentence of %d words: %.60s …", n, strings.TrimSpace(s))
			}
		}
	}
	return out
}

// TestLanguage holds that pages for users are short and in plain English, and finds planted faults.
func TestLanguage(t *testing.T) {
	for _, page := range pages(t, root) {
		name, err := filepath.Rel(root, page)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range faults(name, contents(t, page)) {
			t.Error(f)
		}
	}
	good := "Hindsight\n\n```sh\ngo run ./cmd/replayer inject   # whoever\n```\n\nThe client retries.\n"
	if f := faults("README.md", good); f != nil {
		t.Errorf("a good page: %q", f)
	}
	for _, planted := range []string{"Whoever looks sees it.", "Nobody is told.", "All, but for one.", "It goes on.",
		"Ask again later.", "More than chance has it.", "Mend the disk.", "It begins anew.", "The crew waits.",
		"As `x` and TestPlanted show.", strings.Repeat("word ", 36) + ".", strings.Repeat("line\n", 151),
		strings.Repeat("A sentence. ", 800)} {
		if f := faults("README.md", good+planted); len(f) == 0 {
			t.Errorf("not found: %.40s", planted)
		}
	}
	if faults("README.md", "```sh\ndecider\n```\n") == nil || faults("docs/reference/http.md", "As "+
		"TestX says.") != nil || faults("docs/reference/http.md", "As TestXy says.") == nil {
		t.Error("the first block of code, or a test on a page that is made, is not seen")
	}
}
