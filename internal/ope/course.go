package ope

import "unsafe"

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
func (l *look) course() (*Course, error) {
	s := l.s
	room, free, err := s.memory().Floats(4 * s.Units)
	if err != nil {
		return nil, err
	}
	defer free()
	units := unsafe.Slice((*[2]UnitSums)(unsafe.Pointer(unsafe.SliceData(room))), s.Units) // of a stretch, and all
	clear(units)
	n := s.Len()
	stretches := min(n, courseStretches)
	c := &Course{}
	var all Weighted
	squares := 0.0 // Σw² of rows
	for i := range stretches {
		var here Weighted
		from, to := i*n/stretches, (i+1)*n/stretches
		for t := from; t < to; t++ {
			if t%dropEvery == dropEvery-1 {
				s.memory().Drop()
			}
			weight, u := float64(l.c(t)*l.w(t)), new([2]UnitSums)
			if s.Unit != nil {
				u = &units[s.Unit[t]]
			}
			here.AddOf(&u[0], weight, s.Reward[t])
			all.AddOf(&u[1], weight, s.Reward[t])
			squares += float64(weight * weight)
		}
		for t := from; s.Unit != nil && t < to; t++ {
			units[s.Unit[t]][0] = UnitSums{}
		}
		c.Rows = append(c.Rows, to)
		c.Value, c.SE = append(c.Value, Figure(here.Mean())), append(c.SE, Figure(here.Spread()))
		c.SoFar, c.SoFarSE = append(c.SoFar, Figure(all.Mean())), append(c.SoFarSE, Figure(all.Spread()))
		c.ESS = append(c.ESS, Figure(ratio(all.W*all.W, squares)))
	}
	return c, nil
}
