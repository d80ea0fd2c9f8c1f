package mem

import (
	"context"
	"slices"
)

// Topics implements [stream.Lister].
func (l *Log) Topics(context.Context) ([]string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var names []string
	for name := range l.topics {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, nil
}
