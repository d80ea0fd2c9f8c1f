package learner

// Refute leaves the first n functions, as if the data had refuted the others.
func Refute(m *Models, n int) {
	for i := n; i < len(m.top); i++ {
		m.top[i] = m.floor
	}
	m.drop()
}

// SetPrice sets the price of the first budget.
func (d *DAFA) SetPrice(v float64) { d.budgets.price[0] = v }
