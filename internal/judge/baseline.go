package judge

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"hindsight/internal/replay"
)

var errNoBaseline = errors.New("no event of this log names a baseline action (_ba of dsjson, baseline of our " +
	"events); always:ACTION is a baseline that you name yourself")

// baseline plays what each event names as its baseline: the best one, where it ranks
// several. An event that names none plays its first action, the baseline of Azure
// Personalizer and of a model of ours that says nothing else; a flag says how many do.
func (o *OffPolicy) baseline() (*target, error) {
	log := o.log
	if log.Baseline == nil {
		return nil, errNoBaseline
	}
	slot := func(i int) int32 { return log.Baseline[o.row(i)] } // of row i that is judged on; -1: none is named
	missing := 0
	h := sha256.New()
	for i := range o.rows {
		if log.Pass(i); slot(i) < 0 {
			missing++
		}
		replay.HashWords(h, []int64{int64(max(slot(i), 0))})
	}
	t := &target{madeOf: hex.EncodeToString(h.Sum(nil))}
	if missing > 0 {
		t.flags = append(t.flags, fmt.Sprintf("%d of %d rows name no baseline action; there it plays the first "+
			"action, which may not be what your baseline would have done", missing, len(o.rows)))
	}
	var eligible []int32
	t.law = func(dst []float64, i int) {
		eligible = log.Eligible(eligible[:0], o.row(i))
		dst[eligible[max(slot(i), 0)]] = 1
	}
	return t, nil
}
