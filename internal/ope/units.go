package ope

import "unsafe"

// units are what the rows of each unit add to the sums together. Every estimate is linear in that: a standard error and
// a bootstrap over units are those over rows, with units for rows (the cluster-robust error; Cameron and Miller 2015,
// section II).
type units struct {
	of   func(u int) terms
	n    int
	free func()
}

// byUnit adds up the rows of each unit.
func (l *look) byUnit(row func(t int) terms) (*units, error) {
	s := l.s
	if s.Unit == nil {
		return &units{row, s.Len(), func() {}}, nil
	}
	const floats = int(unsafe.Sizeof(terms{}) / unsafe.Sizeof(0.0))
	room, free, err := s.memory().Floats(floats * s.Units)
	if err != nil {
		return nil, err
	}
	sums := unsafe.Slice((*terms)(unsafe.Pointer(unsafe.SliceData(room))), s.Units)
	clear(sums)
	for t := range s.all() {
		x := row(t)
		sums[s.Unit[t]].add(&x)
	}
	return &units{func(u int) terms { return sums[u] }, s.Units, free}, nil
}
