package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"hindsight/internal/daemon"
	"hindsight/internal/tail"
)

// followed holds the flags of tail.
type followed struct {
	system
	every time.Duration
	last  int64
	lines int
	json  bool
}

func tailCommand(env *daemon.Env) *cobra.Command {
	t := &followed{system: system{env: env}}
	cmd := &cobra.Command{
		Use:   "tail",
		Short: "Follow a live system: fates, delays and losses as they come",
		Long: `Follow the logs of a live system and print a line at intervals: decisions per second,
fates of rounds and rejects since the last line, decisions that wait for their feedback,
delays of outcomes (p50 and p99 of all records read), and of the last 1,000 rounds the
share joined, the mean loss, and an estimate of the loss of uniform play.

The first line includes the records read back (--last), except in decisions per second.

It only reads, needs no secret seed, and works beside a running system. Ctrl-C ends it.`,
		Args: daemon.NoArguments,
		Example: "  replayer tail\n  replayer tail --log embedded:DIR --every 10s --json\n  replayer tail --log " +
			"kafka://localhost:9092 --name shop --last -1",
		RunE: func(cmd *cobra.Command, _ []string) error { return t.run(cmd.Context()) },
	}
	f := cmd.Flags()
	t.flags(f, "log to follow", false)
	f.DurationVar(&t.every, "every", 2*time.Second, "time between lines")
	f.Int64Var(&t.last, "last", 1000, "records to read back at the end of each topic; -1: all")
	f.IntVar(&t.lines, "lines", 0, "stop after this many lines; 0: never")
	f.BoolVar(&t.json, "json", false, "one JSON object per line")
	daemon.Bounds{"every": {float64(time.Millisecond), 24 * float64(time.Hour)}, "last": {-1, 1 << 53},
		"lines": {0, 1e9}}.Set(f)
	return cmd
}

func (t *followed) run(ctx context.Context) error {
	e, err := t.open(ctx)
	if err != nil {
		return err
	}
	defer e.Close()
	if e.Dir != "" && !e.Joined {
		fmt.Fprintf(t.env.Stderr, "no decider serves %s: this is what it holds, and no decider can be started on it "+
			"until this ends\n", e.Dir)
	}
	following, err := tail.Open(ctx, tail.Config{Log: e.Log, Name: t.name, Last: t.last})
	if err != nil {
		return fmt.Errorf("follow %q: %w", t.name, err)
	}
	reading, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		defer close(ended)
		ended <- following.Follow(reading)
	}()
	err = t.print(following, ended)
	stop()
	<-ended // before the log is closed
	return err
}

// print prints lines until the reading ends, or there are enough.
func (t *followed) print(following *tail.Tail, ended chan error) error {
	tick := time.NewTicker(t.every)
	defer tick.Stop()
	p := tail.Printer{W: t.env.Stdout, JSON: t.json}
	for n := 0; t.lines == 0 || n < t.lines; n++ {
		select {
		case <-tick.C:
		case err := <-ended:
			return err
		}
		l := following.Line()
		if err := p.Print(&l); err != nil {
			return err
		}
	}
	return nil
}
