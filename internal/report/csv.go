package report

import (
	"encoding/csv"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"hindsight/internal/certify"
	"hindsight/internal/delay"
	"hindsight/internal/ope"
	"hindsight/internal/replay"
	"hindsight/internal/whole"
)

// csvFile is one CSV file: the names of its columns, which are the paths of the same figures
// in JSON, and its rows. A figure that is not known is empty.
type csvFile struct {
	Name    string
	Holds   string
	Columns []string
	Rows    [][]string
}

func (f *csvFile) row(parts ...[]string) {
	var row []string
	for _, p := range parts {
		row = append(row, p...)
	}
	f.Rows = append(f.Rows, row)
}

// WriteCSV writes the results into a folder, which is made if it is not there.
func (r *Results) WriteCSV(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, f := range r.files() {
		if err := f.Save(dir); err != nil {
			return err
		}
	}
	return nil
}

// CSVFiles returns what [Results.WriteCSV] writes into a folder.
func CSVFiles(dir string) []string {
	var names []string
	for _, f := range new(Results).files() {
		names = append(names, filepath.Join(dir, f.Name))
	}
	return names
}

// Save writes the file into a folder.
func (f *csvFile) Save(dir string) error {
	return whole.Write(filepath.Join(dir, f.Name), func(w io.Writer) error {
		return csv.NewWriter(w).WriteAll(append([][]string{f.Columns}, f.Rows...))
	})
}

// files returns all files of a backtest, also those without rows.
func (r *Results) files() []csvFile {
	return []csvFile{rowsFile("summary.csv", "a row a learner and kind of delays: means over row orders", r.Summary),
		r.runsFile(), r.courseFile(),
		perRun(r, "delays.csv", "the histogram of delays: a row a run and bar", binsOf),
		perRun(r, "contexts.csv", "the worst contexts: a row a run and group", contextsOf),
		perRun(r, "assumptions.csv", "what bounds stand on: a row a run and assumption",
			func(r *replay.Result) []certify.Assumption { return r.Certificate.Assumptions }),
		rowsFile("standings.csv", "a row a policy: how it stands", r.Standings), rowsFile("policies.csv",
			"a row a policy: its weights and flags", values(r.Policies)), r.estimatesFile(), r.policyCourseFile(),
		oneRow("estimators.csv", "one row: on what estimates depend", r.Estimators),
		rowsFile("sweep.csv", "a row a learner and delay", r.Sweep),
		oneRow("intake.csv", "one row: what became of each record that was read", r.Intake), r.skippedFile(),
		oneRow("data.csv", "one row: what was replayed", r.Data), r.parametersFile()}
}

// runKey are the columns that say which run a row is of; run counts from 0 in the order of `runs`.
var runKey = []string{"run", "learner", "delays", "order"}

func keyOf(i int, run *replay.Result) []string {
	return []string{strconv.Itoa(i), run.Learner, run.Delays.Spec, strconv.Itoa(run.Order)}
}

// rowsFile has a row for each of some structs.
func rowsFile[T any](name, holds string, rows []T) csvFile {
	f := csvFile{Name: name, Holds: holds, Columns: columnsOf[T]()}
	for i := range rows {
		f.row(cellsOf(&rows[i]))
	}
	return f
}

func (r *Results) runsFile() csvFile {
	f := csvFile{Name: "runs.csv", Holds: "a row a run", Columns: append([]string{"run"},
		columnsOf[replay.Result]()...)}
	for i := range r.Runs {
		f.row([]string{strconv.Itoa(i)}, cellsOf(&r.Runs[i]))
	}
	return f
}

func (r *Results) courseFile() csvFile {
	f := csvFile{Name: "course.csv", Holds: "a row a run and stretch of its rounds",
		Columns: append(append([]string{}, runKey...), "rounds", "time_ms")}
	lines := []string{"loss", "uniform", "first", "best", "logged"}
	for _, l := range lines {
		f.Columns = append(f.Columns, l+".mean", l+".se", l+".so_far", l+".so_far_se")
	}
	f.Columns = append(f.Columns, "regret")
	for _, kind := range certify.Kinds() {
		f.Columns = append(f.Columns, "bounds."+kind)
	}
	f.Columns = append(f.Columns, "outstanding_raw", "outstanding_released", "outstanding_released_max", "held")
	for i := range r.Runs {
		c := r.Runs[i].Course
		if c == nil {
			continue
		}
		for k, n := range c.Rounds {
			f.row(keyOf(i, &r.Runs[i]), []string{numeral(n), at(c.Times, k, numeral)}, courseCells(c, k))
		}
	}
	return f
}

