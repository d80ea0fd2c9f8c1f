package replay

import (
	"bytes"
	"math"
)

// plainRow takes the next line of a labelled CSV if it is a row like those before it: no
// quote, a label and categories that are known, decimal numbers. It takes none of another
// row, which the general way then reads and judges.
func (p *csvParser) plainRow() bool {
	if p.lines == nil || p.comma != ',' {
		return false
	}
	line, size, err := p.lines.peek()
	if err != nil || bytes.IndexByte(line, '"') >= 0 {
		return false
	}
	end := bytes.IndexByte(line, ',')
	if end < 0 {
		return false
	}
	label, known := p.labels[string(line[:end])]
	if !known {
		return false
	}
	p.numbers, p.categories = p.m.numbers.add(), p.m.categories.add()
	if !p.plainCells(line, end) {
		p.undo()
		return false
	}
	p.m.rows = append(p.m.rows, label)
	p.lines.take(line, size)
	return true
}

// plainCells sets the row at hand to the cells behind the comma at end, and reports whether
// it knows all of them and there are as many as columns.
func (p *csvParser) plainCells(line []byte, end int) bool {
	for i := range p.m.columns {
		if end == len(line) {
			return false // a cell is missing
		}
		c := &p.m.columns[i]
		rest := line[end+1:]
		if c.numeric {
			v, n := decimal(rest)
			if n < 0 || n < len(rest) && rest[n] != ',' {
				return false
			}
			p.numbers[c.at] = v
			end += 1 + n
			continue
		}
		n := bytes.IndexByte(rest, ',')
		if n < 0 {
			n = len(rest)
		}
		value, known := p.values[i][string(rest[:n])]
		if n == 0 {
			value, known = -1, true
		}
		if !known {
			return false
		}
		p.categories[c.at] = value
		end += 1 + n
	}
	return end == len(line)
}

// powersOfTen are those that are floats exactly.
var powersOfTen = [...]float64{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22}

// decimal returns the number that b begins with, and the bytes it takes: a sign, digits and
// a point, from 1 to 15 digits in all. Then digits and power of ten are exact and their
// quotient is the float next to the number, as strconv has it (Clinger 1990, How to Read
// Floating Point Numbers Accurately). No bytes are NaN, an absent cell; n is -1 where there
// is a sign or a point without digits, or there are too many.
func decimal(b []byte) (v float64, n int) {
	negative := false
	if len(b) > 0 && (b[0] == '-' || b[0] == '+') {
		negative = b[0] == '-'
		n = 1
	}
	var digits uint64
	first, decimals := n, 0
	for ; n < len(b) && b[n]-'0' <= 9; n++ {
		digits = 10*digits + uint64(b[n]-'0')
	}
	count := n - first
	if n < len(b) && b[n] == '.' {
		n++
		point := n
		for ; n < len(b) && b[n]-'0' <= 9; n++ {
			digits = 10*digits + uint64(b[n]-'0')
		}
		decimals = n - point
		count += decimals
	}
	switch {
	case n == 0:
		return math.NaN(), 0
	case count == 0 || count > 15:
		return 0, -1
	}
	v = float64(digits)
	if decimals > 0 {
		v /= powersOfTen[decimals]
	}
	if negative {
		v = -v
	}
	return v, n
}
