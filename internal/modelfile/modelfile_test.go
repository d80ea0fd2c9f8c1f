package modelfile

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hindsight/internal/follow"
	"hindsight/internal/model"
	"hindsight/pkg/codec"
)

// The start of a program, and whoever has the file read again, is warned of what in it is
// seldom meant.
func TestWarningsAreLogged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "shop.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	write("name: shop\nexplore: 0.05\nwindow: 10\n")
	s, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	Announce(logger, s)
	for _, want := range []string{"shop.yaml:2:10: explore: 0.05 is no ε", "shop.yaml:3:9: window: 10 means rounds"} {
		if strings.Count(log.String(), want) != 1 {
			t.Errorf("%s", &log)
		}
	}
	if n := strings.Count(log.String(), "level=WARN"); n != 2 {
		t.Errorf("%d warnings: %s", n, &log)
	}
	log.Reset()
	if _, err := Reload(logger, path)(); err != nil || strings.Count(log.String(), "level=WARN") != 2 {
		t.Errorf("%v, %s", err, &log)
	}
	log.Reset()
	write("name: shop\nexplore: balanced\nwindow: 10m\n")
	if s, err = Load(path); err != nil {
		t.Fatal(err)
	}
	if Announce(logger, s); strings.Contains(log.String(), "level=WARN") {
		t.Errorf("%s", &log)
	}
}

// TestSources holds what is read of a model file and the files beside it, and what the next version keeps that judges
// other candidates: the learner, with its file as it was.
func TestSources(t *testing.T) {
	path := filepath.Join(t.TempDir(), "shop.yaml")
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(filepath.Dir(path), name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	lists := func(then string) string {
		return `{"hindsight_policies":1,"actions":["a","b"]}` + "\n" + `{"rules":[{"then":"` + then + `"}]}`
	}
	write("ours", lists("a"))
	write("theirs", lists("b"))
	const experts = "learner: {kind: exp4dale, policies: ours}\ncandidates: [{policies: theirs}]\n"
	var s *follow.Source
	for _, c := range []struct {
		text    string
		version int64
		mode    codec.Mode
		keep    bool
		order   []string
		model   string // has this
		earlier string // as programs before oracles had versions read it; "": the same
	}{
		{"version: 3\nmode: shadow\nwarm: keep\n", 3, codec.Shadow, true, nil, "kind: auto, version: 2",
			"kind: auto, beta: 0"},
		{"mode: paused\noracle: {version: 1}\norder: fifo\n", 1, codec.Paused, false, nil,
			"kind: linear, beta: 0, lambda: 1", ""},
		{experts, 1, codec.Live, false, []string{"ours", "theirs"}, "kind: exp4dale", "kind: exp4dale"},
	} {
		write("shop.yaml", "name: shop\n"+c.text)
		var err error
		if s, err = Load(path); err != nil {
			t.Fatalf("%s: %v", c.text, err)
		}
		if s.Name != "shop" || s.Version != c.version || s.Mode != c.mode || s.Warm.Keep != c.keep ||
			!slices.Equal(s.Order, c.order) || !strings.Contains(string(s.Model), c.model) ||
			(s.Earlier == nil) != (c.earlier == "") || !strings.Contains(string(s.Earlier), c.earlier) ||
			strings.Contains(string(s.Model)+string(s.Earlier), "mode:") {
			t.Errorf("%s: %s, version %d, %s, %v of files %q\n%s\n%s", c.text, s.Name, s.Version, s.Mode, s.Warm,
				s.Order, s.Model, s.Earlier)
		}
	}
	files := func(s *follow.Source, ours, theirs string) {
		t.Helper()
		if len(s.Files) != 2 || string(s.Files["ours"]) != lists(ours) || string(s.Files["theirs"]) != lists(theirs) {
			t.Errorf("files %s", s.Files)
		}
	}
	files(s, "a", "b")
	write("ours", lists("b"))
	write("theirs", lists("a"))
	rejudge := Rejudge(path)
	next, err := rejudge(s, []byte(`["uniform",{"policies":"theirs"}]`), []byte("null"))
	if err != nil || next.Version != 2 || !next.Warm.Keep || !slices.Equal(next.Order, s.Order) {
		t.Fatalf("%+v, %v", next, err)
	}
	files(next, "a", "a")
	for of, candidates := range map[*follow.Source]string{{Model: []byte("nonsense")}: `["uniform"]`,
		s: `[{"policies":"none"}]`, {Name: s.Name, Model: s.Model, Files: s.Files}: "{}"} {
		if got, err := rejudge(of, []byte(candidates), []byte("null")); err == nil {
			t.Errorf("%s: %+v", candidates, got)
		}
	}
	for _, name := range []string{"theirs", "ours", "shop.yaml"} {
		write(name, "nonsense")
		if _, err := Load(path); err == nil || !strings.Contains(err.Error(), name+":1:") {
			t.Errorf("%s: %v", name, err)
		}
	}
	ours := model.Default()
	ours.Mode = codec.Paused
	if s, err = Source(ours, nil); err != nil || s.Mode != codec.Paused || ours.Mode != codec.Paused {
		t.Errorf("a model is %v after it was announced, %v", ours.Mode, err)
	}
	s, err = Load("")
	if err != nil || s.Name != model.Default().Name || s.Version != 1 || s.Mode != codec.Live {
		t.Errorf("without a file: %v", err)
	}
}
