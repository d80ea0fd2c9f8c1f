package front

import (
	"slices"
	"time"
)

const (
	// longestGap is the most that the time to one answer counts for: after a stall it would tell of the stall only.
	longestGap = int64(25 * time.Millisecond)
	// The pace is that of the last leastPace to mostPace answers, those of paceTime where that is between.
	leastPace, mostPace = 256, 1024
	paceTime            = float64(400 * time.Millisecond)
	// calmBlocks blocks of calmBlock answers each say how long one takes while few others
	// wait: the least counts, for any of them may have met a stall.
	calmBlocks, calmBlock = 16, 32
)

// pace tells how fast answers come while there is always more to answer. The zero value is ready.
type pace struct {
	time, answers float64 // both are halved from time to time
	at            int64   // the last answer
	behind        bool    // more than few waited behind it
}

// answered notes an answer, and whether more than few wait behind it.
func (p *pace) answered(now int64, behind bool) {
	if p.behind {
		p.time += float64(min(now-p.at, longestGap))
		p.answers++
		if p.answers > 2*leastPace && p.time > paceTime || p.answers > mostPace {
			p.time, p.answers = p.time/2, p.answers/2
		}
	}
	p.at, p.behind = now, behind
}

// each returns the time for one answer, ns; 0 where it is not known yet.
func (p *pace) each() float64 {
	if p.answers < leastPace {
		return 0
	}
	return p.time / p.answers
}

// calm tells how long an answer takes that came for while few waited. The zero value is ready.
type calm struct {
	least [calmBlocks]int64 // of each block of answers
	n     int               // answers ever
}

// note counts one that took so long.
func (c *calm) note(took int64) {
	block := &c.least[c.n/calmBlock%calmBlocks]
	if c.n%calmBlock == 0 || took < *block {
		*block = took
	}
	c.n++
}

// took returns the least of the last blocks, ns; 0 if there is none.
func (c *calm) took() int64 {
	blocks := min((c.n+calmBlock-1)/calmBlock, calmBlocks)
	if blocks == 0 {
		return 0
	}
	return slices.Min(c.least[:blocks])
}
