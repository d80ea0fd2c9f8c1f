package report

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"hindsight/internal/ope"
	"hindsight/internal/replay"
)

// Results is what a backtest found; its JSON is that of `backtest --json`.
type Results struct {
	Interrupted bool `json:"interrupted,omitempty"` // true: by Ctrl-C or SIGTERM; the rest is what was finished by then, not all that was asked for

	Intake     *replay.Intake            `json:"intake,omitempty"`     // what became of each record of a log
	Runs       []replay.Result           `json:"runs"`                 // learners × delays × row orders
	Policies   []*ope.Evaluation         `json:"policies,omitempty"`   // what a log with propensities says of policies
	Estimators *replay.OffPolicySettings `json:"estimators,omitempty"` // on what those depend
	Sweep      []replay.SweepPoint       `json:"sweep,omitempty"`      // value over delay; with --report or --csv
	Data       *replay.Data              `json:"data,omitempty"`       // what was replayed; with --report or --csv
	Parameters *Parameters               `json:"parameters,omitempty"` // with --report or --csv
}

// Parameters say what a report was made of and by: with them it can be made again.
type Parameters struct {
	Command string    `json:"command"` // the arguments of replayer
	Version string    `json:"version"` // of the program
	Made    time.Time `json:"made"`
	Seed    uint64    `json:"seed"`
	Inputs  []Input   `json:"inputs"`
}

// Input is a file that was read.
type Input struct {
	Role   string `json:"role"` // data, model, class, policies, mapping, …
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// ReadInput describes a file; of a folder, each file in it.
func ReadInput(role, path string) ([]Input, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("checksum: %w", err)
	}
	if !info.IsDir() {
		one, err := readInput(role, path)
		return []Input{one}, err
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("checksum: %w", err)
	}
	var out []Input
	for _, e := range entries {
		if !e.Type().IsRegular() {
			continue
		}
		one, err := readInput(role, filepath.Join(path, e.Name()))
		if err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, nil
}

func readInput(role, path string) (Input, error) {
	in := Input{Role: role, Name: filepath.Base(path)}
	f, err := os.Open(path)
	if err != nil {
		return in, fmt.Errorf("checksum: %w", err)
	}
	defer f.Close()
	h := sha256.New()
	if in.Bytes, err = io.Copy(h, f); err != nil {
		return in, fmt.Errorf("checksum of %s: %w", path, err)
	}
	in.SHA256 = hex.EncodeToString(h.Sum(nil))
	return in, nil
}
