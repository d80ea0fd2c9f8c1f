package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"hindsight/internal/daemon"
	"hindsight/internal/dataset"
	"hindsight/internal/engine"
	"hindsight/internal/join"
	"hindsight/internal/logs"
	"hindsight/internal/loop"
	"hindsight/internal/model"
	"hindsight/internal/recent"
	"hindsight/internal/replay"
	"hindsight/internal/report"
	"hindsight/internal/whole"
	"hindsight/pkg/codec"
)

// formatAuto stands for a format that the content of data tells.
const formatAuto = "auto"

// reading holds the flags that say how the records of a log are read, and what a log that is topics is reached with.
type reading struct {
	rejects string
	strict  bool
	dedup   int

	access *logAccess  // to topics
	env    *daemon.Env // whose standard error gets what should be known of the log and the model

	set    *pflag.FlagSet  // of the verb
	opened **replay.Rounds // the data, read once
	warned map[string]bool // warnings told, by their text
}

// flags adds those of every verb that reads a log, and those of the servers that may hold it. What
// should be known of the log is told on env's standard error.
func (r *reading) flags(env *daemon.Env, f *pflag.FlagSet, a *logAccess) {
	r.env, r.set, r.warned, r.opened, r.access = env, f, map[string]bool{}, new(*replay.Rounds), a
	f.StringVar(&r.rejects, "rejects", "", "file for every unused record, one JSON object per line")
	f.BoolVar(&r.strict, "strict", false, "stop at the first malformed record (default: count and skip them)")
	f.IntVar(&r.dedup, "dedup", recent.DefaultIDs, "number of ids remembered, to find repeats and the events of "+
		"outcomes")
	daemon.Bounds{"dedup": {1, 1e9}}.Set(f)
	if f.Lookup("name") == nil {
		a.flags(env, f)
	}
}

// spare reports a file to write that is one of those to read.
func (r *reading) spare(data string) error {
	read, _ := logs.Files(data)
	for _, name := range []string{"rejects", "out", "report", "csv"} {
		flag := r.set.Lookup(name)
		if flag == nil || flag.Value.String() == "" {
			continue
		}
		written := []string{flag.Value.String(), whole.Beside(flag.Value.String())}
		if name == "csv" {
			written = report.CSVFiles(written[0])
		}
		for _, path := range written {
			if to, err := os.Stat(path); err == nil && slices.ContainsFunc(read, func(file string) bool {
				from, err := os.Stat(file)
				return err == nil && os.SameFile(from, to)
			}) {
				return daemon.Usagef("--%s %s: %s, which is read, would be overwritten: choose another name", name,
					flag.Value, path)
			}
		}
	}
	return nil
}

// options returns how the records of a log are read; done closes the file of rejects.
func (r *reading) options(data string) (o logs.Options, done func() error, err error) {
	if err := r.spare(data); err != nil {
		return o, nil, err
	}
	o = logs.Options{Strict: r.strict, Dedup: r.dedup, Stdin: r.env.Stdin}
	if r.rejects == "" {
		return o, func() error { return nil }, nil
	}
	f, err := os.Create(r.rejects)
	o.Rejects = f
	return o, f.Close, err
}

// say tells what should be known of a log before its figures.
func (r *reading) say(env *replay.Rounds) {
	in := env.Intake
	if in == nil {
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
	if !r.warned[text] {
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

func (s *source) openData(ctx context.Context) (env *replay.Rounds, err error) {
	o, done, err := s.reading.options(s.data)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, done()) }()
	o.Inactive, o.Labelled, o.Typed = true, true, true
	whole := loop.Range{Min: 0, Max: 1}
	o.Range = whole
	events := dataset.Options{Dedup: s.reading.dedup}
	var m *model.Model
	if s.model != "" {
		if m, err = s.parseModel(); err != nil {
			return nil, err
		}
		o.Range, o.Actions, o.Long = m.Range, m.Actions, m.Rules().Long
		for _, f := range m.Features {
			o.Keys = append(o.Keys, f.Name)
		}
		if events.Range, events.Actions = m.Range, m.Actions; m.Range != whole {
			events.Reward = &m.Reward
		}
		if m.Named != nil { // whose ranges are their own
			o.Range, events.Range, events.Reward = loop.Range{}, loop.Range{}, nil
		}
	}
	r, err := s.openLog(ctx, s.data, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.end()) }()
	if c := r.Schema(); c != nil && c.Format != logs.Labelled && events.Reward != nil &&
		m.Reward != (c.Kind == codec.Reward) {
		return nil, errors.Join(daemon.Usagef("%s gives the range of a reward or of a loss, and the columns name the "+
			"other", s.model), r.Close())
	}
	events.Long = r.long
	table, err := dataset.Read(r.name, r.Reader, events)
	if err != nil {
		return nil, err
	}
	return replay.OfTable(table), nil
}

