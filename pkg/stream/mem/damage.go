package mem

import (
	"slices"

	"hindsight/pkg/stream"
)

// Truncate drops the records below before, as retention does. Unlike Trim it works on every topic.
func (l *Log) Truncate(topic string, number int, before int64) error {
	return l.with("truncate", topic, number, func(p *partition) { p.dropBefore(before) })
}

// DropTail loses the records at and after from and reuses their offsets, as a log does after a power cut.
func (l *Log) DropTail(topic string, number int, from int64) error {
	return l.with("drop tail", topic, number, func(p *partition) {
		i := p.search(from)
		if i < len(p.recs) {
			p.next = p.recs[i].Offset
		}
		p.replace(p.recs[:i:i])
	})
}

// Edit replaces the records of a partition by what f returns for them: to drop, double, swap or change some. f must not
// keep or change the bytes it is given; offsets must grow and stay below the next one.
func (l *Log) Edit(topic string, number int, f func([]stream.Record) []stream.Record) error {
	return l.with("edit", topic, number, func(p *partition) { p.replace(f(slices.Clone(p.recs))) })
}

// replace replaces the records.
func (p *partition) replace(recs []stream.Record) {
	p.recs, p.bytes = recs, 0
	for i := range recs {
		p.bytes += int64(size(&recs[i]))
	}
	p.signal()
}
