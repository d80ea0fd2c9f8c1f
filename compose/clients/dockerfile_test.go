package clients

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// instruction is a line of a Dockerfile.
type instruction struct{ word, rest string }

// stages reads a Dockerfile as the instructions of each stage, by name.
func stages(t *testing.T, path string) map[string][]instruction {
	t.Helper()
	out, stage := map[string][]instruction{}, ""
	for line := range strings.Lines(contents(t, path)) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if word == "" || strings.HasPrefix(word, "#") {
			continue
		}
		if word == "FROM" {
			_, stage, _ = strings.Cut(rest, " AS ")
		}
		out[stage] = append(out[stage], instruction{word, rest})
	}
	return out
}

// TestDockerfiles holds that the image of a release is that of the source but for where
// its programs are from.
func TestDockerfiles(t *testing.T) {
	source, release := stages(t, "../Dockerfile"), stages(t, "../Dockerfile.release")
	if !slices.Equal(source["nats"], release["nats"]) || len(source["nats"]) < 3 {
		t.Errorf("NATS servers: %v and %v", source["nats"], release["nats"])
	}
	own := func(all []instruction) []instruction {
		return slices.DeleteFunc(slices.Clone(all), func(i instruction) bool {
			return i.word == "COPY" || i.rest == "decider --version"
		})
	}
	var copied []string
	for _, i := range source["build"] {
		if args := strings.Fields(i.rest); i.word == "COPY" {
			copied = append(copied, args[:len(args)-1]...)
		}
	}
	for dir := range strings.FieldsSeq(run(t, "go", "list", "-deps", "-f",
		`{{with .Module}}{{if .Main}}{{$.ImportPath}}{{end}}{{end}}`, "../../cmd/...", "./load", "../licences")) {
		if !slices.ContainsFunc(copied, func(c string) bool { return strings.HasPrefix(dir+"/", "hindsight/"+c+"/") }) {
			t.Errorf("%s is built from and not copied", dir)
		}
	}
	if a, b := own(source["hindsight"]), own(release["hindsight"]); !slices.Equal(a, b) || len(a) < 4 {
		t.Errorf("images: %v and %v", a, b)
	}
}

// TestDockerfileBuilds does what the Dockerfile does before its last stages, without a
// container engine: with the folders that it copies and no history.
func TestDockerfileBuilds(t *testing.T) {
	if os.Getenv("HINDSIGHT_LONG") == "" {
		t.Skip("builds all programs: HINDSIGHT_LONG=1 runs it")
	}
	src, out := t.TempDir(), t.TempDir()
	const revision = "0123456789abcdef"
	env := "CGO_ENABLED=0 REVISION=" + revision
	for _, i := range stages(t, "../Dockerfile")["build"] {
		switch i.word {
		case "FROM", "WORKDIR", "ENV", "ARG":
		case "COPY":
			args := strings.Fields(i.rest)
			to := filepath.Join(src, args[len(args)-1])
			for _, from := range args[:len(args)-1] {
				run(t, "sh", "-ec", "mkdir -p "+filepath.Dir(to)+" && cp -r "+filepath.Join(root, from)+" "+to)
			}
		case "RUN":
			run(t, "sh", "-ec", "cd "+src+"; export "+env+"\n"+strings.ReplaceAll(i.rest, "/out/", out+"/"))
		default:
			t.Errorf("what does %s?", i.word)
		}
	}
	for _, program := range []string{"decider", "feedback-joiner", "replayer"} {
		if said := run(t, filepath.Join(out, "bin", program), "--version"); !strings.Contains(said,
			"revision "+revision[:12]) {
			t.Errorf("%s --version: %s", program, said)
		}
	}
	run(t, filepath.Join(out, "bin", "load"), "-h")
	if text := contents(t, filepath.Join(out, "LICENCES.txt")); !regexp.MustCompile(
		`(?m)^github.com/segmentio/kafka-go +v`).MatchString(text) {
		t.Errorf("licences: %.200s", text)
	}
}
