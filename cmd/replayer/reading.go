package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/pflag"

	"hindsight/internal/daemon"
	"hindsight/internal/dataset"
	"hindsight/internal/engine"
	"hindsight/internal/logs"
	"hindsight/internal/loop"
	"hindsight/internal/model"
	"hindsight/internal/recent"
	"hindsight/internal/replay"
	"hindsight/internal/service"
	"hindsight/pkg/codec"
)

// formatAuto stands for a format that the content of data tells.
const formatAuto = "auto"

// reading holds the flags that say how the records of a log are read, and what a log that
// is topics is reached with.
type reading struct {
	rejects string
	strict  bool
	dedup   int

	stdin  io.Reader
	access *access     // to topics
	env    *daemon.Env // of which standard error gets what should be known of the log and the model; nil: nobody is told

	opened **replay.Rounds // the data, read once
	warned map[string]bool // warnings told, by their text
}

// flags adds those of every verb that reads a log, and those of the servers that may hold it. What
// should be known of the log is told on env's standard error.
func (r *reading) flags(env *daemon.Env, f *pflag.FlagSet, a *access) {
	r.stdin, r.env, r.warned, r.opened, r.access = env.Stdin, env, map[string]bool{}, new(*replay.Rounds), a
	f.StringVar(&r.rejects, "rejects", "", "file for every record that is read and not used, a JSON object a line")
	f.BoolVar(&r.strict, "strict", false, "stop at the first malformed record; without it they are counted and left out")
	f.IntVar(&r.dedup, "dedup", recent.DefaultDedup, "ids remembered to find repeats, and the events of outcomes")
	daemon.Bounds{"dedup": {1, 1e9}}.Set(f)
	if f.Lookup("name") == nil {
		a.flags(env, f)
	}
}

// options returns how records are read; done closes the file of rejects.
func (r *reading) options(stdin io.Reader) (o logs.Options, done func() error, err error) {
	o = logs.Options{Strict: r.strict, Dedup: r.dedup, Stdin: stdin}
	if r.rejects == "" {
		return o, func() error { return nil }, nil
	}
	f, err := os.Create(r.rejects)
	if err != nil {
		return o, nil, err
	}
	o.Rejects = f
	return o, f.Close, nil
}

// say tells what should be known of a log before its figures.
func (r *reading) say(env *replay.Rounds) {
	in := env.Intake
	if in == nil || r.env == nil {
		return
	}
	fmt.Fprintf(r.env.Stderr, "%s: %s; %d rounds, %d actions\n", in.Format, in.Summary(), in.Rows, in.Actions)
	for _, e := range in.Errors() {
		fmt.Fprintf(r.env.Stderr, "  malformed: %s\n", e)
	}
	for _, note := range in.Notes() {
		fmt.Fprintf(r.env.Stderr, "  %s\n", note)
	}
}

// warn tells, once, of what is allowed and seldom meant.
func (r *reading) warn(text string) {
	if r.env != nil && !r.warned[text] {
		r.warned[text] = true
		fmt.Fprintln(r.env.Stderr, "warning: "+text)
	}
}

// isTopics reports whether data names the topics of a live system.
func isTopics(data string) bool {
	_, err := engine.Parse(data)
	return err == nil && data != "mem"
}

// readOnce opens the data, which all that is played shares.
func (s *source) readOnce(ctx context.Context) (*replay.Rounds, error) {
	if *s.reading.opened != nil {
		return *s.reading.opened, nil
	}
	env, err := s.openData(ctx)
	if err != nil {
		return nil, err
	}
	*s.reading.opened = env
	s.reading.say(env)
	return env, nil
}

