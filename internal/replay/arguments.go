package replay

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// argument is a number behind a word: of a delay or of an environment.
type argument struct {
	name   string
	lo, hi float64
	whole  bool
}

// most is the largest whole number of later rounds: sums stay far from overflow, and it is beyond any horizon.
const most = 1 << 40

func countArg(name string) argument { return argument{name, 0, most, true} }

func sizeArg(name string) argument { return argument{name, 1, most, true} }

// parseArguments reads the numbers behind the word that e describes.
func (e Entry) parseArguments(args []argument, text string, has bool) ([]float64, error) {
	var fields []string
	if has {
		fields = strings.Split(text, ",")
	}
	if len(fields) != len(args) {
		return nil, fmt.Errorf("%s takes %s, found %d parameters", e.Name, e.usage(), len(fields))
	}
	var out []float64
	for i, a := range args {
		v, err := strconv.ParseFloat(strings.TrimSpace(fields[i]), 64)
		if err != nil || !(v >= a.lo && v <= a.hi) || (a.whole && v != math.Floor(v)) {
			return nil, fmt.Errorf("%s: %s is %q: %s", e.Name, a.name, fields[i], a.expected())
		}
		out = append(out, v+0) // +0: no −0
	}
	return out, nil
}

func (e Entry) usage() string {
	if e.Params == "" {
		return "no parameters"
	}
	return "the parameters " + e.Params
}

func (a argument) expected() string {
	kind := "a number"
	if a.whole {
		kind = "a whole number"
	}
	return fmt.Sprintf("it must be %s in [%v, %v]", kind, a.lo, a.hi)
}

// specification writes a word with its numbers as they are read.
func specification(name string, args ...float64) string {
	sep := ":"
	for _, v := range args {
		name += sep + strconv.FormatFloat(v, 'f', -1, 64)
		sep = ","
	}
	return name
}

// Entry describes one environment, delay or learner for people.
type Entry struct {
	Name    string `json:"name"`
	Params  string `json:"params"` // as written behind the name; "" if none
	Meaning string `json:"meaning"`
}
