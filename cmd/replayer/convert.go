package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"hindsight/internal/daemon"
	"hindsight/internal/logs"
)

type convert struct {
	env                *daemon.Env
	format, to, out    string
	rejects            string
	strict, json, keep bool
	dedup              int
}

func convertCommand(env *daemon.Env) *cobra.Command {
	c := &convert{env: env}
	cmd := &cobra.Command{
		Use:   "convert FILE",
		Short: "Read a log in any format, account for every line, write it in another",
		Long: `Read a log in any format, account for every line, write it in another.

FILE is a file, a folder, or - for standard input; gzip and zstd are told by their first
bytes, the format by the content. Every record that is read has one class:
read = events + duplicates + dangling + skipped + malformed.

Formats: ` + logs.FormatNames() + `. Memory does not grow with the log.`,
		Args: cobra.ExactArgs(1),
		Example: `  replayer convert personalizer/ --to parquet --out log.parquet
  replayer convert log.json.gz --to jsonl --rejects bad.jsonl > log.jsonl
  replayer convert log.json                      # only account for its lines`,
		RunE: func(cmd *cobra.Command, args []string) error { return c.run(cmd.Context(), args[0]) },
	}
	f := cmd.Flags()
	f.StringVar(&c.format, "format", "", "format of FILE, one of "+logs.FormatNames()+"; default: by its content")
	f.StringVar(&c.to, "to", "", "format to write, one of "+strings.Join(logs.WriteFormats(), ", ")+"; default: none, only account")
	f.StringVar(&c.out, "out", "-", "file to write; - is standard output")
	f.StringVar(&c.rejects, "rejects", "", "file for every record that is not written, a JSON object a line")
	f.BoolVar(&c.strict, "strict", false, "stop at the first malformed record")
	f.BoolVar(&c.keep, "keep-inactive", false, "write events that were not activated, too, marked so; they count as skipped all the same")
	f.IntVar(&c.dedup, "dedup", logs.DefaultDedup, "ids remembered to find repeats")
	f.BoolVar(&c.json, "json", false, "the account as one JSON object, on standard error if the log is written to standard output")
	return cmd
}

func (c *convert) run(ctx context.Context, path string) (err error) {
	if c.dedup < 1 {
		return daemon.Usagef("--dedup %d: it must be at least 1", c.dedup)
	}
	o := logs.Options{Format: c.format, Strict: c.strict, Dedup: c.dedup, Inactive: c.keep, Stdin: c.env.Stdin}
	if c.rejects != "" {
		f, err := os.Create(c.rejects)
		if err != nil {
			return err
		}
		defer f.Close()
		o.Rejects = f
	}
	r, err := logs.Open(path, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	account := c.env.Stdout
	var w logs.Writer
	if c.to != "" {
		out := c.env.Stdout
		if c.out != "-" {
			f, err := os.Create(c.out)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, f.Close()) }()
			out = f
		} else {
			account = c.env.Stderr
		}
		if w, err = logs.NewWriter(out, c.to); err != nil {
			return daemon.Usagef("--to: %v", err)
		}
	}
	if err := c.copy(ctx, r, w); err != nil {
		return errors.Join(err, c.report(account, r.Account()))
	}
	return c.report(account, r.Account())
}

// copy writes all that is read.
func (c *convert) copy(ctx context.Context, r *logs.Reader, w logs.Writer) error {
	var rec logs.Record
	for n := 0; ; n++ {
		if n&1023 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		err := r.Next(&rec)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if w == nil {
			continue
		}
		if err := w.Write(&rec); err != nil {
			return err
		}
	}
	if w == nil {
		return nil
	}
	return w.Close()
}

// report writes the account.
func (c *convert) report(w io.Writer, a *logs.Account) error {
	if c.json {
		return json.NewEncoder(w).Encode(struct {
			*logs.Account
			Errors []string `json:"first_malformed,omitempty"`
		}{a, a.Errors()})
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "format\t%s, %d files, %d bytes\nread\t%d\n", a.Format, a.Files, a.Bytes, a.Read)
	fmt.Fprintf(t, "events\t%d\t%d with an outcome, %d with the value for silence\n", a.Events, a.Observed, a.Defaulted)
	fmt.Fprintf(t, "duplicates\t%d\ndangling\t%d\nskipped\t%d\t%s\nmalformed\t%d\n", a.Duplicates, a.Dangling, a.Skipped, reasons(a.Reasons), a.Malformed)
	for _, e := range a.Errors() {
		fmt.Fprintf(t, "  %s\n", e)
	}
	if a.Forgotten {
		fmt.Fprintf(t, "note\trepeats more than %d records apart are not found; --dedup remembers more\n", c.dedup)
	}
	return t.Flush()
}

// reasons lists why records were skipped.
func reasons(m map[string]int64) string {
	var out []string
	for name, n := range m {
		out = append(out, fmt.Sprintf("%s: %d", name, n))
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}
