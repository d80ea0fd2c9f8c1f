package see

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.yaml.in/yaml/v3"

	"hindsight/internal/model"
	"hindsight/internal/modelfile"
	"hindsight/internal/service"
	"hindsight/internal/testkit/leasetest"
	"hindsight/internal/topics"
	"hindsight/internal/watch"
	"hindsight/pkg/stream/lease"
	"hindsight/pkg/stream/mem"
)

// tape is what Prometheus gathers, once a minute, from real processes of one model.
type tape struct {
	began   time.Time
	minutes int
	series  map[string][]string // by name and labels: the value of each minute, "_" where it was not there
}

// gather adds a minute of the processes that run, by instance.
func (p *tape) gather(t *testing.T, running processes) {
	t.Helper()
	for instance, x := range running {
		families, err := x.reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				if m.GetHistogram() != nil {
					continue
				}
				labels := []string{fmt.Sprintf("instance=%q", instance), `job="hindsight"`}
				for _, l := range m.GetLabel() {
					labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
				}
				v := valueOf(m)
				if f.GetName() == "hindsight_log_time_seconds" { // promtool's clock starts in 1970
					v -= float64(p.began.UnixNano()) / 1e9
				}
				p.add(f.GetName()+"{"+strings.Join(labels, ",")+"}", strconv.FormatFloat(v, 'g', -1, 64))
			}
		}
		p.add(fmt.Sprintf("up{instance=%q,job=%q}", instance, "hindsight"), "1")
	}
	p.minutes++
}

func (p *tape) add(series, value string) {
	if p.series == nil {
		p.series = map[string][]string{}
	}
	p.series[series] = append(p.until(series), value)
}

// until returns the values of a series up to now. Prometheus marks what is there no longer.
func (p *tape) until(series string) []string {
	values := p.series[series]
	if n := len(values); 0 < n && n < p.minutes {
		values = append(values, "stale")
	}
	for len(values) < p.minutes {
		values = append(values, "_")
	}
	return values
}

// play has promtool judge the alarms over the tape: at each minute exactly those given fire.
func (p *tape) play(t *testing.T, firing map[int][]string) {
	t.Helper()
	tool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("no promtool here; Debian has it: apt-get install prometheus")
	}
	rules, err := filepath.Abs("../../compose/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	type object = map[string]any
	var input, checks []object
	for _, name := range slices.Sorted(maps.Keys(p.series)) {
		input = append(input, object{"series": name, "values": strings.Join(p.until(name), " ")})
	}
	for _, at := range slices.Sorted(maps.Keys(firing)) {
		samples := []object{}
		for _, name := range firing[at] {
			samples = append(samples, object{"labels": fmt.Sprintf(`{alertname="Hindsight%s"}`, name), "value": 1})
		}
		checks = append(checks, object{"expr": `group by (alertname) (ALERTS{alertstate="firing"})`,
			"eval_time": fmt.Sprintf("%dm", at), "exp_samples": samples})
	}
	b, err := yaml.Marshal(object{"rule_files": []string{rules}, "evaluation_interval": "1m",
		"tests": []object{{"interval": "1m", "input_series": input, "promql_expr_test": checks}}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "played.yml")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), tool, "test", "rules", path).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// process is one process of a model on a log in memory, in a bubble where time passes only when
// nothing else is left to do.
type process struct {
	reg    *prometheus.Registry
	config service.SystemConfig
}

func newProcess(t *testing.T, log *mem.Log, role, name string) *process {
	t.Helper()
	m, err := model.Parse("model", []byte("name: shop\nversion: 1\nwindow: 5m\n"))
	if err != nil {
		t.Fatal(err)
	}
	source, err := modelfile.Source(m, nil)
	if err != nil {
		t.Fatal(err)
	}
	health, p := watch.NewHealth(role), &process{reg: prometheus.NewRegistry()}
	p.config = service.SystemConfig{Log: log, Bus: log, Name: "shop", Source: source, Build: model.Epoch,
		Seed: []byte("seed"), Partitions: 1,
		Owner: name, Logger: slog.New(slog.DiscardHandler), Metrics: watch.NewMetrics(p.reg, health), Health: health}
	return p
}

