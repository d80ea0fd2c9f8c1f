// Package grammar reads what a flag says as a word with its numbers: of an environment, a delay, a twist.
package grammar

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Entry describes one environment, delay or learner for people.
type Entry struct {
	Name    string `json:"name"`
	Params  string `json:"params"` // as written behind the name; "" if none
	Meaning string `json:"meaning"`

	args []Argument
}

// Word returns the entry of a word, with what the numbers behind it may be.
func Word(name, params, meaning string, args ...Argument) Entry {
	return Entry{name, params, meaning, args}
}

// Argument is a number behind a word.
type Argument struct {
	name   string
	lo, hi float64
	whole  bool
}

// Number is any number from lo to hi.
func Number(name string, lo, hi float64) Argument { return Argument{name, lo, hi, false} }

// Whole is a whole number from lo to hi.
func Whole(name string, lo, hi float64) Argument { return Argument{name, lo, hi, true} }

// MaxCount is the largest number of later rounds: sums stay far from overflow, and it is beyond any horizon.
const MaxCount = 1 << 40

// Count is a number of rounds, from 0.
func Count(name string) Argument { return Whole(name, 0, MaxCount) }

// Size is a number of rounds, from 1.
func Size(name string) Argument { return Whole(name, 1, MaxCount) }

// Parse reads the numbers behind the word; has says whether there is anything behind it.
func (e Entry) Parse(text string, has bool) ([]float64, error) {
	var fields []string
	if has {
		fields = strings.Split(text, ",")
	}
	if len(fields) != len(e.args) {
		return nil, fmt.Errorf("%s takes %s, found %d parameters", e.Name, e.Usage(), len(fields))
	}
	var out []float64
	for i, a := range e.args {
		v, err := strconv.ParseFloat(strings.TrimSpace(fields[i]), 64)
		if err != nil || !(v >= a.lo && v <= a.hi) || (a.whole && v != math.Floor(v)) {
			return nil, fmt.Errorf("%s: %s is %q: %s", e.Name, a.name, fields[i], a.expected())
		}
		out = append(out, v+0) // +0: no −0
	}
	return out, nil
}

// Usage says which numbers a word takes.
func (e Entry) Usage() string {
	if e.Params == "" {
		return "no parameters"
	}
	return "the parameters " + e.Params
}

func (a Argument) expected() string {
	kind := "a number"
	if a.whole {
		kind = "a whole number"
	}
	return fmt.Sprintf("it must be %s in [%v, %v]", kind, a.lo, a.hi)
}

// Write writes a word with its numbers as they are read.
func Write(name string, args ...float64) string {
	sep := ":"
	for _, v := range args {
		name += sep + strconv.FormatFloat(v, 'f', -1, 64)
		sep = ","
	}
	return name
}
