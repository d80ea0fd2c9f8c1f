package see

import (
	"sync"
	"time"
)

// alarmState is an alarm that this process sees.
type alarmState struct {
	Name     string    `json:"name"`     // of the alarm, as in docs/reference/alerts.md
	Severity string    `json:"severity"` // wake: someone, at once; look: today
	Since    time.Time `json:"since"`    // when its condition began to hold
	Firing   bool      `json:"firing"`   // it has held for as long as it must; else it is on its way
	Says     string    `json:"says"`     // what is wrong
	Do       string    `json:"do"`       // what to do about it
}

// watchman judges the alarms that one process can judge.
type watchman struct {
	alarms    []judged
	elsewhere []string // names of the others

	mu    sync.Mutex
	since map[string]time.Time // those whose condition holds
}

// judged is an alarm, and what its condition is worth here.
type judged struct {
	alarm
	query
}

func newWatchman() *watchman {
	w := &watchman{since: map[string]time.Time{}}
	for _, a := range alarms() {
		if a.elsewhere() {
			w.elsewhere = append(w.elsewhere, a.Name)
			continue
		}
		q, err := compile(a.Expr)
		if err != nil {
			panic(err) // not reached: a test compiles them all
		}
		w.alarms = append(w.alarms, judged{a, q})
	}
	return w
}

// judge evaluates every alarm and returns those whose condition holds, in the order of the list.
func (w *watchman) judge(m *moment) []alarmState {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := []alarmState{}
	for i := range w.alarms {
		a := &w.alarms[i]
		if len(a.query(m)) == 0 {
			delete(w.since, a.Name)
			continue
		}
		since, ok := w.since[a.Name]
		if !ok {
			since = m.at
			w.since[a.Name] = since
		}
		out = append(out, alarmState{Name: a.Name, Severity: a.Labels.Severity, Since: since,
			Firing: m.at.Sub(since) >= a.For, Says: a.Annotations.Says, Do: a.Annotations.Do})
	}
	return out
}
