package learner

// Refute leaves the first n functions, as if the data had refuted the others.
func Refute(m *Models, n int) {
	for i := n; i < len(m.top); i++ {
		m.top[i] = m.floor
	}
	m.drop()
}
