package loop

import (
	"crypto/sha256"
	"encoding/binary"
)

// heldOut reports whether a round of this id, or unit, is answered by the baseline although the mode is live. It is a
// function of the id alone, so that every process and every model holds out the same ids. Such a round is one of mode
// shadow: its propensities are the baseline's, and the learner's law is logged beside them.
func (d *Decider) heldOut(id string) bool {
	share := d.replica.epoch.Rules.HoldOut
	if share == 0 {
		return false
	}
	d.hashed = append(append(d.hashed[:0], "hindsight hold out "...), id...)
	sum := sha256.Sum256(d.hashed)
	return float64(binary.BigEndian.Uint64(sum[:])>>11)*0x1p-53 < share
}

// mixed returns the law of a round before its id is hashed: the baseline's with probability HoldOut, else the
// learner's. Candidates are judged with it, as it covers what either plays. nil: the log does not tell both.
func (j *Judge) mixed(actions []string, learner []float64) []float64 {
	share := j.rules.HoldOut
	if len(learner) != len(actions) {
		return nil
	}
	j.mix = j.mix[:0]
	for a, b := range j.base {
		j.mix = append(j.mix, float64(share*b)+float64((1-share)*learner[a]))
	}
	return j.mix
}
