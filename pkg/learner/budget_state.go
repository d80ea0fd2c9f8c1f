package learner

import (
	"math"
	"slices"

	"hindsight/pkg/oracle"
)

// kindNamed is the kind of snapshots of DA-FA over named outcomes: behind the certificate stand its budgets.
const kindNamed byte = 34

// fresh returns budgets with the parameters of b and no state.
func (b *budgets) fresh() budgets {
	n := len(b.of)
	return budgets{of: b.of, price: make([]float64, n), debt: make([]float64, n), told: make([]int64, n),
		known: make([]Outcome, len(b.known)), strange: make([]int64, n)}
}

// code is prices, debts and the ring, from its oldest round on. It reads into fresh ones. A budget with another bound
// than the state's begins a new account, at the price of one unit of cost that was. If the budgets are not those of
// the state nothing was predicted of them yet; unpriced says that some have no price.
func (b *budgets) code(c *oracle.Coder) (unpriced bool) {
	count := c.Length(len(b.of), 41)
	same, found := count == len(b.of), 0
	for j := range count {
		var o Budget
		var price, debt float64
		var told int64
		if !c.Reading() {
			o, price, debt, told = b.of[j], b.price[j], b.debt[j], b.told[j]
		}
		name := c.Raw([]byte(o.Name), c.Length(len(o.Name), 1))
		c.Flag(&o.AtLeast)
		c.Float(0, &o.Mean, &price)
		c.Float(math.Inf(-1), &debt)
		c.Words(&told)
		if !c.Must(o.Mean != 0, "budgets are damaged") {
			return false
		}
		if !c.Reading() {
			continue
		}
		i := slices.IndexFunc(b.of, func(of Budget) bool { return of.Name == string(name) && of.AtLeast == o.AtLeast })
		if i < 0 {
			same = false
			continue
		}
		found++
		if b.price[i] = price; o.Mean == b.of[i].Mean {
			b.debt[i], b.told[i] = debt, told
			continue
		}
		b.price[i], same = min(price*(b.of[i].Mean/o.Mean), fourth(maxRoot)), false
	}
	c.Words(&b.costs)
	length := c.Length(len(b.ring), 8)
	if !c.Must(length <= priceWindow && int64(length) <= b.costs, "budgets are damaged") {
		return false
	}
	for j := range length {
		var f forecast
		if !c.Reading() {
			f = b.ring[(b.next+j)%len(b.ring)]
		}
		k := c.Length(len(f), 8)
		if c.Reading() {
			if !c.Must(k > 0 && k%(1+count) == 0, "budgets are damaged") {
				return false
			}
			f = make(forecast, k)
			b.ring = append(b.ring, f)
		}
		c.Floats(f)
	}
	if c.Must(true, "budgets are damaged") && c.Reading() && !same {
		b.ring = nil
	}
	return found < len(b.of)
}
