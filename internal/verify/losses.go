package verify

import "slices"

// losses are the marks which say that a log lost its tail in a power failure. What such a mark
// excuses is judged when all logs were read.
type losses struct{ all []loss }

// loss is one such mark. Its writer had opened its log after the loss: the data before it is from before.
type loss struct {
	since   int64 // log time of the last data record before the mark; 0: none is kept
	time    int64 // log time of the mark
	rejects int64 // log time of the last reject before since, once all was read
}

func (l *losses) add(since, time int64) { l.all = append(l.all, loss{since: since, time: time}) }

// parts reports whether a loss may lie between two log times: what was done at the first
// may follow from what was gone at the second.
func (l *losses) parts(from, to int64) bool {
	return slices.ContainsFunc(l.all, func(m loss) bool { return from <= m.time && m.since <= to })
}

// rejects reports whether a loss may have taken a reject that was stored before the record of a log time, which passes
// what it tells of. Had that record been lost too, the reject would have been written again.
func (l *losses) rejects(passed int64) bool {
	return slices.ContainsFunc(l.all, func(m loss) bool { return m.rejects <= passed && passed <= m.time })
}
