package follow

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"hindsight/internal/join"
	"hindsight/internal/model"
	"hindsight/internal/topics"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// Source is a model as its owner has it: the file in canonical form and the files it names.
type Source struct {
	Name     string
	Version  int64
	Model    []byte // without the mode
	Mode     codec.Mode
	Cause    string // of its epochs; "": the model file
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

// refuse returns an [ErrModel] that says why.
func refuse(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrModel, fmt.Errorf(format, args...))
}

// goOn takes the model as it was read when the learner of an epoch began, if the file is the same or says warm: keep:
// what a learner computes changes only with the next version that begins another.
func (s *Source) goOn(last *Definition) {
	if s.Earlier == nil || s.Version != last.Rec.Version && !s.Warm.Keep {
		return
	}
	was := last.Rec.Model
	if !differ(s.Earlier, was, "oracle") && (differ(s.Model, was, "oracle") || bytes.Equal(s.Earlier, was)) {
		s.Model, s.Earlier = s.Earlier, nil
	}
}

// Follows checks whether a model may run on a log whose last epoch is last, and whether it needs a new epoch.
func (s *Source) Follows(last *Definition, partitions int, seedHash string) (fresh bool, err error) {
	if last == nil {
		return true, nil
	}
	s.goOn(last)
	r := &last.Rec
	switch {
	case s.Name != r.Name:
		return false, refuse("the log belongs to the model %q, this one is %q", r.Name, s.Name)
	case partitions != r.Partitions:
		return false, refuse("the log was created with %d partitions, not %d, and that cannot change",
			r.Partitions, partitions)
	case seedHash != r.SeedHash:
		return false, refuse("this is not the seed that the log was created with; draws would not be reproducible. " +
			"Put the old seed file back")
	case s.Version < r.Version:
		return false, refuse("the log is at version %d of the model, this file says version %d", r.Version, s.Version)
	case s.Version == r.Version && !bytes.Equal(s.Model, r.Model): // the mode is what was asked for last
		return false, refuse("the model file differs from the one in the log but has the same version %d; raise "+
			"version: to start a new epoch%s", r.Version, difference(r.Model, s.Model))
	case s.Version == r.Version && !s.sameFiles(r.Files):
		return false, refuse("a file that the model names differs from the one in the log but the version is the "+
			"same, %d; raise version: to start a new epoch", r.Version)
	}
	return s.Version > r.Version, nil
}

// difference names the first line in which two canonical models differ.
func difference(was, is []byte) string {
	a, b := strings.Split(string(was), "\n"), strings.Split(string(is), "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf(". The log has %q where this has %q; a model file that says the former goes on as "+
				"before", a[i], b[i])
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

// Record returns the epoch record of a model, without the sum of the model.
func (s *Source) Record(number int64, partitions int, seedHash string, through int64) codec.Epoch {
	rec := codec.Epoch{V: codec.Version, Epoch: number, Name: s.Name, Version: s.Version, Partitions: partitions,
		SeedHash: seedHash, Model: s.Model, Mode: s.Mode, Cause: s.Cause, Through: through}
	for _, name := range s.Order {
		b := s.Files[name]
		rec.Files = append(rec.Files, codec.FileRef{Name: name, Size: int64(len(b)), SHA256: hexSum(b)})
	}
	return rec
}

// CheckTaught is an error unless a log is new, or holds all that it ever held, and of a model no
// other version than the one that is taught.
func CheckTaught(ctx context.Context, log stream.Log, name string, version int64) error {
	partitions, err := topics.Partitions(ctx, log, name)
	if errors.Is(err, stream.ErrNotFound) {
		return nil
	}
	t := join.TopicsOf(name)
	whole := func(topic string, p int) error {
		first, _, err := log.Bounds(ctx, topic, p)
		if err == nil && first > join.LogStart {
			err = refuse("%s has dropped records since it was taught, so that it cannot be told where to go on; "+
				"teach a new log", topic)
		}
		return err
	}
	for p := range partitions {
		err = errors.Join(err, whole(t.Contexts, p), whole(t.Outcomes, p))
	}
	if err = errors.Join(err, whole(t.Feedback, 0)); err != nil {
		return err
	}
	return stream.Scan(ctx, log, t.Feedback, 0, stream.Earliest, math.MaxInt64, func(r *stream.Record) error {
		if r.Type != codec.TypeEpoch {
			return nil
		}
		rec, err := codec.ParseEpoch(r.Value)
		if err == nil && rec.Version != version {
			err = refuse("the log is at version %d of the model, and is taught as version %d; a system that has gone "+
				"live is taught no more: teach a new log", rec.Version, version)
		}
		return err
	})
}
