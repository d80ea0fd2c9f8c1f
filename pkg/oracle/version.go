package oracle

import "fmt"

// Newest is the newest version of what the oracles over features compute from the same
// examples. Logs name the version that they were learned with, and are learned again with
// it, to the same bits.
//
//	1: absent features read as the mean; parameters left to the program are fixed at the start
//	2: absent numbers differ from the mean; parameters follow the actions and columns seen;
//	   regressions whose predictions stop holding start anew (change.go)
const Newest = 2

// ByWhatComes, of β, λ or the number of random features, leaves the parameter to the oracle:
// it follows the actions and columns learned so far. Since version 2.
const ByWhatComes = -1

// knownVersion returns a version, 1 where none is given, or says that there is none such.
func knownVersion(v int) (int, error) {
	if v == 0 {
		v = 1
	}
	if v < 1 || v > Newest {
		return 0, fmt.Errorf("version is %d: it must be in 1…%d", v, Newest)
	}
	return v, nil
}
