package dataset

import (
	"fmt"
	"strings"

	"hindsight/internal/logs"
	"hindsight/internal/scan"
)

// Intake says what became of every record of a log that was read, and what was made of the events: the identity of
// [logs.Account], and of its events and dangling outcomes how they were joined.
type Intake struct {
	logs.Account
	FirstMalformed []string `json:"first_malformed,omitempty"`

	Rows int64 `json:"rows"` // rounds that are replayed

	Joined    int64 `json:"joined"`    // dangling outcomes that became those of an event without one
	Extra     int64 `json:"extra"`     // dangling outcomes of events that have one: the first counts
	Unmatched int64 `json:"unmatched"` // dangling outcomes whose event is not there, or too far away
	Mismatch  int64 `json:"mismatch"`  // dangling outcomes for another action than was played
	Activated int64 `json:"activated"` // events that the log skips as not activated, and an outcome activates
	Withdrawn int64 `json:"withdrawn"` // events that an outcome withdraws: no rows
	Weighted  int64 `json:"weighted"`  // events that stand for more than one, since others were dropped
	Baselines int64 `json:"baselines"` // events that say what a baseline would have played

	Units   int64 `json:"units,omitempty"`      // that rows name
	Learned int64 `json:"by_learner,omitempty"` // events of a learner that had learned from this log

	Unpropensed int64 `json:"without_propensity"` // events; one is enough, and policies cannot be judged
	Untimed     int64 `json:"without_time"`       // events; one is enough, and windows cannot be times
	Timeless    int64 `json:"outcomes_without_time"`
	Sorted      bool  `json:"sorted"`      // rows were not in the order of time, and were sorted
	Sets        bool  `json:"action_sets"` // rounds differ in the actions that they may play
	Featured    bool  `json:"action_features"`
	Actions     int   `json:"actions"`
}

// Notes are sentences on what a reader should know of the log before its figures.
func (in *Intake) Notes() []string {
	var out []string
	note := func(n int64, format string, args ...any) {
		if n > 0 {
			out = append(out, fmt.Sprintf(format, args...))
		}
	}
	note(in.Malformed, "malformed records left out: %d; figures are right only if what made them so has nothing to do "+
		"with losses", in.Malformed)
	note(in.Withdrawn, "events withdrawn: %d; nobody saw what was decided, and they are no rounds", in.Withdrawn)
	note(in.Weighted, "events that stand for several, since others were dropped (pdrop): %d; every figure counts "+
		"each for as many as it stands for, and a learner meets it once", in.Weighted)
	note(in.Unpropensed, "events without a propensity: %d; policies cannot be judged on this log", in.Unpropensed)
	note(in.Reasons[logs.AssignedBare], "decisions that another system assigned without a propensity: %d; they are "+
		"in no estimate, and their outcomes have no event", in.Reasons[logs.AssignedBare])
	note(in.Units, "rows of one unit may depend on each other, and there are %d units: the errors of estimates count "+
		"all rows of a unit as one", in.Units)
	note(in.Untimed, "events without a time: %d; rows are in the order of the log, and a window cannot be a time",
		in.Untimed)
	note(in.Timeless, "outcomes without a time: %d; recorded delays take them as known at once", in.Timeless)
	note(in.Unmatched, "outcomes without an event: %d", in.Unmatched)
	note(in.Mismatch, "outcomes for another action than was played: %d, left out", in.Mismatch)
	if in.Sorted {
		out = append(out, "rows were sorted by time")
	}
	if in.Forgotten {
		out = append(out, "ids were forgotten for lack of room: repeats and outcomes further apart are not found; "+
			"--dedup remembers more")
	}
	return out
}

// noRows is the error of a log in CSV without a row.
func (in *Intake) noRows(file string) error {
	if bad := in.Errors(); len(bad) > 0 {
		return &scan.LineError{File: file, Line: 2, Msg: "there is no row below the header that can be read; the " +
			"first says: " + bad[0]}
	}
	return scan.NoRows(file)
}

// nothing is the error of a log without a row.
func (in *Intake) nothing(name string) error {
	why := append(in.ReasonTexts(), in.Summary())
	if bad := in.Errors(); len(bad) > 0 {
		why = append(why, "the first malformed record is "+bad[0])
	}
	if in.Malformed > 0 && in.Malformed == in.Read && in.Format != logs.Msgpack && in.Format != logs.Parquet {
		why = append(why, "a record is a line: of JSON that is spread over several, jq -c . FILE > NEW makes lines")
	}
	return fmt.Errorf("%s: there is no event in it that can be replayed (%s)", name, strings.Join(why, "; "))
}
