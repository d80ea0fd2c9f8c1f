package watch

import "math"

// StoreUsage returns how many bytes the store of a log holds, how many it may, and how many are free on its disk.
type StoreUsage func() (held, limit, free int64, err error)

// WatchStore shows how full the store is that this process serves. nil: it serves none.
func (m *Metrics) WatchStore(u StoreUsage) {
	if u != nil {
		m.store.Store(&u)
	}
}

// storeMetrics makes the metrics of the store.
func (m *Metrics) storeMetrics(c *catalog) {
	show := func(name, help, alert string, of func(held, limit, free int64) int64) {
		c.gaugeFunc(name, help, alert, func() float64 {
			u := m.store.Load()
			if u == nil {
				return math.NaN()
			}
			held, limit, free, err := (*u)()
			if err != nil {
				return math.NaN()
			}
			return float64(of(held, limit, free))
		})
	}
	show("hindsight_store_bytes",
		"What the store of the embedded log holds; NaN in a process that serves none, as the next two: look at what "+
			"your servers and brokers show.", "it passes 80 % of its limit",
		func(held, _, _ int64) int64 { return held })
	show("hindsight_store_limit_bytes",
		"What it may hold: the file limit in its folder. At that the log takes no more.",
		"", func(_, limit, _ int64) int64 { return limit })
	show("hindsight_store_free_bytes", "What is free on its disk for this user.",
		"it is less than a tenth of it and the store together", func(_, _, free int64) int64 { return free })
}
