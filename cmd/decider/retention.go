package main

import (
	"fmt"
	"time"

	"hindsight/internal/model"
)

// retention is the value of --retention: a duration, with days as they are in model files.
type retention time.Duration

// Set implements [pflag.Value].
func (r *retention) Set(s string) error {
	d, err := model.ParseDuration(s)
	if err != nil {
		return fmt.Errorf("expected a duration, for example 7d, 36h or 90m; 0 keeps everything")
	}
	*r = retention(d)
	return nil
}

// String implements [pflag.Value].
func (r *retention) String() string { return time.Duration(*r).String() }

// Type implements [pflag.Value].
func (r *retention) Type() string { return "duration" }
