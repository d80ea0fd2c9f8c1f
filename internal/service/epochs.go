package service

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"

	"hindsight/internal/loop"
	"hindsight/internal/model"
	"hindsight/pkg/codec"
)

// Build makes a model at work from its epoch record and the files that it names.
type Build func(rec *codec.Epoch, files map[string][]byte) (loop.Epoch, error)

// chunkBytes is the most that one class or snapshot record carries.
const chunkBytes = 512 << 10

// definition is all that is needed to run an epoch.
type definition struct {
	rec   codec.Epoch
	files map[string][]byte
	rules *loop.Rules
}

// epochs knows the models that were announced in a feedback log.
type epochs struct {
	build Build
	byNum map[int64]*definition
	last  *definition
	parts map[string][][]byte // class records that wait for their epoch record
}

func newEpochs(build Build) *epochs {
	return &epochs{build: build, byNum: map[int64]*definition{}, parts: map[string][][]byte{}}
}

// rules returns the rules of an epoch, nil if it is not known.
func (e *epochs) rules(n int64) *loop.Rules {
	if d := e.byNum[n]; d != nil {
		return d.rules
	}
	return nil
}

var errIncomplete = errors.New("its class records are incomplete or damaged")

// addClass takes one class record.
func (e *epochs) addClass(value []byte) error {
	c, err := codec.ParseClass(value)
	if err != nil {
		return err
	}
	if c.Part == 0 {
		e.parts[c.File] = nil
	}
	if c.Part != len(e.parts[c.File]) {
		delete(e.parts, c.File) // the rest of a sequence that was cut off
		return nil
	}
	e.parts[c.File] = append(e.parts[c.File], append([]byte(nil), c.Bytes...))
	return nil
}

// addEpoch takes one epoch record, whose class records were taken before, and
// returns the model at work with a fresh learner. Of an epoch that is known already
// it returns the number only.
func (e *epochs) addEpoch(rec *codec.Epoch) (loop.Epoch, error) {
	if d := e.byNum[rec.Epoch]; d != nil {
		clear(e.parts)
		return loop.Epoch{Number: rec.Epoch, Rules: d.rules}, nil
	}
	files := map[string][]byte{}
	for _, f := range rec.Files {
		var b []byte
		for _, p := range e.parts[f.Name] {
			b = append(b, p...)
		}
		files[f.Name] = b
	}
	clear(e.parts)
	return e.define(rec, files)
}

// define makes an epoch known.
func (e *epochs) define(rec *codec.Epoch, files map[string][]byte) (loop.Epoch, error) {
	if got := hexSum(rec.LoggedModel()); got != rec.SHA256 {
		return loop.Epoch{}, fmt.Errorf("epoch %d: its model has SHA-256 %s, the record says %s: %w", rec.Epoch, got, rec.SHA256, codec.ErrCorrupt)
	}
	for _, f := range rec.Files {
		if b := files[f.Name]; int64(len(b)) != f.Size || hexSum(b) != f.SHA256 {
			return loop.Epoch{}, fmt.Errorf("epoch %d: file %q: %w", rec.Epoch, f.Name, errIncomplete)
		}
	}
	ep, err := e.build(rec, files)
	if err != nil {
		return loop.Epoch{}, fmt.Errorf("epoch %d: %w", rec.Epoch, err)
	}
	ep.Since = rec.Continues
	d := &definition{rec: *rec, files: files, rules: ep.Rules}
	e.byNum[rec.Epoch] = d
	if e.last == nil || rec.Epoch > e.last.rec.Epoch {
		e.last = d
	}
	return ep, nil
}

// undo forgets an epoch that was defined after last and is not to be.
func (e *epochs) undo(last *definition) {
	if e.last != last {
		delete(e.byNum, e.last.rec.Epoch)
		e.last = last
	}
}

func hexSum(b []byte) string { return fmt.Sprintf("%x", sha256.Sum256(b)) }

// Source is a model as its owner has it: the file in canonical form and the files
// it names.
type Source struct {
	Name     string
	Version  int64
	Model    []byte // without the mode
	Mode     codec.Mode
	Warm     model.Warm
	Earlier  []byte            // the model as programs before oracles had versions read the file; nil: the same
	Files    map[string][]byte // by the names that the model uses
	Order    []string          // the names, in the order of the model
	Warnings []string          // what in the file is seldom meant, for people
}

