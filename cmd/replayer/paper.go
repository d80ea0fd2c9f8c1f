package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"hindsight/internal/daemon"
	"hindsight/internal/paper"
	"hindsight/internal/report"
	"hindsight/internal/words"
)

type paperRun struct {
	env    *daemon.Env
	o      paper.Options
	claims []string
	out    string
	json   bool

	showing showing
}

func paperCommand(env *daemon.Env) *cobra.Command {
	p := &paperRun{env: env}
	cmd := &cobra.Command{
		Use:   "paper",
		Short: "Try every theorem and lower bound of the paper",
		Long: `Try every theorem and lower bound of the paper, with the code that runs live.

Each claim is played on environments that know the truth, over many seeds, and printed
as a table with standard errors and predictions. --out writes the tables as CSV,
everything as JSON, and a picture for each.`,
		Args: cobra.NoArgs,
		Example: `  replayer paper --quick
  replayer paper --out paper
  replayer paper --claim dafa --claim order --seeds 50`,
		RunE: func(cmd *cobra.Command, _ []string) error { return p.run(cmd.Context()) },
	}
	f := cmd.Flags()
	f.BoolVar(&p.o.Quick, "quick", false, "small sizes and 5 seeds, in under two minutes")
	f.IntVar(&p.o.Seeds, "seeds", 0, "seeds per point (default 20, with --quick 5)")
	f.Uint64Var(&p.o.Seed, "seed", 1, "the first seed")
	daemon.Bounds{"seeds": {1, 1e4}, "seed": anySeed}.Set(f)
	f.StringArrayVar(&p.claims, "claim", nil, "claim to try; may be repeated (default all: "+strings.Join(claimNames(),
		", ")+")")
	p.showing.htmlFlag(f)
	f.StringVar(&p.out, "out", "", "folder for JSON, CSV and pictures")
	f.BoolVar(&p.json, "json", false, "one JSON object on standard output; tables and bars go to standard error")
	return cmd
}

func claimNames() (names []string) {
	for _, c := range paper.Claims() {
		names = append(names, c.Name)
	}
	return names
}

// chosen returns the claims to try.
func (p *paperRun) chosen() ([]paper.Claim, error) {
	for _, name := range p.claims {
		if !slices.Contains(claimNames(), name) {
			return nil, daemon.Usagef("--claim %s: there is no such claim; there are %s", name,
				strings.Join(claimNames(), ", "))
		}
	}
	claims := paper.Claims()
	if len(p.claims) > 0 {
		claims = slices.DeleteFunc(claims, func(c paper.Claim) bool { return !slices.Contains(p.claims, c.Name) })
	}
	return claims, nil
}

func (p *paperRun) run(ctx context.Context) error {
	claims, err := p.chosen()
	if err != nil {
		return err
	}
	if p.out != "" {
		if err := os.MkdirAll(p.out, 0o755); err != nil {
			return err
		}
	}
	bar := newProgress(p.env.Stderr, paper.Work(claims, p.o), "paper")
	defer bar.finish()
	table := p.env.Stdout
	if p.json {
		table = p.env.Stderr
	}
	var findings []*paper.Finding
	err = paper.Try(ctx, claims, p.o, func(n int) { bar.add(int64(n)) }, func(f *paper.Finding) error {
		findings = append(findings, f)
		bar.clear()
		if err := report.Claim(f).WriteText(table, words.NoLimit); err != nil {
			return err
		}
		if p.out == "" {
			return nil
		}
		return f.Save(p.out)
	})
	if err != nil {
		return err
	}
	made, err := p.showing.parameters(p.env, &source{seed: p.o.Seed}, nil, nil)
	if err != nil {
		return err
	}
	if err := p.showing.writePage(p.env, report.Paper(findings, made)); err != nil {
		return err
	}
	if p.json {
		out := struct {
			Findings []*paper.Finding `json:"findings"`
		}{findings}
		if err := json.NewEncoder(p.env.Stdout).Encode(out); err != nil {
			return err
		}
	}
	return contradicted(findings)
}

// contradicted is an error if a check did not hold.
func contradicted(findings []*paper.Finding) error {
	var names []string
	for _, f := range findings {
		if !f.Holds() {
			names = append(names, f.Claim)
		}
	}
	if names == nil {
		return nil
	}
	return fmt.Errorf("some checks did not hold: %s", strings.Join(names, ", "))
}
