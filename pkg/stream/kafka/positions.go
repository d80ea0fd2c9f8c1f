package kafka

import (
	"maps"
	"slices"
	"time"
)

// Report implements [stream.Reporter]. A group commits what it is told, so that the usual tools
// show lags; it is not read back.
func (l *Log) Report(topic string, partition int, next int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at[place{Topic: topic, Partition: partition}] = next
}

// reported takes what was reported of topics since the last time: a partition that another process
// has by now is reported there.
func (l *Log) reported(topics []string) map[place]int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := map[place]int64{}
	for p, next := range l.at {
		if slices.Contains(topics, p.Topic) {
			all[p] = next
			delete(l.at, p)
		}
	}
	return all
}

// commit commits positions, each time that they have changed.
func (m *groupMember) commit() error {
	done := map[place]int64{}
	tick := time.NewTicker(m.g.o.Heartbeat)
	defer tick.Stop()
	for {
		select {
		case <-m.ctx.Done():
			return nil
		case <-tick.C:
		}
		m.mu.Lock()
		generation, over := m.of, !m.over.IsZero()
		m.mu.Unlock()
		if generation == nil || over || m.g.log == nil {
			continue
		}
		offsets := map[string]map[int]int64{}
		all := m.g.log.reported(m.g.reports)
		for p, next := range all {
			if was, ok := done[p]; ok && was == next {
				continue
			}
			if offsets[p.Topic] == nil {
				offsets[p.Topic] = map[int]int64{}
			}
			offsets[p.Topic][p.Partition] = next
		}
		if err := generation.CommitOffsets(offsets); err != nil {
			m.log.Debug("positions not committed, which are for information", "error", err)
			continue
		}
		maps.Copy(done, all)
	}
}
