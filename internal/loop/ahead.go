package loop

// aheadSet are the rounds of a partition that have their fate while an older one waits:
// with order: arrival or early, and behind a gap. It is a bit a round, from the oldest that waits.
type aheadSet struct {
	words ring[uint64] // bit N%64 of word N/64
	base  int64        // N/64 of the first word
	n     int          // bits set
}

// add adds a round behind all up to released, which are not in the set.
func (a *aheadSet) add(n, released int64) {
	if a.words.len() == 0 {
		a.base = (released + 1) >> 6
	}
	w := n>>6 - a.base
	for int64(a.words.len()) <= w {
		a.words.push(0)
	}
	if word := a.words.at(int(w)); *word&(1<<(n&63)) == 0 {
		*word |= 1 << (n & 63)
		a.n++
	}
}

func (a *aheadSet) has(n int64) bool {
	w := n>>6 - a.base
	return a.n > 0 && w >= 0 && w < int64(a.words.len()) && *a.words.at(int(w))&(1<<(n&63)) != 0
}

// join takes those out that follow on the rounds up to released, and returns the last of
// them.
func (a *aheadSet) join(released int64) int64 {
	for a.has(released + 1) {
		released++
		*a.words.at(int(released>>6 - a.base)) &^= 1 << (released & 63)
		a.n--
	}
	for a.words.len() > 0 && (a.n == 0 || a.base < (released+1)>>6) {
		a.words.pop()
		a.base++
	}
	return released
}

// appendTo appends the rounds of the set, ascending.
func (a *aheadSet) appendTo(dst []int64) []int64 {
	for i := range a.words.len() {
		for b := range int64(64) {
			if *a.words.at(i)&(1<<b) != 0 {
				dst = append(dst, (a.base+int64(i))<<6+b)
			}
		}
	}
	return dst
}
