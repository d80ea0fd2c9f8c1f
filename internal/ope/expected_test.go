package ope

import (
	"encoding/csv"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const (
	openData  = "../../../shared/data"
	menItems  = 34
	tolerance = 1e-9
)

// menLog is the Open Bandit data of the campaign for men under one behaviour policy.
type menLog struct {
	Sample
	users [4][]string
}

func readMen(t testing.TB, behaviour string) *menLog {
	t.Helper()
	f, err := os.Open(filepath.Join(openData, "obd_men", behaviour, "men.csv"))
	if err != nil {
		t.Skipf("the Open Bandit data is not beside the repository: %v", err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]int{}
	for i, name := range rows[0] {
		at[name] = i
	}
	number := func(row []string, name string) float64 {
		v, err := strconv.ParseFloat(row[at[name]], 64)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	log := &menLog{Sample: Sample{Actions: menItems}}
	for _, row := range rows[1:] {
		log.Action = append(log.Action, int32(number(row, "item_id")))
		log.Propensity = append(log.Propensity, number(row, "propensity_score"))
		log.Reward = append(log.Reward, number(row, "click"))
		for j := range log.users {
			log.users[j] = append(log.users[j], row[at["user_feature_"+strconv.Itoa(j)]])
		}
	}
	return log
}

// policy is one of those that the check values name.
func (m *menLog) policy(t testing.TB, name string) Policy {
	t.Helper()
	hashed := func(j string, row int) int {
		n, _ := strconv.Atoi(j)
		v, err := strconv.ParseUint(m.users[n][row][:8], 16, 32)
		if err != nil {
			t.Fatal(err)
		}
		return int(v % menItems)
	}
	switch {
	case name == "uniform":
		return func(dst []float64, _ int) { spread(dst, 1) }
	case name == "eps0.1_hash_u0":
		return func(dst []float64, row int) {
			spread(dst, .1)
			dst[hashed("0", row)] += .9
		}
	case strings.HasPrefix(name, "hash_u"):
		return func(dst []float64, row int) { dst[hashed(name[len("hash_u"):], row)] = 1 }
	case strings.HasPrefix(name, "always_item_"):
		a, err := strconv.Atoi(name[len("always_item_"):])
		if err != nil {
			t.Fatal(err)
		}
		return func(dst []float64, _ int) { dst[a] = 1 }
	}
	t.Fatalf("unknown policy %s", name)
	return nil
}

// spread gives every action its part of a mass.
func spread(dst []float64, mass float64) {
	for a := range dst {
		dst[a] = mass / float64(len(dst))
	}
}

// expectedRows returns the table of check values.
func expectedRows(t testing.TB) (columns []string, rows [][]string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(openData, "expected.md"))
	if err != nil {
		t.Skipf("the check values are not beside the repository: %v", err)
	}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		switch {
		case cells[0] == "log":
			columns = cells
		case strings.HasPrefix(cells[0], "men/"):
			rows = append(rows, cells)
		}
	}
	if len(columns) != 14 || len(rows) < 12 {
		t.Fatalf("the table has %d columns and %d rows", len(columns), len(rows))
	}
	return columns, rows
}

// figureOf returns what a column of the check values means.
func figureOf(t testing.TB, e *Evaluation, column string) float64 {
	t.Helper()
	switch column {
	case "matched":
		return float64(e.Matched)
	case "ESS":
		return float64(e.ESS)
	case "max w":
		return float64(e.MaxWeight)
	case "IPS se":
		return float64(e.Estimates.Get("ips").SE)
	}
	v := e.Estimates.Get(strings.ToLower(column))
	if v == nil {
		t.Fatalf("no estimate %s", column)
	}
	return float64(v.Value)
}

// published is the reward model of the check values: 100 rows of mean .01 for every action.
var published = rewardModel{Mean: .01, Count: 100}

// TestExpectedValues meets every check value. They are written with 9 or 10 significant
// digits: beyond the tolerance only the rounding of what is written is allowed.
func TestExpectedValues(t *testing.T) {
	logs := map[string]*menLog{"men/random": readMen(t, "random"), "men/bts": readMen(t, "bts")}
	columns, rows := expectedRows(t)
	values := 0
	for _, row := range rows {
		log := logs[row[0]]
		o := Defaults()
		o.Bootstrap, o.Model = 0, published
		e, err := Evaluate(&log.Sample, row[1], log.policy(t, row[1]), o)
		if err != nil {
			t.Fatal(err)
		}
		for i := 2; i < len(columns); i++ {
			want, err := strconv.ParseFloat(row[i], 64)
			if err != nil {
				t.Fatal(err)
			}
			values++
			if got := figureOf(t, e, columns[i]); math.Abs(got-want) > tolerance+halfDigit(row[i]) {
				t.Errorf("%s %s: %s is %.12g, want %s", row[0], row[1], columns[i], got, row[i])
			}
		}
	}
	if values != 144 {
		t.Errorf("%d values, want 12 of 12 policies", values)
	}
}

// halfDigit is half a unit of the last digit of a figure that is written in full.
func halfDigit(text string) float64 {
	mantissa, exponent, _ := strings.Cut(text, "e")
	power, _ := strconv.Atoi(exponent)
	_, fraction, _ := strings.Cut(mantissa, ".")
	if len(fraction) == 0 {
		return 0
	}
	return math.Pow10(power-len(fraction)) / 2
}

// TestLoggingPolicy: the policy that made the log gives the click rate with weight 1.
func TestLoggingPolicy(t *testing.T) {
	for behaviour, clicks := range map[string]float64{"random": 46, "bts": 69} {
		log := readMen(t, behaviour)
		e, err := Evaluate(&log.Sample, "logging", nil, Defaults())
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"ips", "snips", "dr", "sndr", "cips10"} {
			if got := float64(e.Estimates.Get(name).Value); math.Abs(got-clicks/10000) > tolerance {
				t.Errorf("%s: %s is %v, want %v", behaviour, name, got, clicks/10000)
			}
		}
		if e.MaxWeight != 1 || e.MeanWeight != 1 || e.ESS != 10000 || e.Matched != 10000 || e.Overlap < 1-1e-9 ||
			len(e.Flags) != 0 {
			t.Errorf("%s: %+v", behaviour, e)
		}
	}
}
