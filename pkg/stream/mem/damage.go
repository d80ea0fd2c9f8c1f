package mem

import "hindsight/pkg/stream"

// Truncate drops the records below before, as retention does. Unlike Trim it works on every topic.
func (l *Log) Truncate(topic string, partition int, before int64) error {
	p, err := l.find("truncate", topic, partition)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dropBefore(before)
	return nil
}

// DropTail loses the records at and after from and reuses their offsets, as a log does after a power cut.
func (l *Log) DropTail(topic string, partition int, from int64) error {
	p, err := l.find("drop tail", topic, partition)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	i := p.search(from)
	for j := i; j < len(p.recs); j++ {
		p.bytes -= int64(size(&p.recs[j]))
	}
	if i < len(p.recs) {
		p.next = p.recs[i].Offset
	}
	p.recs = p.recs[:i:i]
	p.signal()
	return nil
}

// Edit replaces the records of a partition by what f returns for them: to drop, double, swap or change some. f must not
// keep or change the bytes it is given; offsets must grow and stay below the next one.
func (l *Log) Edit(topic string, partition int, f func([]stream.Record) []stream.Record) error {
	p, err := l.find("edit", topic, partition)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.recs = f(append([]stream.Record(nil), p.recs...))
	p.bytes = 0
	for i := range p.recs {
		p.bytes += int64(size(&p.recs[i]))
	}
	p.signal()
	return nil
}
