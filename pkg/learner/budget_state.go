package learner

import (
	"fmt"
	"math"
	"slices"
)

// kindNamed is the kind of snapshots of DA-FA over named outcomes: behind the certificate stand its budgets.
const kindNamed byte = 34

// appendBinary appends prices, debts and the ring, from its oldest round on. Numbers are little endian, 8 bytes each.
func (b *budgets) appendBinary(dst []byte) []byte {
	dst = appendInt64(dst, int64(len(b.of)))
	for i := range b.of {
		o := &b.of[i]
		dst = append(appendInt64(dst, int64(len(o.Name))), o.Name...)
		dst = appendFloats(append(dst, flag(o.AtLeast)), []float64{o.Mean, b.price[i], b.debt[i]})
		dst = appendInt64(dst, b.told[i])
	}
	dst = appendInt64(appendInt64(dst, b.costs), int64(len(b.ring)))
	for j := range b.ring {
		f := b.ring[(b.next+j)%len(b.ring)]
		dst = appendFloats(appendInt64(dst, int64(len(f))), f)
	}
	return dst
}

// readBinary returns budgets with the parameters of b in the state that src begins with. A budget with another bound
// than the state's begins a new account, at the price of one unit of cost that was. changed says that the budgets are
// not those of the state; then nothing was predicted of them yet. Those in fresh have no price.
func (b *budgets) readBinary(src []byte) (n budgets, fresh bool, rest []byte, err error) {
	r := stateReader{b: src}
	n = budgets{of: b.of, price: make([]float64, len(b.of)), debt: make([]float64, len(b.of)),
		told: make([]int64, len(b.of)), known: make([]Outcome, len(b.known)), strange: make([]int64, len(b.of))}
	count := r.int64()
	same, found := count == int64(len(b.of)), 0
	for j := int64(0); j < count && !r.bad; j++ {
		name, good := string(r.take(int(r.int64()))), r.byte()
		mean, price, debt, told := r.float(0), r.float(0), r.float(math.Inf(-1)), r.int64()
		i := slices.IndexFunc(b.of, func(o Budget) bool { return o.Name == name && flag(o.AtLeast) == good })
		if r.bad = r.bad || good > 1 || mean == 0; r.bad || i < 0 {
			same = false
			continue
		}
		found++
		if n.price[i] = price; mean == b.of[i].Mean {
			n.debt[i], n.told[i] = debt, told
			continue
		}
		n.price[i], same = min(price*(b.of[i].Mean/mean), fourth(maxRoot)), false
	}
	n.costs = r.int64()
	length := r.int64()
	r.bad = r.bad || length > priceWindow || length > n.costs
	for j := int64(0); j < length && !r.bad; j++ {
		k := r.int64()
		if r.bad = r.bad || k == 0 || k > int64(len(r.b)/8) || k%(1+count) != 0; r.bad {
			break
		}
		f := make(forecast, k)
		r.floats(f, math.Inf(-1))
		n.ring = append(n.ring, f)
	}
	if r.bad {
		return n, false, nil, fmt.Errorf("budgets are damaged: %w", ErrSnapshot)
	}
	if !same {
		n.ring = nil
	}
	return n, found < len(b.of), r.b, nil
}
