package ope

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

// course goes over the rows.
func (l *look) course() *Course {
	s := l.s
	n := s.Len()
	stretches := min(n, courseStretches)
	c := &Course{}
	var all Weighted
	for i := range stretches {
		var here Weighted
		from, to := i*n/stretches, (i+1)*n/stretches
		for t := from; t < to; t++ {
			if t%dropEvery == dropEvery-1 {
				s.memory().Drop()
			}
			weight := l.c(t) * l.w(t)
			here.Add(weight, s.Reward[t])
			all.Add(weight, s.Reward[t])
		}
		c.Rows = append(c.Rows, to)
		c.Value, c.SE = append(c.Value, Figure(here.Mean())), append(c.SE, Figure(here.Spread()))
		c.SoFar, c.SoFarSE = append(c.SoFar, Figure(all.Mean())), append(c.SoFarSE, Figure(all.Spread()))
		c.ESS = append(c.ESS, Figure(ratio(all.W*all.W, all.WW)))
	}
	return c
}
