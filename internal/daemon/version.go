package daemon

import (
	"fmt"
	"runtime/debug"
)

// Version says which build this is: the module's version or the revision that it
// was built from, and the Go version.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return version(info)
}

func version(info *debug.BuildInfo) string {
	v := info.Main.Version
	if v == "" || v == "(devel)" {
		v = "devel"
	}
	revision, dirty := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = ", modified"
		}
	}
	if revision == "" {
		return fmt.Sprintf("%s (%s)", v, info.GoVersion)
	}
	return fmt.Sprintf("%s (revision %s%s, %s)", v, revision, dirty, info.GoVersion)
}
