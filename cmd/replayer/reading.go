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
	"hindsight/internal/engine"
	"hindsight/internal/logs"
	"hindsight/internal/loop"
	"hindsight/internal/replay"
	"hindsight/internal/service"
)

// Formats of data that are no events.
const (
	formatAuto       = "auto"
	formatMulticlass = "multiclass"
	formatBandit     = "bandit"
	formatOpenBandit = "obd"
)

// reading holds the flags that say how the records of a log are read, and what a log that
// is topics is reached with.
type reading struct {
	rejects string
	strict  bool
	dedup   int

	stdin  io.Reader
	access *access     // to topics
	env    *daemon.Env // of which standard error gets what should be known of the log and the model; nil: nobody is told

	opened *replay.Environment // the data, read once
	warned map[string]bool     // warnings told, by their text
}

// flags adds those of every verb that reads a log, and those of the servers that may hold it. What
// should be known of the log is told on env's standard error.
func (r *reading) flags(env *daemon.Env, f *pflag.FlagSet, a *access) {
	r.stdin, r.env, r.warned, r.opened, r.access = env.Stdin, env, map[string]bool{}, new(replay.Environment), a
	f.StringVar(&r.rejects, "rejects", "", "file for every record that is read and not used, a JSON object a line")
	f.BoolVar(&r.strict, "strict", false, "stop at the first malformed record; without it they are counted and left out")
	f.IntVar(&r.dedup, "dedup", logs.DefaultDedup, "ids remembered to find repeats, and the events of outcomes")
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
func (r *reading) say(env replay.Environment) {
	in := replay.IntakeOf(env)
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
func (s *source) readOnce(ctx context.Context) (replay.Environment, error) {
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
func (s *source) openData(ctx context.Context) (env replay.Environment, err error) {
	columns, err := s.readMapping()
	if err != nil {
		return nil, err
	}
	if !columns.IsZero() {
		if s.format != formatAuto && s.format != formatBandit {
			return nil, daemon.Usagef("--format %s: columns are named for --format %s only", s.format, formatBandit)
		}
		if err := columns.Validate(); err != nil {
			return nil, daemon.Usagef("%v", err)
		}
		s.format = formatBandit
	}
	o, done, err := s.reading.options(s.reading.stdin)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, done()) }()
	o.Inactive = true
	switch s.format {
	case formatBandit, formatMulticlass, formatOpenBandit:
		return s.openTable(s.format, columns, o)
	case formatAuto:
	default:
		if o.Format = s.format; !slices.Contains(logs.Formats(), s.format) {
			return nil, daemon.Usagef("--format %q: expected %s, %s, %s, %s, or one of %s", s.format, formatAuto, formatMulticlass, formatBandit, formatOpenBandit, logs.FormatNames())
		}
	}
	return s.openEvents(ctx, columns, o)
}

// openEvents opens data that is not named a table.
func (s *source) openEvents(ctx context.Context, columns replay.Mapping, o logs.Options) (replay.Environment, error) {
	if isTopics(s.data) {
		return s.openTopics(ctx, o)
	}
	if o.Format == "" && s.data != logs.Stdin && replay.SniffOpenBandit(s.data) {
		return s.openTable(formatOpenBandit, columns, o)
	}
	r, err := logs.Open(s.data, o)
	var table *logs.TableError
	if errors.As(err, &table) {
		return s.readTable("", columns, o, table.Tables)
	}
	if err != nil {
		return nil, err
	}
	return s.readEvents(filepath.Base(s.data), r)
}

// openTable opens data that is CSV.
func (s *source) openTable(format string, columns replay.Mapping, o logs.Options) (replay.Environment, error) {
	if format == formatOpenBandit && s.data != logs.Stdin {
		lo, err := s.tableOptions(format, columns, o)
		if err != nil {
			return nil, err
		}
		log, err := replay.OpenOpenBandit(s.data, lo)
		return log, errors.Join(err, lo.Ledger.Close())
	}
	t, err := logs.OpenTables(s.data, o.Stdin)
	if err != nil {
		return nil, err
	}
	return s.readTable(format, columns, o, t)
}

// readTable reads CSV; format "" means by its first line.
func (s *source) readTable(format string, columns replay.Mapping, o logs.Options, t *logs.Tables) (env replay.Environment, err error) {
	if _, head, err := t.Peek(); format == "" && err == nil {
		if format = formatMulticlass; replay.SniffOpenBanditHead(head) {
			format = formatOpenBandit
		}
	}
	lo, err := s.tableOptions(format, columns, o)
	if err != nil {
		t.Close()
		return nil, err
	}
	switch format {
	case formatBandit:
		env, err = replay.LogOfTables(t, lo)
	case formatOpenBandit:
		env, err = replay.OpenBanditOfTables(t, nil, lo)
	default:
		env, err = replay.MulticlassOfTables(t, lo.Ledger)
	}
	return env, errors.Join(err, lo.Ledger.Close())
}

// tableOptions returns how a table is read: with the model's range and actions.
func (s *source) tableOptions(format string, columns replay.Mapping, o logs.Options) (replay.LogOptions, error) {
	lo := replay.LogOptions{Mapping: columns, Ledger: logs.NewLedger(format, o.Rejects, o.Strict)}
	if s.model == "" || format == formatMulticlass {
		return lo, nil
	}
	m, err := s.parseModel()
	if err != nil {
		return lo, err
	}
	rewards := format == formatOpenBandit || columns.Reward != ""
	if m.Reward != rewards && m.Range != (loop.Range{Min: 0, Max: 1}) {
		return lo, daemon.Usagef("%s gives the range of a reward or of a loss, and the columns name the other", s.model)
	}
	if lo.Range = m.Range; format == formatBandit {
		lo.Actions = m.Actions
	}
	return lo, nil
}

// openTopics opens the topics of a live system.
func (s *source) openTopics(ctx context.Context, o logs.Options) (replay.Environment, error) {
	t, err := s.reading.openTopics(ctx, s.data, o)
	if err != nil {
		return nil, err
	}
	defer t.close()
	return s.readEvents(t.name, t.Reader)
}

// readEvents makes a log of events.
func (s *source) readEvents(name string, r *logs.Reader) (replay.Environment, error) {
	o := replay.EventOptions{Dedup: s.reading.dedup}
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
	return replay.ReadEvents(name, r, o)
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
