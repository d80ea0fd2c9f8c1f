package verify

import "slices"

// sortOutcomes puts the outcomes of a round in the order in which a joiner judged them:
// of log time, in a partition of offsets. Of equal log times in several partitions the
// order is that in which they could be read, and the logs tell it: what was rejected for
// the sake of another came after it, and the one that the feedback names is the last that
// counted. Else lower partitions come first.
func (t *trial) sortOutcomes(outs []*heldOutcome) {
	slices.SortStableFunc(outs, (*heldOutcome).before)
	for i := 0; i < len(outs); {
		end := i + 1
		for end < len(outs) && outs[end].time == outs[i].time {
			end++
		}
		t.mergeTie(outs[i:end])
		i = end
	}
}

// mergeTie merges the outcomes of one log time, which are sorted by partition and
// offset: of the first of each partition the one of the lowest rank goes first.
func (t *trial) mergeTie(outs []*heldOutcome) {
	if outs[0].partition == outs[len(outs)-1].partition {
		return
	}
	for i := range outs {
		next := i
		for k := i + 1; k < len(outs); k++ {
			if outs[k-1].partition != outs[k].partition && t.rank(outs[k]) < t.rank(outs[next]) {
				next = k
			}
		}
		o := outs[next]
		copy(outs[i+1:next+1], outs[i:next])
		outs[i] = o
	}
}

// rank orders outcomes of equal log time by what the logs say of them.
func (t *trial) rank(o *heldOutcome) int {
	switch {
	case o.info == nil && o.partition == t.named.partition && o.offset == t.named.offset:
		return 2
	case o.info == nil:
		return 1
	case o.info.reasons()&(malformed|mismatch) != 0: // for its own sake, while the round waited
		return 0
	}
	return 3
}
