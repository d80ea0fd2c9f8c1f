package daemon

import (
	"fmt"
	"os"
	"runtime/debug"
)

// built is the revision where no history is at hand to build from, in containers say. The
// linker sets it: -ldflags="-X hindsight/internal/daemon.built=REVISION".
var built string

// Version says which build this is: the module's version or the revision that it was built from, and the Go version.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return version(info, built)
}

// version prefers the revision that the go command found to what it was told.
func version(info *debug.BuildInfo, revision string) string {
	v := info.Main.Version
	if v == "" || v == "(devel)" {
		v = "devel"
	}
	dirty := ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = ", modified"
		}
	}
	if revision == "" {
		return fmt.Sprintf("%s (%s)", v, info.GoVersion)
	}
	return fmt.Sprintf("%s (revision %s%s, %s)", v, revision[:min(12, len(revision))], dirty, info.GoVersion)
}

// Owner names this process, which runs a program, for people who look at the log.
func Owner(program string) string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s@%s/%d", program, host, os.Getpid())
}