// courseCells are the figures of stretch k.
func courseCells(c *replay.Course, k int) (row []string) {
	for _, l := range []*replay.CourseLine{&c.Loss, c.Uniform, c.First, c.Best, c.Logged} {
		if l == nil {
			l = &replay.CourseLine{}
		}
		row = append(row, at(l.Mean, k, known), at(l.SE, k, known), at(l.SoFar, k, known), at(l.SoFarSE, k, known))
	}
	row = append(row, at(c.Regret, k, known))
	for _, kind := range certify.Kinds() {
		row = append(row, at(c.Bounds[kind], k, known))
	}
	return append(row, at(c.Arriving, k, known), at(c.Waiting, k, known), at(c.Most, k, numeral), at(c.Held, k, known))
}

// at writes element k, nothing where there is none.
func at[T any](list []T, k int, write func(T) string) string {
	if k >= len(list) {
		return ""
	}
	return write(list[k])
}

func numeral(n int64) string { return strconv.FormatInt(n, 10) }

func known(x ope.Figure) string {
	if v := float64(x); !math.IsNaN(v) && !math.IsInf(v, 0) {
		return full(v)
	}
	return ""
}

func full(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// perRun has rows for each run, of what a run has of it.
func perRun[T any](r *Results, name, holds string, of func(*replay.Result) []T) csvFile {
	f := csvFile{Name: name, Holds: holds, Columns: slices.Concat(runKey, columnsOf[T]())}
	for i := range r.Runs {
		rows := of(&r.Runs[i])
		for k := range rows {
			f.row(keyOf(i, &r.Runs[i]), cellsOf(&rows[k]))
		}
	}
	return f
}

// contextOf is a group of contexts with what it is compared by.
type contextOf struct {
	Of string `json:"of"`
	replay.ContextGroup
}

func binsOf(r *replay.Result) []delay.Bin {
	if r.Course == nil {
		return nil
	}
	return r.Course.Delays
}

func contextsOf(r *replay.Result) (out []contextOf) {
	if r.Contexts != nil {
		for _, g := range r.Contexts.Worst {
			out = append(out, contextOf{r.Contexts.Of, g})
		}
	}
	return out
}

func (r *Results) skippedFile() csvFile {
	f := csvFile{Name: "skipped.csv", Holds: "records that were skipped: a row a reason", Columns: []string{"reason",
		"skipped_by_reason"}}
	if r.Intake != nil {
		for _, reason := range slices.Sorted(maps.Keys(r.Intake.Reasons)) {
			f.row([]string{reason, numeral(r.Intake.Reasons[reason])})
		}
	}
	return f
}

func (r *Results) estimatesFile() csvFile {
	f := csvFile{Name: "estimates.csv", Holds: "a row a policy and estimator",
		Columns: append([]string{"policy", "estimator"}, columnsOf[ope.Estimate]()...)}
	for _, p := range r.Policies {
		for i := range p.Estimates {
			f.row([]string{p.Policy, p.Estimates[i].Name}, cellsOf(&p.Estimates[i]))
		}
	}
	return f
}

func (r *Results) policyCourseFile() csvFile {
	f := csvFile{Name: "policy_course.csv", Holds: "a row a policy and stretch of rows",
		Columns: []string{"policy", "rows",
			"value", "se", "so_far", "so_far_se", "ess"}}
	for _, p := range r.Policies {
		c := p.Course
		if c == nil {
			continue
		}
		for k, n := range c.Rows {
			f.row([]string{p.Policy, strconv.Itoa(n), known(c.Value[k]), known(c.SE[k]), known(c.SoFar[k]),
				known(c.SoFarSE[k]), known(c.ESS[k])})
		}
	}
	return f
}

// values are what pointers that are not nil point to.
func values[T any](of []*T) (out []T) {
	for _, v := range of {
		if v != nil {
			out = append(out, *v)
		}
	}
	return out
}

// oneRow has the row of a struct, none if it is nil.
func oneRow[T any](name, holds string, v *T) csvFile { return rowsFile(name, holds, values([]*T{v})) }

func (r *Results) parametersFile() csvFile {
	f := csvFile{Name: "parameters.csv", Holds: "one row an input, or one row if nothing was read",
		Columns: append(columnsOf[Parameters](), "inputs.role", "inputs.name", "inputs.bytes", "inputs.sha256",
			"interrupted")}
	p, interrupted := r.Parameters, []string{strconv.FormatBool(r.Interrupted)}
	if p == nil {
		return f
	}
	for i := range p.Inputs {
		f.row(cellsOf(p), cellsOf(&p.Inputs[i]), interrupted)
	}
	if len(p.Inputs) == 0 {
		f.row(cellsOf(p), make([]string, len(columnsOf[Input]())), interrupted)
	}
	return f
}
