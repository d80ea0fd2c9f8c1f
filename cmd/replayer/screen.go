package main

import (
	"encoding/json"
	"io"

	"golang.org/x/term"

	"hindsight/internal/daemon"
	"hindsight/internal/report"
)

// Widths of tables in columns. A terminal that is narrower than the least breaks lines.
const (
	leastWidth = 60
	narrow     = 80 // of one run
	mostWidth  = 100
)

// screen returns how wide tables may be on w, and whether that is a terminal.
func screen(w io.Writer) (width int, terminal bool) {
	if f := daemon.File(w); f != nil {
		if n, _, err := term.GetSize(int(f.Fd())); err == nil {
			return min(max(n, leastWidth), mostWidth), true
		}
	}
	return mostWidth, false
}

// tables returns where tables for people go: standard output, or where that gets v as JSON, standard error.
func tables(env *daemon.Env, asJSON bool, v any) (io.Writer, error) {
	if !asJSON {
		return env.Stdout, nil
	}
	return env.Stderr, json.NewEncoder(env.Stdout).Encode(v)
}

// show writes v on standard output, as JSON or for people.
func show(env *daemon.Env, asJSON bool, v interface{ Write(w io.Writer) error }) error {
	if asJSON {
		return json.NewEncoder(env.Stdout).Encode(v)
	}
	return v.Write(env.Stdout)
}

// tell writes a page where tables for people go, and v as JSON.
func tell(env *daemon.Env, asJSON bool, v any, page *report.Page, width int) error {
	w, err := tables(env, asJSON, v)
	if err != nil {
		return err
	}
	return page.WriteText(w, width)
}
