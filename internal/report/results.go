package report

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"hindsight/internal/dataset"
	"hindsight/internal/judge"
	"hindsight/internal/logs"
	"hindsight/internal/ope"
	"hindsight/internal/replay"
)

// Results is what a backtest found; its JSON is that of `backtest --json`.
type Results struct {
	// true: by Ctrl-C or SIGTERM; the rest is what was finished by then, not all that was asked for
	Interrupted bool `json:"interrupted,omitempty"`

	Intake     *dataset.Intake          `json:"intake,omitempty"`     // what became of each record of a log
	Runs       []replay.Result          `json:"runs"`                 // learners × delays × row orders
	Policies   []*ope.Evaluation        `json:"policies,omitempty"`   // what a log with propensities says of policies
	Estimators *judge.OffPolicySettings `json:"estimators,omitempty"` // on what those depend
	// of runs: a group for each learner and kind of delays; with --report or --csv
	Summary    []group             `json:"summary,omitempty"`
	Standings  []standing          `json:"standings,omitempty"`  // of policies; with --report or --csv
	Sweep      []replay.SweepPoint `json:"sweep,omitempty"`      // value over delay; with --report or --csv
	Data       *replay.Data        `json:"data,omitempty"`       // what was replayed; with --report or --csv
	Parameters *Parameters         `json:"parameters,omitempty"` // with --report or --csv
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

// ReadInput describes a file; of a folder, each file that is read of it, with its path below the folder.
func ReadInput(role, path string) ([]Input, error) {
	files, err := logs.Files(path)
	if err != nil {
		return nil, fmt.Errorf("checksum: %w", err)
	}
	var out []Input
	for _, file := range files {
		name, err := filepath.Rel(path, file)
		if err != nil || file == path {
			name = filepath.Base(path)
		}
		one, err := readInput(role, filepath.ToSlash(name), file)
		if err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, nil
}

func readInput(role, name, path string) (Input, error) {
	in := Input{Role: role, Name: name}
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
