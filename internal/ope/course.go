package ope

import "math"

// courseStretches is how many stretches a [Course] has at most.
const courseStretches = 64

// Course is what the log says of a policy over time: the weighted mean Σwr/Σw (SNIPS) in
// stretches of equally many rows, and from the first row to the end of each stretch.
type Course struct {
	Rows    []int    `json:"rows"` // by the end of each stretch
	Value   []Figure `json:"value"`
	SE      []Figure `json:"se"`
	SoFar   []Figure `json:"so_far"`
	SoFarSE []Figure `json:"so_far_se"`
	ESS     []Figure `json:"ess"` // of the rows so far
}

// sums are running sums of weighted rewards.
type sums struct{ w, wr, ww, wwr, wwrr float64 }

func (s *sums) add(w, r float64) {
	s.w += w
	s.wr += w * r
	s.ww += w * w
	s.wwr += w * w * r
	s.wwrr += w * w * r * r
}

// mean returns Σwr/Σw with its standard error √Σw²(r−mean)²/Σw.
func (s *sums) mean() (value, se Figure) {
	m := ratio(s.wr, s.w)
	return Figure(m), Figure(ratio(math.Sqrt(max(0, s.wwrr-2*m*s.wwr+m*m*s.ww)), s.w))
}

// course goes over the rows.
func (l *look) course() *Course {
	s := l.s
	n := s.Len()
	stretches := min(n, courseStretches)
	c := &Course{}
	var all sums
	for i := range stretches {
		var here sums
		from, to := i*n/stretches, (i+1)*n/stretches
		for t := from; t < to; t++ {
			if t%dropEvery == dropEvery-1 {
				s.memory().Drop()
			}
			weight := l.c(t) * l.w(t)
			here.add(weight, s.Reward[t])
			all.add(weight, s.Reward[t])
		}
		value, se := here.mean()
		soFar, soFarSE := all.mean()
		c.Rows = append(c.Rows, to)
		c.Value, c.SE = append(c.Value, value), append(c.SE, se)
		c.SoFar, c.SoFarSE = append(c.SoFar, soFar), append(c.SoFarSE, soFarSE)
		c.ESS = append(c.ESS, Figure(ratio(all.w*all.w, all.ww)))
	}
	return c
}
