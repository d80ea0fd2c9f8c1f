package see

import (
	"sync"
	"time"
)

// AlarmState is an alarm that this process sees.
type AlarmState struct {
	Name     string    `json:"name" doc:"of the alarm, as in compose/ALERTS.md"`
	Severity string    `json:"severity" doc:"wake: someone, at once; look: today"`
	Since    time.Time `json:"since" doc:"when its condition began to hold"`
	Firing   bool      `json:"firing" doc:"it has held for as long as it must; else it is on its way"`
	Says     string    `json:"says" doc:"what is wrong"`
	Do       string    `json:"do" doc:"what to do about it"`
}

// watchman judges the alarms that one process can judge.
type watchman struct {
	alarms []judged

	mu    sync.Mutex
	since map[string]time.Time // those whose condition holds
}

// judged is an alarm, and whether its condition holds here; nil: one process cannot judge it.
type judged struct {
	Alarm
	here func(m *moment) bool
}

func newWatchman() *watchman {
	w := &watchman{since: map[string]time.Time{}}
	for _, a := range Alarms() {
		x := judged{Alarm: a}
		if !a.Elsewhere {
			q, err := compile(a.Expr)
			if err != nil {
				panic(err) // not reached: a test compiles them all
			}
			x.here = func(m *moment) bool { return len(q(m)) > 0 }
		}
		w.alarms = append(w.alarms, x)
	}
	return w
}

// judge looks at every alarm and returns those whose condition holds, in the order of the
// list.
func (w *watchman) judge(m *moment) []AlarmState {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := []AlarmState{}
	for i := range w.alarms {
		a := &w.alarms[i]
		if a.here == nil {
			continue
		}
		if !a.here(m) {
			delete(w.since, a.Name)
			continue
		}
		since, ok := w.since[a.Name]
		if !ok {
			since = m.at
			w.since[a.Name] = since
		}
		out = append(out, AlarmState{Name: a.Name, Severity: a.Severity, Since: since, Firing: m.at.Sub(since) >= a.For, Says: a.Says, Do: a.Do})
	}
	return out
}

// elsewhere returns the names of the alarms that take Prometheus.
func (w *watchman) elsewhere() (names []string) {
	for _, a := range w.alarms {
		if a.here == nil {
			names = append(names, a.Name)
		}
	}
	return names
}
