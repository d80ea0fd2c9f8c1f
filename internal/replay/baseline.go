package replay

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
)

// HasBaseline reports whether a row of the log that env shows says what a baseline would
// have played.
func HasBaseline(env Environment) bool {
	v := logOf(env)
	return v != nil && v.log.baseline != nil
}

var errNoBaseline = errors.New("no event of this log names a baseline action (_ba of dsjson, baseline of our events); always:ACTION is a baseline that you name yourself")

// baseline plays what each event names as its baseline: the best one, where it ranks
// several. An event that names none plays its first action, the baseline of Azure
// Personalizer and of a model of ours that says nothing else; a flag says how many do.
func (o *OffPolicy) baseline() (*target, error) {
	log := o.log.log
	if log.baseline == nil {
		return nil, errNoBaseline
	}
	missing := 0
	slots := make([]int64, len(o.rows)) // per row that is judged on
	for i, t := range o.rows {
		if slots[i] = int64(log.baseline[o.log.row(int(t))]); slots[i] < 0 {
			slots[i] = 0
			missing++
		}
	}
	h := sha256.New()
	hashWords(h, slots)
	t := &target{madeOf: hex.EncodeToString(h.Sum(nil))}
	if missing > 0 {
		t.flags = append(t.flags, fmt.Sprintf("%d of %d rows name no baseline action; there it plays the first action, which may not be what your baseline would have done", missing, len(o.rows)))
	}
	var eligible []int32
	t.law = func(dst []float64, i int) {
		eligible = o.log.eligible(eligible[:0], int(o.rows[i]))
		dst[eligible[slots[i]]] = 1
	}
	return t, nil
}
