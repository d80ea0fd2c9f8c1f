package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"hindsight/internal/daemon"
	"hindsight/internal/logs"
	"hindsight/internal/whole"
	"hindsight/internal/words"
)

type convert struct {
	env            *daemon.Env
	to, out        string
	json, keep     bool
	source         source
	unwritten      int64    // events that the format cannot hold
	firstUnwritten []string // what the first say
}

func convertCommand(env *daemon.Env) *cobra.Command {
	c := &convert{env: env}
	cmd := &cobra.Command{
		Use:   "convert LOG",
		Short: "Read a log in any format, account for every line, write it in another",
		Long: `Read a log in any format, account for every line, write it in another.

LOG is a file, a folder, - for standard input, or the topics of a live system:
embedded:DIR, nats://… or kafka://…. gzip and zstd are detected by their first bytes,
the format by the content. Every record has one class:
read = events + duplicates + dangling + skipped + malformed.

Formats: ` + logs.FormatNames() + `; bandit (CSV whose columns are named) and obd (Open
Bandit CSV or its folder). Memory does not grow with the log.`,
		Args: daemon.OneArgument("log", "log.json"),
		Example: `  replayer convert personalizer/ --to parquet --out log.parquet
  replayer convert log.json.gz --to jsonl --rejects bad.jsonl > log.jsonl
  replayer convert log.csv --action-column offer --reward-column paid --propensity-column p \
    --features age,country --to jsonl
  replayer convert embedded:./hindsight-data --to parquet --out log.parquet
  replayer convert log.json                      # only account for its lines`,
		RunE: func(cmd *cobra.Command, args []string) error { return c.run(cmd.Context(), args[0]) },
	}
	f := cmd.Flags()
	c.source.logFlags(env, f, new(logAccess))
	f.StringVar(&c.to, "to", "", "format to write, one of "+strings.Join(logs.WriteFormats(), ", ")+"; default: none, "+
		"only account")
	f.StringVar(&c.out, "out", "-", "file to write; - is standard output")
	f.BoolVar(&c.keep, "keep-inactive", false, "also write events that were not activated, marked so; they still "+
		"count as skipped")
	f.BoolVar(&c.json, "json", false, "the account as one JSON object, on standard error if the log is written to "+
		"standard output")
	return cmd
}

func (c *convert) run(ctx context.Context, path string) (err error) {
	if c.to != "" && !slices.Contains(logs.WriteFormats(), c.to) {
		return daemon.Usagef("--to %s: expected one of %s", c.to, strings.Join(logs.WriteFormats(), ", "))
	}
	o, done, err := c.source.reading.options(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	o.Inactive, o.Long = c.keep, func(string) bool { return true }
	r, err := c.source.openLog(ctx, path, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	account := c.env.Stdout
	write := func(out io.Writer) error {
		w, err := logs.NewWriter(out, c.to)
		if err != nil {
			return err
		}
		return c.copy(ctx, r, w)
	}
	switch {
	case c.to == "":
		err = c.copy(ctx, r, nil)
	case c.out == "-":
		_, terminal := screen(c.env.Stdout)
		account = c.env.Stderr
		err = write(daemon.Raw(c.env.Stdout, terminal))
	default:
		err = whole.Write(c.out, write)
	}
	return errors.Join(err, c.report(account, r.Account()))
}

// copy writes all that is read.
func (c *convert) copy(ctx context.Context, r *records, w logs.Writer) error {
	n := 0
	err := r.Each(func(rec *logs.Record) error {
		if n++; n&1023 == 1 && ctx.Err() != nil {
			return ctx.Err()
		}
		if w == nil {
			return nil
		}
		return c.write(w, rec)
	})
	if err != nil || w == nil {
		return err
	}
	return w.Close()
}

// write writes a record. One that the format cannot hold is counted, and left out.
func (c *convert) write(w logs.Writer, r *logs.Record) error {
	err := w.Write(r)
	var cannot *logs.UnwritableError
	if !errors.As(err, &cannot) || c.source.reading.strict {
		return err
	}
	if c.unwritten++; len(c.firstUnwritten) < logs.ShownMalformed {
		c.firstUnwritten = append(c.firstUnwritten, cannot.Error())
	}
	return nil
}

func (c *convert) report(w io.Writer, a *logs.Account) error {
	if c.json {
		return json.NewEncoder(w).Encode(struct {
			*logs.Account
			Errors         []string `json:"first_malformed,omitempty"`
			Unwritten      int64    `json:"unwritten"` // events that the format to write cannot hold
			FirstUnwritten []string `json:"first_unwritten,omitempty"`
		}{a, a.Errors(), c.unwritten, c.firstUnwritten})
	}
	t := words.Table{Left: words.All}
	t.Pair("format", "%s; files: %d, bytes: %d", a.Format, a.Files, a.Bytes)
	t.Pair("read", "%d", a.Read)
	t.Pair("events", "%d  %d with an outcome, %d with the value for silence", a.Events, a.Observed, a.Defaulted)
	t.Pair("duplicates", "%d", a.Duplicates)
	t.Pair("dangling", "%d", a.Dangling)
	t.Pair("skipped", "%s", strings.TrimSpace(fmt.Sprintf("%d  %s", a.Skipped, strings.Join(a.ReasonTexts(), ", "))))
	t.Pair("malformed", "%d", a.Malformed)
	if err := t.Write(w, words.NoLimit); err != nil {
		return err
	}
	for _, e := range a.Errors() {
		fmt.Fprintf(w, "  %s\n", e)
	}
	if c.unwritten > 0 {
		fmt.Fprintf(w, "not written  %d\n  %s\n", c.unwritten, strings.Join(c.firstUnwritten, "\n  "))
	}
	if a.Forgotten {
		fmt.Fprintf(w, "note         repeats more than %d records apart are not found; --dedup remembers more\n",
			c.source.reading.dedup)
	}
	return nil
}
