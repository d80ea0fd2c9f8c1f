// Command mutants plants faults, one at a time, and runs the tests of the package: a fault that no test
// finds is printed. Some are written by hand, in planted.txt, the others are made by rule and drawn with
// a seed. The source tree is not written to.
//
//	go run ./internal/testkit/mutants --seed 1 --each 10 ./internal/verify ./pkg/stream/kafka/open.go
//	go run ./internal/testkit/mutants ./internal/join,./internal/service    # with the tests of both
//	go run ./internal/testkit/mutants --planted internal/testkit/mutants/planted.txt
package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// equivalent lists the faults of the rules after which the program does the same: they are not planted.
//
//go:embed equivalent.txt
var equivalent string

func main() {
	seed := pflag.Uint64("seed", 1, "seed of the choice")
	each := pflag.Int("each", 10, "faults in each package")
	planted := pflag.String("planted", "", "file of faults written by hand, planted first")
	only := pflag.String("only", "", "plant only the faults written by hand whose names contain this text")
	limit := pflag.Duration("limit", 3*time.Minute, "of one run of tests; a fault that makes it longer is found")
	short := pflag.Bool("short", false, "run the tests with -short")
	pflag.Parse()
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	r := &runner{dir: dir, limit: *limit, short: *short, out: os.Stdout}
	err = r.runAll(*planted, *only, pflag.Args(), *seed, *each)
	if err = errors.Join(err, os.RemoveAll(dir)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	fmt.Printf("seed %d: %d faults planted, %d found, %d alive\n", *seed, r.planted, r.planted-r.alive, r.alive)
	if r.alive > 0 {
		os.Exit(1)
	}
}

// runner plants faults and counts those that no test finds.
type runner struct {
	dir   string
	limit time.Duration
	short bool
	out   io.Writer

	planted, alive int
}

func (r *runner) runAll(planted, only string, packages []string, seed uint64, each int) error {
	same, err := readEquivalent(equivalent)
	if err != nil {
		return err
	}
	if planted != "" {
		byHand, err := readPlanted(planted)
		if err != nil {
			return err
		}
		for _, f := range byHand {
			if !strings.Contains(f.name, only) {
				continue
			}
			if err := r.plant(f); err != nil {
				return err
			}
		}
	}
	for _, p := range packages {
		p, more, _ := strings.Cut(p, ",")
		all, err := faults(p, same)
		if err != nil {
			return err
		}
		random := rand.New(rand.NewPCG(seed, 0))
		random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		planted, alive := r.planted, r.alive
		for _, f := range all {
			f.tests = strings.Trim(f.tests+","+more, ",")
		}
		for ; r.planted-planted < each && len(all) > 0; all = all[1:] {
			if err := r.plant(all[0]); err != nil {
				return err
			}
		}
		fmt.Fprintf(r.out, "%s: %d planted, %d alive\n", p, r.planted-planted, r.alive-alive)
	}
	return nil
}

// plant plants a fault, runs the tests and counts the fault. A fault made by rule that does not
// compile, or that vet reports, is not counted; one written by hand that does not apply, or compile, is alive.
func (r *runner) plant(f *fault) error {
	start := time.Now()
	found, built, late := false, false, false
	if f.to > 0 {
		overlay, err := r.write(f)
		if err != nil {
			return err
		}
		found, built, late = r.test(f, overlay)
		if built && !found && f.name == "" {
			_, err := run(r.limit, append([]string{"vet", "-overlay", overlay}, strings.Split(f.tests, ",")...)...)
			built = err == nil
		}
	}
	if !built && f.name == "" {
		return nil
	}
	r.planted++
	word := "found"
	switch {
	case f.to == 0:
		word = "ALIVE (does not apply: its text is not there, or twice)"
	case !built:
		word = "ALIVE (does not compile)"
	case !found:
		word = "ALIVE"
	case late:
		word = "found by the limit"
	}
	if !found {
		r.alive++
	}
	fmt.Fprintf(r.out, "%s %s (%.0f s)\n", word, f, time.Since(start).Seconds())
	return nil
}

// test runs the tests on a fault and reports whether one of them fails, whether it was built, and whether
// the limit ended them.
func (r *runner) test(f *fault, overlay string) (found, built, late bool) {
	args := []string{"test", "-overlay", overlay, "-count=1", "-failfast", "-timeout", r.limit.String()}
	if f.run != "" {
		args = append(args, "-run", f.run)
	}
	if r.short {
		args = append(args, "-short")
	}
	out, err := run(r.limit+time.Minute, append(args, strings.Split(f.tests, ",")...)...)
	built = !bytes.Contains(out, []byte("[build failed]")) && !bytes.Contains(out, []byte("[setup failed]"))
	late = len(out) == 0 || bytes.Contains(out, []byte("panic: test timed out"))
	return err != nil && built, built, late
}

// readEquivalent returns the entries of a list of equivalents. It fails if an entry means no place, or is there twice.
func readEquivalent(list string) (same map[string]bool, err error) {
	same = map[string]bool{}
	made := map[string]bool{}
	read := map[string]bool{}
	for line := range strings.Lines(list) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if file, _, _ := strings.Cut(line, " "); !read[file] {
			read[file] = true
			all, failed := sites(file)
			err = errors.Join(err, failed)
			for _, f := range all {
				made[f.entry()] = true
			}
		}
		if !made[line] || same[line] {
			err = errors.Join(err, fmt.Errorf("equivalent.txt: no rule makes this, or it is there twice: %s", line))
		}
		same[line] = true
	}
	return same, err
}

// faults returns all that the rules make of a package, or of one file, but for those after which the program does the
// same.
func faults(pkg string, same map[string]bool) (all []*fault, err error) {
	names := []string{pkg}
	if !strings.HasSuffix(pkg, ".go") {
		if names, err = filepath.Glob(filepath.Join(pkg, "*.go")); err != nil {
			return nil, err
		}
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := sites(name)
		if err != nil {
			return nil, err
		}
		for _, f := range f {
			if !same[f.entry()] {
				all = append(all, f)
			}
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: no place for a fault; name folders or files, such as ./internal/verify", pkg)
	}
	return all, nil
}

// write writes a file with a fault, and the overlay by which go takes it for the original.
func (r *runner) write(f *fault) (overlay string, err error) {
	text, err := os.ReadFile(f.file)
	if err != nil {
		return "", err
	}
	path, err := filepath.Abs(f.file)
	if err != nil {
		return "", err
	}
	changed := filepath.Join(r.dir, filepath.Base(f.file))
	b, err := json.Marshal(map[string]map[string]string{"Replace": {path: changed}})
	overlay = filepath.Join(r.dir, "overlay.json")
	return overlay, errors.Join(err, os.WriteFile(changed, f.apply(text), 0o600), os.WriteFile(overlay, b, 0o600))
}

// run runs go and returns what it prints, and an error if it fails or takes too long.
func run(limit time.Duration, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return exec.CommandContext(ctx, "go", args...).CombinedOutput()
}
