package judge

import (
	"fmt"
	"math"

	"hindsight/internal/ope"
)

// outcomeSums are Σ w·y and their like of one policy for every named outcome, over the rows in which it is known:
// whether the reward is or not.
type outcomeSums struct {
	o      *OffPolicy
	names  []string
	of     []ope.Weighted // of w·y
	whole  []ope.Weighted // of w·y as a value, each row once
	units  []unitSums     // of outcome k and unit u at k·units+u; the last is of a row without one
	events []float64      // that the rows stand for
	absent []int          // rows without
	met    []float64      // units with
	next   int            // of rows
	y, p   []float64
}

// unitSums are those of a unit.
type unitSums struct{ by, all ope.UnitSums }

// unit returns the sums of outcome k of the unit of a row.
func (s *outcomeSums) unit(k, row int) *unitSums {
	if log := s.o.log; log.Unit != nil && log.Unit[row] >= 0 {
		return &s.units[k*log.Units+int(log.Unit[row])]
	}
	last := &s.units[len(s.units)-1]
	*last = unitSums{}
	return last
}

// newSums returns sums of nothing; nil of a log with one loss.
func (o *OffPolicy) newSums() *outcomeSums {
	names := o.env.Named()
	if names == nil {
		return nil
	}
	return &outcomeSums{o: o, names: names, of: make([]ope.Weighted, len(names)),
		whole: make([]ope.Weighted, len(names)), units: make([]unitSums, len(names)*o.log.Units+1),
		events: make([]float64, len(names)), absent: make([]int, len(names)), met: make([]float64, len(names)),
		y: make([]float64, len(names)), p: make([]float64, len(o.env.Actions))}
}

// law returns the law over the sample of one over the rows, and adds the rows as they are met.
func (s *outcomeSums) law(of ope.Policy) ope.Policy {
	if s == nil || of == nil {
		return of
	}
	return func(dst []float64, i int) {
		row := s.o.at(i)
		s.until(row, of)
		of(dst, row)
		s.add(dst)
	}
}

// until adds the rows before one; those that a law is asked about are in order.
func (s *outcomeSums) until(row int, of ope.Policy) {
	for s.next < row {
		clear(s.p)
		if of == nil {
			s.add(nil)
			continue
		}
		of(s.p, s.next)
		s.add(s.p)
	}
}

// add adds the next row, in which the policy has the law p; nil: that which made the log.
func (s *outcomeSums) add(p []float64) {
	t := int(s.o.rows[s.next])
	row := s.o.row(s.next)
	s.next++
	log := s.o.log
	w := log.Stands(row)
	if p != nil {
		w *= p[log.Action[row]] / log.Props[row]
	}
	s.o.env.NamedValues(s.y, t, log.Slot(row))
	for k, y := range s.y {
		if math.IsNaN(y) {
			s.absent[k]++
			continue
		}
		u := s.unit(k, row)
		if u.all[0] == 0 {
			s.met[k]++
		}
		s.of[k].AddOf(&u.by, w, y)
		s.whole[k].AddOf(&u.all, 1, w*y)
		s.events[k] += log.Stands(row)
	}
}

// outcomes returns the estimates, once the rows behind the last of the sample are added, too.
func (s *outcomeSums) outcomes(of ope.Policy) (out []ope.Outcome) {
	if s == nil {
		return nil
	}
	s.until(len(s.o.rows), of)
	for k := range s.of {
		out = append(out, ope.OutcomeOf(s.names[k], &s.of[k], &s.whole[k], s.met[k], s.events[k]))
	}
	return out
}

// flags says which outcomes are missing.
func (s *outcomeSums) flags() (out []string) {
	if s == nil {
		return nil
	}
	for k, n := range s.absent {
		if n > 0 {
			out = append(out, fmt.Sprintf("%d rows have another outcome and not %s, and its estimate leaves them "+
				"out: right only if outcomes go missing whatever they would be", n, s.names[k]))
		}
	}
	return out
}
