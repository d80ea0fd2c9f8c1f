// Package landed knows the revisions of this project that landed on main, which are the builds that people may run:
// their logs are read by every later build, and each can be built again from the history, to run beside this one.
//
// A record says its version ([hindsight/pkg/codec.Newest]), a snapshot those of its record, its learner and its oracle.
// Within a version layouts may grow by optional keys, which older programs ignore. testdata/logs has whole embedded
// folders that earlier builds left behind, one for each kind of model: tests hold that they verify, and that this build
// goes on from them.
package landed

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Landing is a revision that landed.
type Landing struct {
	Revision string // its full name
	Date     string // year-month-day
}

// Short is the revision as people write it.
func (l Landing) Short() string { return l.Revision[:min(7, len(l.Revision))] }

//go:embed landings.txt
var landings string

// All returns the landings, oldest first.
func All() (all []Landing) {
	for line := range strings.Lines(landings) {
		if f := strings.Fields(line); len(f) == 2 && f[0] != "#" {
			all = append(all, Landing{f[0], f[1]})
		}
	}
	return all
}

// ErrNoHistory reports that a revision is not in the repository: a shallow clone, or no clone at all.
var ErrNoHistory = errors.New("the history of this source tree is not here")

// Build builds programs of a revision into the folder out, from the history of the
// repository that dir lies in. The revision's source is laid into out/src.
func Build(ctx context.Context, dir, revision, out string, programs ...string) error {
	if err := exec.CommandContext(ctx, "git", "-C", dir, "cat-file", "-e", revision+"^{tree}").Run(); err != nil {
		return fmt.Errorf("revision %s: %w: fetch it, for example by git fetch --unshallow", revision, ErrNoHistory)
	}
	top, err := exec.CommandContext(ctx, "git", "-C", dir, "rev-parse", "--show-toplevel").Output()
	if err != nil {
		return fmt.Errorf("repository of %s: %w", dir, err)
	}
	src, tree := filepath.Join(out, "src"), filepath.Join(out, "src.tar")
	if err := os.MkdirAll(src, 0o755); err != nil {
		return err
	}
	for _, c := range [][]string{{"git", "-C", strings.TrimSpace(string(top)), "archive", "-o", tree, revision},
		{"tar", "-xf", tree, "-C", src}} {
		if said, err := exec.CommandContext(ctx, c[0], c[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("source of %s: %s: %w: %s", revision, c[0], err, bytes.TrimSpace(said))
		}
	}
	args := []string{"build", "-buildvcs=false", "-o", out + string(filepath.Separator)}
	for _, p := range programs {
		args = append(args, "./cmd/"+p)
	}
	build := exec.CommandContext(ctx, "go", args...)
	build.Dir = src
	if text, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("go build of %s: %w\n%s", revision, err, text)
	}
	return nil
}