// openLog opens a log in its format, alike for every verb: by itself topics by their address, a bandit log
// if its columns are named, and any other by its content.
func (s *source) openLog(ctx context.Context, path string, o logs.Options) (*records, error) {
	var err error
	if o.Mapping, err = s.readMapping(); err != nil {
		return nil, err
	}
	columns := o.Mapping
	if columns.OnlyFeatures() && s.format != logs.Bandit { // which may be those of lines of arms
		o.Keys, o.Long = columns.Keys(o.Long)
		o.Mapping = logs.Mapping{}
	}
	inCSV, _ := logs.CSVFormats()
	switch named := !o.Mapping.IsZero(); {
	case named && s.format != formatAuto && s.format != logs.Bandit:
		return nil, daemon.Usagef("--format %s: columns are named for --format %s only", s.format, logs.Bandit)
	case named || s.format == logs.Bandit:
		if err := o.Mapping.Validate(); err != nil {
			return nil, daemon.Usagef("%v", err)
		}
	case s.format == formatAuto && isTopics(path):
		return s.reading.openTopics(ctx, path, o)
	case s.format == formatAuto:
	case s.format == logs.Labelled && !o.Labelled:
		return nil, daemon.Usagef("%v", logs.ErrLabelled)
	case !slices.Contains(append(logs.Formats(), inCSV...), s.format):
		return nil, daemon.Usagef("--format %q: expected %s, %s, or one of %s", s.format, formatAuto,
			strings.Join(inCSV, ", "), logs.FormatNames())
	default:
		o.Format = s.format
	}
	r, err := logs.Open(path, o)
	if columns.OnlyFeatures() && (err == nil && r.Account().Format != logs.JSONL || errors.Is(err, logs.ErrCSV)) {
		if err == nil {
			err = r.Close()
		}
		return nil, errors.Join(daemon.Usagef("%v", columns.Validate()), err)
	}
	if errors.Is(err, logs.ErrCSV) || errors.Is(err, logs.ErrLabelled) {
		return nil, daemon.Usagef("%v", err)
	}
	if err != nil {
		return nil, err
	}
	return &records{Reader: r, name: filepath.Base(path), long: o.Long}, nil
}

type records struct {
	*logs.Reader
	name   string
	long   func(name string) bool // [logs.Options.Long]
	engine *engine.Engine         // of topics; nil: of files
}

// Close ends the reading.
func (r *records) Close() error { return errors.Join(r.Reader.Close(), r.end()) }

// end closes the log of topics.
func (r *records) end() error {
	if r.engine == nil {
		return nil
	}
	return r.engine.Close()
}

func (r *reading) openTopics(ctx context.Context, log string, o logs.Options) (*records, error) {
	of := system{env: &daemon.Env{}, log: log, logAccess: *r.access} // which may name another log's model later
	e, err := of.open(ctx)
	if err != nil {
		return nil, err
	}
	t, at := &records{name: of.name, engine: e}, join.TopicsOf(of.name)
	if t.Reader, err = logs.OpenTopics(ctx, e.Log, at.Decisions, at.Outcomes, at.Rejects, o); err != nil {
		return nil, errors.Join(err, t.end())
	}
	return t, nil
}
