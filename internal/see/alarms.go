package see

import (
	_ "embed" // the rules
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// notReady is the alarm whose reason the process knows.
const notReady = "NotReady"

// alarm is something that an operator must know of.
type alarm struct {
	Name        string `yaml:"alert"`
	Expr        string // PromQL over all processes of a model, which are one job
	For         time.Duration
	Labels      struct{ Severity string } // wake: someone, at once; look: today
	Annotations struct {
		Says string `yaml:"summary"`     // what is wrong
		Do   string `yaml:"description"` // what to do about it
	}
}

//go:embed assets/alerts.yml
var alertRules []byte

// prometheusOnly are the alarms that one process cannot judge.
var prometheusOnly = []string{"ProcessDown", "NoProcess", "CrashLoop", "NoDecider", "NoJoiner", "DecisionsSlow",
	"ReplicasDiffer"}

// elsewhere reports whether the alarm takes Prometheus.
func (a *alarm) elsewhere() bool { return slices.Contains(prometheusOnly, a.Name) }

// alarms returns those of Prometheus's rules, in their order: the most urgent first.
func alarms() []alarm {
	var file struct{ Groups []struct{ Rules []alarm } }
	if err := yaml.Unmarshal(alertRules, &file); err != nil {
		panic(err) // not reached: a test reads them
	}
	all := file.Groups[0].Rules
	for i := range all {
		all[i].Name = strings.TrimPrefix(all[i].Name, "Hindsight")
	}
	return all
}
