package delay

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"math"
	"sort"
	"strconv"
	"strings"

	"hindsight/internal/bounded"
	"hindsight/internal/grammar"
	"hindsight/internal/logs"
	"hindsight/internal/scan"
)

// recorded returns the delays of a log by its times: the outcome of round t comes after
// every decision with an earlier time, however late, and before the first, j, with the
// same or a later one. Later decisions made before it are j−1−t, at least 0.
func recorded(decided, came []int64) []int64 {
	d := make([]int64, len(decided))
	for t, at := range came {
		d[t] = Of(decided, at, t)
	}
	return d
}

// Of is that of the outcome of round t, which came at a time.
func Of(decided []int64, at int64, t int) int64 {
	if at == scan.NoTime {
		return Never
	}
	return int64(max(0, firstNotBefore(decided, at)-1-t))
}

// firstNotBefore returns the index of the first decision with at least this time.
func firstNotBefore(decided []int64, at int64) int {
	return sort.Search(len(decided), func(j int) bool { return decided[j] >= at })
}

// Recorded are the delays that a log tells, counted as logs are described elsewhere: d_t = j − t, where j is the first
// decision at or after the outcome (T if there is none); σ_t counts the round itself; a round is overtaken if the
// outcome of a later round has an earlier time, even if no decision lies between.
//
// In [Report.Raw] and [Delays] the round's own decision does not count, so that a delay of 0 means known to the next
// decision: there every d_t > 0 and σ is less by 1, D by T, and of two outcomes between the same decisions none
// overtakes the other. A run in which every round has its recorded outcome and nothing is withdrawn differs from this
// in nothing else.
type Recorded struct {
	Stats
	Overtaken int64 `json:"overtaken"`
}

// Describe describes the delays of a log by its times; pass is called with each row.
func Describe(decided, came []int64, pass func(t int)) *Recorded {
	var d delayCounts
	var waiting Schedule
	known, n := int64(0), int64(len(came))
	for t, at := range came {
		pass(t)
		j := n
		if at != scan.NoTime {
			j = int64(firstNotBefore(decided, at))
		}
		switch wait := max(0, j-int64(t)); wait {
		case n - int64(t):
			d.addCut(wait, n+1)
		default:
			d.add(wait)
			waiting.push(Awaited{due: int64(t) + wait})
		}
		for len(waiting.queue) > 0 && waiting.queue[0].due <= int64(t) {
			waiting.pop()
			known++
		}
		d.sigma = max(d.sigma, int64(t)+1-known)
	}
	out := &Recorded{Stats: d.stats()}
	const end = int64(math.MaxInt64)
	first := end
	for t := len(came) - 1; t >= 0; t-- {
		pass(t)
		at := came[t]
		if at == scan.NoTime {
			at = end
		}
		if first < at {
			out.Overtaken++
		}
		first = min(first, at)
	}
	return out
}

func openOwnDelays(t *delayTerm, o *Options) error {
	if o.Came == nil {
		return errors.New("this data has no times of outcomes; name them with --time-column and " +
			"--outcome-time-column, or lend those of a file with recorded:FILE")
	}
	t.decided, t.times = o.Decided, o.Came
	return nil
}

func openFileDelays(t *delayTerm, o *Options) (err error) {
	f, err := bounded.Open(t.file, bounded.Any)
	if err != nil {
		return err
	}
	defer f.Close()
	r := bufio.NewReader(f)
	first, _ := r.Peek(64)
	line, _, _ := strings.Cut(string(first), "\n")
	if _, err := parseLine(line); err == nil {
		t.delays, err = readDelays(t.file, r)
		return err
	}
	t.delays, err = readTimes(t.file, logs.Mapping{Time: cmp.Or(o.Times.Time, "decision_ts"),
		OutcomeTime: cmp.Or(o.Times.OutcomeTime, "outcome_ts")})
	return err
}

// readTimes reads the delays of a CSV with the times of decisions and outcomes.
func readTimes(file string, m logs.Mapping) ([]int64, error) {
	r, err := logs.Open(file, logs.Options{Format: logs.Times, Mapping: m, Strict: true})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var decided, came []int64
	err = r.Each(func(rec *logs.Record) error {
		decided, came = append(decided, rec.Time), append(came, rec.OutcomeTime)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(decided) == 0 {
		return nil, scan.NoRows(file)
	}
	return recorded(decided, came), nil
}

// readDelays reads a file whose first line is a delay.
func readDelays(file string, r *bufio.Reader) ([]int64, error) {
	var out []int64
	lines := bufio.NewScanner(r)
	for n := int64(1); lines.Scan(); n++ {
		d, err := parseLine(lines.Text())
		if err != nil {
			return nil, &scan.LineError{File: file, Line: n, Msg: err.Error()}
		}
		out = append(out, d)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return out, nil
}

func parseLine(text string) (int64, error) {
	text = strings.TrimSpace(text)
	if text == "never" {
		return Never, nil
	}
	d, err := strconv.ParseInt(text, 10, 64)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q is not a delay: expected a whole number of later decisions, or never", text)
	}
	return min(d, grammar.MaxCount), nil
}

// drawRecorded returns the recorded delay of a round; a file that is at its end begins anew.
func drawRecorded(t *delayTerm, p *Play) int64 {
	if t.times != nil {
		i := p.Round % len(t.times)
		return Of(t.decided, t.times[i], i)
	}
	return t.delays[p.Round%len(t.delays)]
}
