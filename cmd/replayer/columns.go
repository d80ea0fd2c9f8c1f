package main

import (
	"github.com/spf13/pflag"

	"hindsight/internal/bounded"
	"hindsight/internal/logs"
	"hindsight/internal/model"
)

// columnFlags name the columns of a bandit log in CSV.
type columnFlags struct {
	mapping  string
	columns  logs.Mapping
	features string
	outcomes string
}

func (c *columnFlags) flags(f *pflag.FlagSet) {
	f.StringVar(&c.mapping, "mapping", "", "YAML file that names the columns of a bandit log, with the names of these "+
		"flags as keys")
	f.StringVar(&c.columns.Time, "time-column", "", "bandit log: when the decision was made; RFC 3339, YYYY-MM-DD "+
		"HH:MM:SS, or unix seconds")
	f.StringVar(&c.columns.OutcomeTime, "outcome-time-column", "", "bandit log: when the outcome was known")
	f.StringVar(&c.columns.Action, "action-column", "", "bandit log: the action played")
	f.StringVar(&c.columns.Loss, "loss-column", "", "bandit log: its loss")
	f.StringVar(&c.columns.Reward, "reward-column", "", "bandit log: its reward, instead of a loss")
	f.StringVar(&c.outcomes, "outcome-columns", "", "bandit log: columns of named outcomes, joined by commas, "+
		"instead of a loss or reward; an outcome is called as its column, behind the last dot; COLUMN:TIME_COLUMN "+
		"gives it a time of its own")
	f.StringVar(&c.columns.Propensity, "propensity-column", "", "bandit log: the probability with which the action "+
		"was played, in (0, 1]")
	f.StringVar(&c.columns.ID, "id-column", "", "bandit log: id of the round")
	f.StringVar(&c.features, "features", "", "bandit log: columns that are features, joined by commas; NAME:text or "+
		"NAME:number sets the type, NAME:ngrams counts the words of texts")
	f.StringVar(&c.columns.FeaturePrefix, "feature-prefix", "", "bandit log: prefix of further columns that are "+
		"features")
}

// readMapping returns the columns of a bandit log: those of --mapping, and over them those of flags.
func (c *columnFlags) readMapping() (logs.Mapping, error) {
	var m logs.Mapping
	if c.mapping != "" {
		b, err := bounded.Read(c.mapping, model.MaxBytes)
		if err != nil {
			return m, err
		}
		if m, err = logs.ParseMapping(c.mapping, b); err != nil {
			return m, err
		}
	}
	c.columns.Features, c.columns.Outcomes = logs.SplitColumns(c.features), logs.SplitColumns(c.outcomes)
	m.Override(c.columns)
	return m, nil
}
