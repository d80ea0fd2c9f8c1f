// Package modelfile reads a model file with the files beside it.
package modelfile

import (
	"bytes"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"

	"hindsight/internal/bounded"
	"hindsight/internal/follow"
	"hindsight/internal/model"
	"hindsight/pkg/codec"
)

// Load reads a model file and the files that it names; "" is the default model.
func Load(path string) (*follow.Source, error) {
	s, err := load(path)
	if err != nil {
		return nil, &refused{err}
	}
	return s, nil
}

func load(path string) (*follow.Source, error) {
	m, warnings := model.Default(), model.Errors(nil)
	var b []byte
	if path != "" {
		var err error
		if b, err = bounded.Read(path, model.MaxBytes); err != nil {
			return nil, fmt.Errorf("model: %w", err)
		}
		if m, warnings, err = model.ParseWithWarnings(path, b); err != nil {
			return nil, err
		}
	}
	files, err := readFiles(path, m.Files())
	if err != nil {
		return nil, err
	}
	s, err := Source(m, files)
	if err != nil {
		return nil, err
	}
	if was, err := model.ParseLogged(path, b); err == nil {
		was.Resolve(0, 0)
		was.Mode = codec.Live
		if c := was.Canonical(); !bytes.Equal(c, s.Model) {
			s.Earlier = c
		}
	}
	for _, d := range warnings {
		s.Warnings = append(s.Warnings, d.Error())
	}
	return s, nil
}

// readFiles reads files beside a model file.
func readFiles(path string, names []string) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, name := range names {
		b, err := bounded.Read(filepath.Join(filepath.Dir(path), name), bounded.Named)
		if err != nil {
			return nil, fmt.Errorf("model %s: %w", path, err)
		}
		files[name] = b
	}
	return files, nil
}

// Rejudge returns what makes of a model its next version, which keeps the learner and judges other candidates
// ([model.Model.Rejudged]). Their files are read from beside the model file.
func Rejudge(path string) func(s *follow.Source, candidates, promote []byte) (*follow.Source, error) {
	return func(s *follow.Source, candidates, promote []byte) (*follow.Source, error) {
		was, err := model.ParseLogged(s.Name, s.Model)
		if err != nil {
			return nil, err
		}
		m, err := was.Rejudged(candidates, promote)
		if err != nil {
			return nil, err
		}
		class := m.ClassFile()
		files, err := readFiles(path, slices.DeleteFunc(m.Files(), func(name string) bool { return name == class }))
		if err == nil && class != "" {
			files[class] = s.Files[class]
		}
		if err != nil {
			return nil, err
		}
		return Source(m, files)
	}
}

// Reload returns what reads a model file again, and warns of what in it is seldom meant.
func Reload(logger *slog.Logger, path string) func() (*follow.Source, error) {
	return func() (*follow.Source, error) {
		s, err := Load(path)
		if err == nil {
			warn(logger, s)
		}
		return s, err
	}
}

func warn(logger *slog.Logger, s *follow.Source) {
	for _, d := range s.Warnings {
		logger.Warn("model file: " + d)
	}
}

// Source returns a model as its owner announces it. It is built once, so that
// what is wrong with it is said at the start.
func Source(m *model.Model, files map[string][]byte) (*follow.Source, error) {
	m = m.Clone()
	m.Resolve(0, 0)
	if _, err := m.Build(files); err != nil {
		return nil, err
	}
	if _, err := m.Judging(files); err != nil {
		return nil, err
	}
	s := &follow.Source{Name: m.Name, Version: m.Version, Mode: m.Mode, Warm: m.Warm, Files: files, Order: m.Files()}
	m.Mode = codec.Live
	s.Model = m.Canonical()
	return s, nil
}

// Announce logs which oracle a model has, why, and what it costs: one line at the start, and
// one for whatever in its file is seldom meant.
func Announce(logger *slog.Logger, s *follow.Source) {
	warn(logger, s)
	m, err := model.ParseLogged(s.Name, s.Model)
	if err != nil {
		logger.Warn("oracle", "error", err) // not of a source made here
		return
	}
	logger.Info("oracle", "cost", m.Cost(), "memory", m.Peak())
}