// ErrNoModel reports a feedback log without a model.
var ErrNoModel = errors.New("the feedback log announces no model")

// ErrModel reports a model that cannot follow the one in the log.
var ErrModel = errors.New("model refused")

// goOn takes the model as it was read when the learner of an epoch began, if the file is the
// same or says warm: keep: what a learner computes changes only with the next version that
// begins another.
func (s *Source) goOn(last *definition) {
	if last == nil || s.Earlier == nil || s.Version != last.rec.Version && !s.Warm.Keep {
		return
	}
	was := last.rec.Model
	if !differ(s.Earlier, was, "oracle") && (differ(s.Model, was, "oracle") || bytes.Equal(s.Earlier, was)) {
		s.Model, s.Earlier = s.Earlier, nil
	}
}

// follows checks whether a model may run on a log whose last epoch is last, and
// whether it needs a new epoch.
func (s *Source) follows(last *definition, partitions int, seedHash string) (fresh bool, err error) {
	if last == nil {
		return true, nil
	}
	r := &last.rec
	switch {
	case s.Name != r.Name:
		return false, fmt.Errorf("%w: the log belongs to the model %q, this one is %q", ErrModel, r.Name, s.Name)
	case partitions != r.Partitions:
		return false, fmt.Errorf("%w: the log was created with %d partitions, not %d, and that cannot change", ErrModel, r.Partitions, partitions)
	case seedHash != r.SeedHash:
		return false, fmt.Errorf("%w: this is not the seed that the log was created with; draws would not be reproducible. Put the old seed file back", ErrModel)
	case s.Version < r.Version:
		return false, fmt.Errorf("%w: the log is at version %d of the model, this file says version %d", ErrModel, r.Version, s.Version)
	case s.Version == r.Version && !bytes.Equal(s.Model, r.Model): // the mode is what was asked for last
		return false, fmt.Errorf("%w: the model file differs from the one in the log but has the same version %d; raise version: to start a new epoch%s", ErrModel, r.Version, difference(r.Model, s.Model))
	case s.Version == r.Version && !s.sameFiles(r.Files):
		return false, fmt.Errorf("%w: a file that the model names differs from the one in the log but the version is the same, %d; raise version: to start a new epoch", ErrModel, r.Version)
	}
	return s.Version > r.Version, nil
}

// difference names the first line in which two canonical models differ.
func difference(was, is []byte) string {
	a, b := strings.Split(string(was), "\n"), strings.Split(string(is), "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf(". The log has %q where this has %q; a model file that says the former goes on as before", a[i], b[i])
		}
	}
	return ""
}

func (s *Source) sameFiles(refs []codec.FileRef) bool {
	if len(refs) != len(s.Order) {
		return false
	}
	for i, name := range s.Order {
		if refs[i].Name != name || refs[i].SHA256 != hexSum(s.Files[name]) {
			return false
		}
	}
	return true
}

// record returns the epoch record of a model, without the sum of the model.
func (s *Source) record(number int64, partitions int, seedHash string, through int64) codec.Epoch {
	rec := codec.Epoch{V: codec.Version, Epoch: number, Name: s.Name, Version: s.Version, Partitions: partitions,
		SeedHash: seedHash, Model: s.Model, Mode: s.Mode, Through: through}
	for _, name := range s.Order {
		b := s.Files[name]
		rec.Files = append(rec.Files, codec.FileRef{Name: name, Size: int64(len(b)), SHA256: hexSum(b)})
	}
	return rec
}

// classRecords returns the class records of a model's files.
func classRecords(order []string, files map[string][]byte) []codec.Class {
	var out []codec.Class
	for _, name := range order {
		b := files[name]
		parts := max(1, (len(b)+chunkBytes-1)/chunkBytes)
		for i := range parts {
			chunk := b[i*chunkBytes : min(len(b), (i+1)*chunkBytes)]
			out = append(out, codec.Class{V: codec.Version, File: name, Part: i, Parts: parts, Bytes: chunk})
		}
	}
	return out
}
