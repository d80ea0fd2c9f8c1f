package follow

import (
	"crypto/sha256"
	"errors"
	"fmt"

	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// Build makes a model at work from its epoch record and the files that it names.
type Build func(rec *codec.Epoch, files map[string][]byte) (loop.Epoch, error)

// chunkBytes is the most that one class or snapshot record carries.
const chunkBytes = 512 << 10

// Definition is all that is needed to run an epoch.
type Definition struct {
	Rec   codec.Epoch
	Files map[string][]byte
	Rules *loop.Rules
}

// Lineage returns the first of the epochs that share the epoch's learner.
func (d *Definition) Lineage() int64 { return lineage(&d.Rec) }

func lineage(rec *codec.Epoch) int64 {
	if rec.Continues > 0 {
		return rec.Continues
	}
	return rec.Epoch
}

// Records returns the records that announce the epoch: its files' class records, and its own.
func (d *Definition) Records() (out []stream.Record) {
	for _, f := range d.Rec.Files {
		b := d.Files[f.Name]
		parts := max(1, (len(b)+chunkBytes-1)/chunkBytes)
		for i := range parts {
			chunk := b[i*chunkBytes : min(len(b), (i+1)*chunkBytes)]
			c := codec.Class{V: codec.Version, File: f.Name, Part: i, Parts: parts, Bytes: chunk}
			out = append(out, stream.Record{Type: codec.TypeClass, Value: codec.AppendClass(nil, &c)})
		}
	}
	return append(out, stream.Record{Type: codec.TypeEpoch, Value: codec.AppendEpoch(nil, &d.Rec)})
}

// source returns the model of the epoch as its owner had it.
func (d *Definition) source() Source {
	s := Source{Name: d.Rec.Name, Version: d.Rec.Version, Model: d.Rec.Model, Mode: d.Rec.Mode, Files: d.Files}
	for _, f := range d.Rec.Files {
		s.Order = append(s.Order, f.Name)
	}
	return s
}

// Epochs knows the models that were announced in a feedback log.
type Epochs struct {
	Last *Definition // of the epoch with the highest number; nil: there is none

	build Build
	byNum map[int64]*Definition
	parts map[string][][]byte // class records that wait for their epoch record
}

// NewEpochs returns no epochs.
func NewEpochs(build Build) *Epochs {
	return &Epochs{build: build, byNum: map[int64]*Definition{}, parts: map[string][][]byte{}}
}

// Rules returns the rules of an epoch, nil if it is not known.
func (e *Epochs) Rules(n int64) *loop.Rules {
	if d := e.byNum[n]; d != nil {
		return d.Rules
	}
	return nil
}

var errIncomplete = errors.New("its class records are incomplete or damaged")

// AddClass takes one class record.
func (e *Epochs) AddClass(value []byte) error {
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

// AddEpoch is addEpoch of a record's value. Damage is a [codec.ErrCorrupt].
func (e *Epochs) AddEpoch(value []byte) (loop.Epoch, error) {
	rec, err := codec.ParseEpoch(value)
	if err != nil {
		return loop.Epoch{}, err
	}
	ep, err := e.addEpoch(&rec)
	return ep, corrupt(err)
}

func corrupt(err error) error {
	if errors.Is(err, errIncomplete) {
		return fmt.Errorf("%w: %w", codec.ErrCorrupt, err)
	}
	return err
}

// AddSnapshot makes the epoch of a snapshot known.
func (e *Epochs) AddSnapshot(s *Snapshot) (loop.Epoch, error) { return e.define(&s.Rec, s.Files) }

// addEpoch takes one epoch record, whose class records were taken before, and returns the model at work with a fresh
// learner. Of an epoch that is known already it returns the number only.
func (e *Epochs) addEpoch(rec *codec.Epoch) (loop.Epoch, error) {
	defer clear(e.parts)
	if d := e.byNum[rec.Epoch]; d != nil {
		return loop.Epoch{Number: rec.Epoch, Rules: d.Rules}, nil
	}
	files := map[string][]byte{}
	for _, f := range rec.Files {
		var b []byte
		for _, p := range e.parts[f.Name] {
			b = append(b, p...)
		}
		files[f.Name] = b
	}
	return e.define(rec, files)
}

// define makes an epoch known.
func (e *Epochs) define(rec *codec.Epoch, files map[string][]byte) (loop.Epoch, error) {
	if got := hexSum(rec.LoggedModel()); got != rec.SHA256 {
		return loop.Epoch{}, fmt.Errorf("epoch %d: its model has SHA-256 %s, the record says %s: %w",
			rec.Epoch, got, rec.SHA256, codec.ErrCorrupt)
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
	d := &Definition{*rec, files, ep.Rules}
	e.byNum[rec.Epoch] = d
	if e.Last == nil || rec.Epoch > e.Last.Rec.Epoch {
		e.Last = d
	}
	return ep, nil
}

// Undo forgets an epoch that was planned after last and is not to be.
func (e *Epochs) Undo(last *Definition) {
	if e.Last != last {
		delete(e.byNum, e.Last.Rec.Epoch)
		e.Last = last
	}
}

func hexSum(b []byte) string { return fmt.Sprintf("%x", sha256.Sum256(b)) }
