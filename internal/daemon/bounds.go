package daemon

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/pflag"
)

// Bounds say, by the name of a flag, the least and the most that its number may be: of a
// duration nanoseconds. Without a ceiling a slip of the finger can take the memory of a machine.
type Bounds map[string][2]float64

// boundsKey is the annotation of a flag that has bounds.
const boundsKey = "hindsight_bounds"

// Set states bounds of flags that are there; of those stated twice the last ones count. [Run] refuses other numbers,
// whether they come from the arguments or the environment.
func (b Bounds) Set(f *pflag.FlagSet) {
	for name, at := range b {
		if err := f.SetAnnotation(name, boundsKey, []string{inUnit(f, name, at[0]), inUnit(f, name,
			at[1])}); err != nil {
			panic("daemon: bounds of " + err.Error())
		}
	}
}

// inUnit writes a bound as the flag's numbers are written.
func inUnit(f *pflag.FlagSet, name string, v float64) string {
	if t := f.Lookup(name); t != nil && t.Value.Type() == "duration" {
		return time.Duration(v).String()
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// Bounded reports whether a flag's number has bounds.
func Bounded(f *pflag.Flag) bool { return len(f.Annotations[boundsKey]) == 2 }

// checkBounds reports the first flag whose number is out of its bounds.
func checkBounds(flags *pflag.FlagSet) (err error) {
	flags.VisitAll(func(f *pflag.Flag) {
		if err != nil || !f.Changed || !Bounded(f) { // a default may say that nothing is said
			return
		}
		at := f.Annotations[boundsKey]
		switch v, least, most := numberOf(f.Value.String()), numberOf(at[0]), numberOf(at[1]); {
		case v > most:
			err = fmt.Errorf("--%s %v: it must be at most %s", f.Name, f.Value, at[1])
		case !(v >= least):
			err = fmt.Errorf("--%s %v: it must be at least %s", f.Name, f.Value, at[0])
		}
	})
	return err
}

// numberOf reads what a flag of a number or of a duration prints.
func numberOf(s string) float64 {
	if d, err := time.ParseDuration(s); err == nil {
		return float64(d)
	}
	v, _ := strconv.ParseFloat(s, 64) // the flag has printed it
	return v
}
