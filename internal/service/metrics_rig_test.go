package service

import (
	"bytes"
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"hindsight/internal/follow"
	"hindsight/internal/front"
	"hindsight/internal/join"
	"hindsight/internal/loop"
	"hindsight/internal/watch"
	"hindsight/pkg/codec"
	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/mem"
)

// planted is in every id, action, feature and owner that the tests give in.
const plantedText = "planted-secret"

// rig is a decider and a joiner on a log in memory, stepped by hand, with metrics.
type rig struct {
	t      testing.TB
	log    *mem.Log
	topics join.Topics
	fault  func(topic string, r *stream.Record) mem.Fault // nil: none
	reg    *prometheus.Registry
	m      *watch.Metrics
	rules  loop.Rules
	dc     SystemConfig
	jc     SystemConfig
	d      *Decider
	j      *Joiner
}

func newRig(t testing.TB, change func(*rig)) *rig {
	t.Helper()
	r := &rig{t: t, reg: prometheus.NewRegistry(), rules: loop.Rules{MaxActions: 100, Range: loop.Range{Max: 1},
		Window: loop.Window{Rounds: 20}}}
	r.m = watch.NewMetrics(r.reg, nil)
	r.log = mem.New(mem.Options{OnAppend: func(topic string, _ int, rec *stream.Record) mem.Fault {
		if r.fault == nil {
			return mem.None
		}
		return r.fault(topic, rec)
	}})
	r.topics = createTopics(t, r.log, "m", 1)
	r.jc = SystemConfig{Log: r.log, Source: &follow.Source{Name: "m", Version: 1, Model: []byte("x")}, Build: r.build,
		Partitions: 1,
		MaxPending: 1000, Dedup: 100, MarkEvery: 10, Logger: slog.New(slog.DiscardHandler), Metrics: r.m,
		Owner: plantedText}
	r.dc = SystemConfig{Log: r.log, Name: "m", Build: r.build, Seed: []byte("seed"), Partitions: 1, Dedup: 100,
		MaxInFlight: 100, Owner: plantedText, Logger: slog.New(slog.DiscardHandler), Metrics: r.m}
	if change != nil {
		change(r)
	}
	r.open()
	t.Cleanup(func() {
		r.d.Close()
		r.j.Close()
	})
	return r
}

func (r *rig) open() {
	r.t.Helper()
	var err error
	if r.j, err = OpenJoiner(r.t.Context(), r.jc); err != nil {
		r.t.Fatal(err)
	}
	if r.d, err = OpenDecider(r.t.Context(), r.dc); err != nil {
		r.t.Fatal(err)
	}
}

// build makes a linear model with room for 4 columns and 3 actions.
func (r *rig) build(rec *codec.Epoch, _ map[string][]byte) (loop.Epoch, error) {
	reg, err := oracle.NewLinear(oracle.LinearOptions{Beta: .5, Lambda: 1, MaxFeatures: 4, MaxActions: 3})
	if err != nil {
		return loop.Epoch{}, err
	}
	s, err := learner.NewSchedule("balanced", reg)
	if err != nil {
		return loop.Epoch{}, err
	}
	return loop.Epoch{Number: rec.Epoch, Learner: learner.NewDAFA(reg, s), Rules: &r.rules}, nil
}

func (r *rig) put(topic, format string, args ...any) {
	r.t.Helper()
	w, err := r.log.Writer(r.t.Context(), topic, 0, nil)
	if err == nil {
		_, err = w.Append(r.t.Context(), &stream.Record{Value: fmt.Appendf(nil, format, args...)})
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// contexts puts contexts with the given ids.
func (r *rig) contexts(ids ...string) {
	r.t.Helper()
	for _, id := range ids {
		r.put(r.topics.Contexts, `{"id":%q,"features":{%q:1},"actions":["a","b"]}`, plantedText+id, plantedText)
	}
}

// outcomes puts outcomes of the given ids.
func (r *rig) outcomes(ids ...string) {
	r.t.Helper()
	for _, id := range ids {
		r.put(r.topics.Outcomes, `{"id":%q,"loss":0.5}`, plantedText+id)
	}
}

// settle steps until nothing is left to do, or a part has failed.
func (r *rig) settle() (failed error) {
	ctx := r.t.Context()
	for {
		b1, err1 := r.d.StepFeedback(ctx, 0)
		b2, err2 := r.d.StepContexts(ctx, 10)
		b3, err3 := r.j.Step(ctx)
		for _, err := range []error{err1, err2, err3} {
			if err != nil {
				return err
			}
		}
		if !b1 && !b2 && !b3 {
			return nil
		}
	}
}

// none fails unless there is an error.
func (r *rig) none(err error) {
	r.t.Helper()
	if err == nil {
		r.t.Error("a full log did no harm")
	}
}

func (r *rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// request asks for a decision and returns the reply.
func (r *rig) request(format string, args ...any) string {
	var reply []byte
	r.d.spawn = func(f func()) { f() }
	r.d.Request(stream.Message{Data: fmt.Appendf(nil, format, args...),
		Respond: func(b []byte, _ ...stream.Header) error {
			reply = bytes.Clone(b)
			return nil
		}})
	return string(reply)
}

// front returns a server of requests for the rig's partition.
func (r *rig) front(bus stream.Bus) *front.Server {
	return front.NewServer(front.Config{Bus: bus, Name: "m", Partitions: 1, Metrics: r.m})
}

func (r *rig) look() {
	r.d.look(r.t.Context())
	r.j.look(r.t.Context())
}

// expect compares values of metrics, each written `name{label="value",…}`; NaN means
// that there is none.
func (r *rig) expect(want map[string]float64) {
	r.t.Helper()
	got := scrape(r.t, r.reg)
	for series, v := range want {
		g, ok := got[series]
		switch {
		case math.IsNaN(v) && ok:
			r.t.Errorf("%s is %v, expected none", series, g)
		case !math.IsNaN(v) && !ok:
			r.t.Errorf("%s is missing, expected %v", series, v)
		case ok && g != v:
			r.t.Errorf("%s is %v, expected %v", series, g, v)
		}
	}
}

// value returns one value, which must be there.
func (r *rig) value(series string) float64 {
	r.t.Helper()
	v, ok := scrape(r.t, r.reg)[series]
	if !ok {
		r.t.Errorf("%s is missing", series)
	}
	return v
}

// scrape returns what a registry shows, by series; of a histogram its count.
func scrape(t testing.TB, reg prometheus.Gatherer) map[string]float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			v := m.GetCounter().GetValue() + m.GetGauge().GetValue() // one of them is nil, and 0
			if h := m.GetHistogram(); h != nil {
				v = float64(h.GetSampleCount())
			}
			out[f.GetName()+labelsOf(m)] = v
		}
	}
	return out
}

func labelsOf(m *dto.Metric) string {
	var out []string
	for _, l := range m.GetLabel() {
		out = append(out, l.GetName()+"="+strconv.Quote(l.GetValue()))
	}
	if out == nil {
		return ""
	}
	return "{" + strings.Join(out, ",") + "}"
}

// exposed returns the bytes of a scrape.
func exposed(t *testing.T, reg prometheus.Gatherer) []byte {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&b, f); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

// failing appends nothing to a topic.
func failing(topic string) func(string, *stream.Record) mem.Fault {
	return func(to string, _ *stream.Record) mem.Fault {
		if to == topic {
			return mem.Full
		}
		return mem.None
	}
}