// openData opens the data in its format: by itself topics by their address, a bandit log
// if its columns are named, Open Bandit data if it has those, events by their content, and
// any other CSV as a labelled one.
func (s *source) openData(ctx context.Context) (env *replay.Rounds, err error) {
	o, done, err := s.reading.options(s.reading.stdin)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, done()) }()
	o.Inactive, o.Labelled, o.Typed = true, true, true
	if o.Mapping, err = s.readMapping(); err != nil {
		return nil, err
	}
	switch {
	case !o.Mapping.IsZero() && s.format != formatAuto && s.format != logs.Bandit:
		return nil, daemon.Usagef("--format %s: columns are named for --format %s only", s.format, logs.Bandit)
	case !o.Mapping.IsZero() || s.format == logs.Bandit:
		if err := o.Mapping.Validate(); err != nil {
			return nil, daemon.Usagef("%v", err)
		}
	case s.format == formatAuto:
		if isTopics(s.data) {
			return s.openTopics(ctx, o)
		}
	case !slices.Contains(append(logs.Formats(), logs.Labelled, logs.OpenBandit), s.format):
		return nil, daemon.Usagef("--format %q: expected %s, %s, %s, %s, or one of %s", s.format, formatAuto, logs.Labelled, logs.Bandit, logs.OpenBandit, logs.FormatNames())
	default:
		o.Format = s.format
	}
	var m *model.Model
	o.Range = loop.Range{Min: 0, Max: 1}
	if s.model != "" {
		if m, err = s.parseModel(); err != nil {
			return nil, err
		}
		o.Range, o.Actions = m.Range, m.Actions
	}
	r, err := logs.Open(s.data, o)
	if err != nil {
		return nil, err
	}
	c := r.Schema()
	if c != nil && c.Format != logs.Labelled && m != nil && m.Reward != (c.Kind == codec.Reward) && m.Range != (loop.Range{Min: 0, Max: 1}) {
		return nil, errors.Join(daemon.Usagef("%s gives the range of a reward or of a loss, and the columns name the other", s.model), r.Close())
	}
	return s.readEvents(filepath.Base(s.data), r)
}

// openTopics opens the topics of a live system.
func (s *source) openTopics(ctx context.Context, o logs.Options) (*replay.Rounds, error) {
	t, err := s.reading.openTopics(ctx, s.data, o)
	if err != nil {
		return nil, err
	}
	defer t.close()
	return s.readEvents(t.name, t.Reader)
}

// readEvents makes a log of events.
func (s *source) readEvents(name string, r *logs.Reader) (*replay.Rounds, error) {
	o := dataset.Options{Dedup: s.reading.dedup}
	if s.model != "" {
		m, err := s.parseModel()
		if err != nil {
			return nil, errors.Join(err, r.Close())
		}
		o.Actions = m.Actions
		if o.Range = m.Range; m.Range != (loop.Range{Min: 0, Max: 1}) {
			o.Reward = &m.Reward
		}
	}
	b, err := dataset.Read(name, r, o)
	if err != nil {
		return nil, err
	}
	return replay.OfTable(b), nil
}

// topics is the log of a live system, open to be read.
type topics struct {
	*logs.Reader
	name   string
	engine *engine.Engine
}

// Close ends the reading, and closes the log.
func (t *topics) Close() error { return errors.Join(t.Reader.Close(), t.engine.Close()) }

func (t *topics) close() { _ = t.engine.Close() }

// openTopics opens the topics of a model in a log.
func (r *reading) openTopics(ctx context.Context, log string, o logs.Options) (*topics, error) {
	spec, err := engine.Parse(log)
	if err != nil {
		return nil, err
	}
	if spec.Kind == "mem" || spec.Kind == "embedded" && !engine.Exists(spec.Dir) {
		return nil, fmt.Errorf("%s: there is no log", log)
	}
	t, a := &topics{}, *r.access // which may name another log's model later
	if t.engine, err = a.open(ctx, &spec, log, nil); err != nil {
		return nil, err
	}
	if err = a.choose(ctx, t.engine, log); err == nil {
		t.name = a.name
		at := service.TopicsOf(t.name)
		t.Reader, err = logs.OpenTopics(ctx, t.engine.Log, at.Decisions, at.Outcomes, o)
	}
	if err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}