// start runs something until it is stopped.
func start(t *testing.T, run func(ctx context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func (p *process) system(ctx context.Context) error { return service.RunSystem(ctx, p.config, nil) }

// joiner runs as feedback-joiner does.
func (p *process) joiner(ctx context.Context) error {
	c := &p.config
	return service.RunSharedJoiner(ctx, c.Sharing, service.SystemConfig{Log: c.Log, Source: c.Source, Build: c.Build,
		Seed: c.Seed, Partitions: 1,
		MaxPending: 1000, Dedup: 1000, MarkEvery: 100, Owner: c.Owner, Logger: c.Logger, Metrics: c.Metrics,
		Health: c.Health}, nil)
}

// processes are those that run now, by instance.
type processes map[string]*process

// record lets them work for some minutes, on six rounds each, whose outcomes are reported or not.
func (p *tape) record(t *testing.T, log *mem.Log, running processes, minutes int, reported bool) {
	t.Helper()
	for range minutes {
		p.gather(t, running)
		for range 6 {
			time.Sleep(10 * time.Second) // in a bubble: until all else waits for longer
			reply, _, err := log.Request(t.Context(), "shop.decide", []byte(`{"actions":["a","b"]}`))
			var d struct{ ID string }
			if err != nil || json.Unmarshal(reply, &d) != nil || d.ID == "" {
				continue // nobody decides now
			}
			if reported {
				time.Sleep(time.Second)
				if _, _, err := log.Request(t.Context(), "shop.outcome",
					fmt.Appendf(nil, `{"id":%q,"loss":0.5}`, d.ID)); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

// recorded plays in a bubble, and returns the tape.
func recorded(t *testing.T, partly func(t *testing.T, log *mem.Log, p *tape)) *tape {
	t.Helper()
	if testing.Short() {
		t.Skip("hours of a system's life")
	}
	p := &tape{}
	synctest.Test(t, func(t *testing.T) {
		p.began = time.Now()
		log := mem.New(mem.Options{Clock: func() int64 { return time.Now().UnixNano() }})
		if err := topics.Create(t.Context(), log, "shop", 1, topics.Retention{}); err != nil {
			t.Fatal(err)
		}
		partly(t, log, p)
	})
	return p
}

// The joiner's process is gone, and its metrics with it: the deciders tell. Then the decider is
// gone, and the joiner tells.
func TestPlayedAlone(t *testing.T) {
	recorded(t, func(t *testing.T, log *mem.Log, p *tape) {
		d, j := newProcess(t, log, watch.RoleDecider, "d"), newProcess(t, log, watch.RoleJoiner, "j")
		d.config.Source = nil // --joiner=false
		stop, stopJoiner := start(t, d.system), start(t, j.joiner)
		p.record(t, log, processes{"d": d, "j": j}, 10, true)
		stopJoiner()
		p.record(t, log, processes{"d": d}, 10, true)
		j = newProcess(t, log, watch.RoleJoiner, "j")
		defer start(t, j.joiner)()
		stop()
		p.record(t, log, processes{"j": j}, 10, true)
	}).play(t, map[int][]string{9: nil, 15: {"NoJoiner"}, 25: {"NoDecider"}})
}

// Who stands by for another is well. A lease that is lost is told of, the first one too.
func TestPlayedStandby(t *testing.T) {
	recorded(t, func(t *testing.T, log *mem.Log, p *tape) {
		leases, running := leasetest.NewMemory(service.LeaseTTL), processes{}
		for _, name := range []string{"a", "b", "j"} {
			role := map[bool]string{true: watch.RoleJoiner, false: watch.RoleDecider}[name == "j"]
			x := newProcess(t, log, role, name)
			x.config.Sharing = service.Leased(lease.NewKeeper(leases, name))
			run := x.system
			if role == watch.RoleJoiner {
				run = x.joiner
			}
			running[name] = x
			defer start(t, run)()
			time.Sleep(time.Second)
		}
		p.record(t, log, running, 10, true)
		leases.Fail(errors.New("the store is away"))
		time.Sleep(2 * service.LeaseTTL)
		leases.Fail(nil)
		p.record(t, log, running, 5, true)
	}).play(t, map[int][]string{9: nil, 14: {"LeaseLost"}})
}

// Outcomes end; what the join ratio was before there was any is no number.
func TestPlayedSilence(t *testing.T) {
	recorded(t, func(t *testing.T, log *mem.Log, p *tape) {
		d := newProcess(t, log, watch.RoleDecider, "d")
		defer start(t, d.system)()
		p.record(t, log, processes{"d": d}, 20, true)
		p.record(t, log, processes{"d": d}, 90, false)
	}).play(t, map[int][]string{19: nil, 28: nil, 36: {"NoOutcomes"}, 109: {"NoOutcomes", "JoinRatioFell"}})
}
