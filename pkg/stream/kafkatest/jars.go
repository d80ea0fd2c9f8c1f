package kafkatest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Version of Kafka that .ci/kafka fetches.
const Version = "4.3.1"

// jars tell how to run a class of Kafka's.
type jars struct {
	java    string
	dir     string // of jars
	path    string // of classes
	archive string // of loaded classes, which makes starts faster; "": there is none
}

func required() bool { return os.Getenv("HINDSIGHT_KAFKA") == "require" }

// find finds the jars, or skips the test, or fails it if a real Kafka is required.
func find(t testing.TB) jars {
	t.Helper()
	j, missing := findJars()
	if missing == "" {
		return j
	}
	if required() {
		t.Fatal(missing)
	}
	t.Skip(missing)
	return j
}

func findJars() (j jars, missing string) {
	var err error
	if j.java, err = exec.LookPath("java"); err != nil {
		return j, "no java for a real Kafka: install Debian's openjdk-17-jdk-headless and maven, then run .ci/kafka"
	}
	dir := os.Getenv("HINDSIGHT_KAFKA_LIBS")
	if dir == "" {
		cache := os.Getenv("XDG_CACHE_HOME")
		if cache == "" {
			cache = filepath.Join(os.Getenv("HOME"), ".cache")
		}
		dir = filepath.Join(cache, "hindsight", "kafka-"+Version)
	}
	found, _ := filepath.Glob(filepath.Join(dir, "*.jar")) // sorted, as .ci/kafka does for the archive
	if _, err := os.Stat(filepath.Join(dir, "complete")); err != nil || len(found) == 0 {
		return j, "no jars of Kafka " + Version + " in " + dir + ": run .ci/kafka, which fetches them"
	}
	j.dir, j.path = dir, strings.Join(found, ":")
	if archive := filepath.Join(dir, "classes.jsa"); exists(archive) {
		j.archive = archive
	}
	return j, ""
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// command returns the command that runs a class.
func (j jars) command(options []string, class string, args ...string) *exec.Cmd {
	a := append([]string{"-cp", j.path, "-XX:+UseSerialGC"}, options...)
	if j.archive != "" {
		a = append(a, "-XX:SharedArchiveFile="+j.archive)
	}
	cmd := exec.Command(j.java, append(append(a, class), args...)...)
	cmd.SysProcAttr = childOf()
	return cmd
}

// quick are options for what runs for a short time.
var quick = []string{"-XX:TieredStopAtLevel=1"}
