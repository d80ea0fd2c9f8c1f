// Command mutants plants faults in packages, one at a time, and runs the tests of the package: a
// fault that no test finds is printed. The faults are made by rule and drawn with a seed; the source
// tree is not written to.
//
//	go run ./internal/testkit/mutants --seed 1 --each 10 ./internal/verify ./pkg/stream/lease
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

func main() {
	seed := pflag.Uint64("seed", 1, "seed of the choice")
	each := pflag.Int("each", 10, "faults in each package")
	limit := pflag.Duration("limit", 3*time.Minute, "of one run of tests; a fault that makes it longer is found")
	short := pflag.Bool("short", false, "run the tests with -short")
	pflag.Parse()
	alive, err := plant(pflag.Args(), *seed, *each, *limit, *short)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if alive > 0 {
		os.Exit(1)
	}
}

// plant plants faults in packages and returns how many nobody found.
func plant(packages []string, seed uint64, each int, limit time.Duration, short bool) (alive int, err error) {
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	planted := 0
	for _, p := range packages {
		all, err := faults(p)
		if err != nil {
			return 0, err
		}
		r := rand.New(rand.NewPCG(seed, 0))
		r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		for n := 0; n < each && len(all) > 0; all = all[1:] {
			overlay, err := write(dir, all[0])
			if err != nil {
				return 0, err
			}
			if run(limit, "go", "vet", "-overlay", overlay, p) != nil {
				continue // it does not compile, or anybody sees it
			}
			n++
			planted++
			args := []string{"test", "-overlay", overlay, "-count=1", "-failfast", "-timeout", limit.String(), p}
			if short {
				args = append(args, "-short")
			}
			if run(limit+time.Minute, "go", args...) == nil {
				alive++
				fmt.Println("ALIVE", all[0])
			} else {
				fmt.Println("found", all[0])
			}
		}
	}
	fmt.Printf("seed %d: %d faults planted, %d found, %d alive\n", seed, planted, planted-alive, alive)
	return alive, nil
}

// faults returns all that the rules make of a package.
func faults(pkg string) (all []*fault, err error) {
	names, err := filepath.Glob(filepath.Join(pkg, "*.go"))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := sites(name)
		if err != nil {
			return nil, err
		}
		all = append(all, f...)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: no Go file in which a fault could be planted; name folders, such as ./internal/verify", pkg)
	}
	return all, nil
}

// write writes a file with a fault, and what tells go to take it for the other.
func write(dir string, f *fault) (overlay string, err error) {
	text, err := os.ReadFile(f.file)
	if err != nil {
		return "", err
	}
	path, err := filepath.Abs(f.file)
	if err != nil {
		return "", err
	}
	changed := filepath.Join(dir, filepath.Base(f.file))
	b, err := json.Marshal(map[string]map[string]string{"Replace": {path: changed}})
	overlay = filepath.Join(dir, "overlay.json")
	return overlay, errors.Join(err, os.WriteFile(changed, f.apply(text), 0o600), os.WriteFile(overlay, b, 0o600))
}

// run runs a command and returns an error if it fails or takes too long.
func run(limit time.Duration, name string, args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return exec.CommandContext(ctx, name, args...).Run()
}
