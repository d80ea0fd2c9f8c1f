package verify

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"

	"hindsight/internal/follow"
	"hindsight/internal/join"
	"hindsight/internal/model"
	"hindsight/internal/modelfile"
	"hindsight/internal/service"
	"hindsight/internal/topics"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/embedded"
	"hindsight/pkg/stream/mem"
)

// shopRig is a shop at work on a log: one joiner, one decider, users who ask and report, and
// an operator. Everything happens in one goroutine.
type shopRig struct {
	testing.TB
	ctx     context.Context
	log     stream.Log
	ts      join.Topics
	jc      service.SystemConfig
	dc      service.SystemConfig
	j       *service.Joiner
	d       *service.Decider
	in, out stream.Appender
	rng     *rand.Rand
	asked   int
	read    int64
	waiting []codec.Outcome
	worse   string // the action that loses most
	named   bool   // outcomes are a cost and a quality, by name
	others  bool   // every other context tells what another system decided
	units   bool   // most contexts are about one of five units, and some outcomes, too
}

const shopClass = `{"hindsight_class":1,"kind":"linear","features":["x"],"actions":["a","b","c","d"]}
{"prior":1,"w":[[0.1,0.5],[-0.2,0.5],[0,0.3],[0,0.2]]}
{"prior":2,"w":[[-0.1,0.5],[0.2,0.5],[0,0.9],[0.1,0.6]]}
`

const shopPolicies = `{"hindsight_policies":1,"actions":["a","b","c","d"]}
{"prior":1,"rules":[{"then":"a"}]}
{"prior":1,"rules":[{"then":"b"}]}
{"prior":1,"rules":[{"if":{"x":[0,2]},"then":"c"},{"then":"d"}]}
`

func newShop(t testing.TB, log stream.Log, text string) *shopRig {
	s := &shopRig{TB: t, ctx: t.Context(), log: log, ts: join.TopicsOf("m"), rng: rand.New(rand.NewPCG(4, 2)),
		read: stream.Earliest, worse: "a"}
	_, err := topics.Ensure(s.ctx, log, "m", 1, topics.Retention{})
	s.no(err)
	s.in, err = log.Writer(s.ctx, s.ts.Contexts, 0, nil)
	s.no(err)
	s.out, err = log.Writer(s.ctx, s.ts.Outcomes, 0, nil)
	s.no(err)
	logger := slog.New(slog.DiscardHandler)
	s.jc = service.SystemConfig{Log: log, Build: model.Epoch, Seed: worldSeed(), Partitions: 1, MaxPending: 1000,
		Dedup: 1000, MarkEvery: 7, Logger: logger}
	s.dc = service.SystemConfig{Log: log, Name: "m", Build: model.Epoch, Seed: worldSeed(), Partitions: 1, Dedup: 1000,
		SnapshotEvery: 20, MaxInFlight: 100, Logger: logger}
	s.jc.Source = s.source(text)
	s.open()
	return s
}

func (s *shopRig) no(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *shopRig) source(text string) *follow.Source {
	s.Helper()
	m, err := model.Parse("model.yaml", []byte(text))
	s.no(err)
	files := map[string][]byte{}
	for _, name := range m.Files() {
		if files[name] = []byte(shopClass); strings.Contains(name, "policies") {
			files[name] = []byte(shopPolicies)
		}
	}
	src, err := modelfile.Source(m, files)
	s.no(err)
	return src
}

// open starts, or restarts, everything.
func (s *shopRig) open() {
	s.Helper()
	s.shut()
	var err error
	s.j, err = service.OpenJoiner(s.ctx, s.jc)
	s.no(err)
	s.d, err = service.OpenDecider(s.ctx, s.dc)
	s.no(err)
	s.pump()
}

func (s *shopRig) shut() {
	if s.j != nil {
		s.j.Close()
		s.d.Close()
	}
}

func (s *shopRig) pump() {
	s.Helper()
	for busy := true; busy; {
		b1, err := s.j.Step(s.ctx)
		s.no(err)
		b2, err := s.d.StepContexts(s.ctx, 5)
		s.no(err)
		b3, err := s.d.StepFeedback(s.ctx, 0)
		s.no(err)
		s.no(s.d.WriteSnapshots(s.ctx))
		busy = b1 || b2 || b3
	}
}

// rounds lets contexts come, with outcomes that come later.
func (s *shopRig) rounds(n int) {
	s.Helper()
	for range n {
		s.asked++
		body := fmt.Sprintf(`{"id":"c%d","features":{"x":%d}`, s.asked, s.rng.IntN(5))
		switch s.rng.IntN(4) {
		case 0:
			body += `,"baseline":"b"`
		case 1:
			body += `,"actions":["c","b",{"name":"a","features":{"y":1}}],"baseline":{"a":0.5,"b":0.25,"c":0.25}`
		}
		if s.others && s.asked%2 == 0 {
			said := [...]string{"", `,"propensity":0.3`, `,"propensities":{"a":0.25,"b":0.5,"c":0.25}`}[s.asked/2%3]
			body += fmt.Sprintf(`,"assigned":{"action":%q%s}`, "abc"[s.asked/6%3:][:1], said)
		}
		if s.units && s.asked%4 > 0 {
			body += fmt.Sprintf(`,"unit":"u%d"`, s.rng.IntN(5))
		}
		_, err := s.in.Append(s.ctx, &stream.Record{Value: []byte(body + "}")})
		s.no(err)
		s.no(s.in.Flush(s.ctx))
		s.pump()
		s.report()
	}
	s.pump()
}

// report sends outcomes of decisions of a while ago.
func (s *shopRig) report() {
	s.Helper()
	for _, d := range s.decisions(s.read) {
		o := codec.Outcome{ID: d.ID, Kind: codec.Loss, Value: float64(s.rng.IntN(5)) / 10}
		if d.Actions[d.Action] == s.worse {
			o.Value += .5
		}
		if d.Unit != "" && s.rng.IntN(2) == 0 {
			o.ID, o.Unit = "", d.Unit
		}
		if s.named { // a cost and a quality, together or one after the other
			cost, quality := codec.Value{Name: "cost", X: 2 * o.Value}, codec.Value{Name: "quality", X: 1 - o.Value}
			o.Kind, o.Value, o.Values = codec.Named, 0, []codec.Value{cost, quality}
			if s.rng.IntN(2) == 0 {
				first := o
				first.Values, o.Values = o.Values[:1], o.Values[1:]
				s.waiting = append(s.waiting, first)
			}
		}
		s.waiting = append(s.waiting, o)
	}
	_, s.read, _ = s.log.Bounds(s.ctx, s.ts.Decisions, 0)
	for len(s.waiting) > 6 {
		if s.rng.IntN(10) > 0 { // else it is lost
			_, err := s.out.Append(s.ctx, &stream.Record{Value: codec.AppendOutcome(nil, &s.waiting[0])})
			s.no(err)
			s.no(s.out.Flush(s.ctx))
		}
		s.waiting = s.waiting[1:]
	}
}

// decisions returns those of the log from an offset.
func (s *shopRig) decisions(from int64) (all []codec.Decision) {
	s.Helper()
	_, end, err := s.log.Bounds(s.ctx, s.ts.Decisions, 0)
	s.no(err)
	s.no(stream.Scan(s.ctx, s.log, s.ts.Decisions, 0, from, end, func(r *stream.Record) error {
		if r.Type != "" {
			return nil
		}
		var d codec.Decision
		err := codec.ParseDecision(&d, bytes.Clone(r.Value))
		if codec.Foreign(err) {
			return nil
		}
		if err == nil {
			err = d.Validate()
		}
		all = append(all, d)
		return err
	}))
	return all
}

func (s *shopRig) switchTo(mode codec.Mode) {
	s.Helper()
	_, err := s.j.Switch(s.ctx, mode, "admin: test")
	s.no(err)
	s.pump()
}

func (s *shopRig) verify() *Report {
	s.Helper()
	r, err := Run(s.ctx, Config{Log: s.log, Name: "m", Seed: worldSeed(), Build: model.Epoch, Dedup: 1000})
	s.no(err)
	return r
}

// fromStart returns the state that a follower of the whole log has, without snapshots.
func (s *shopRig) fromStart() []byte {
	s.Helper()
	a := follow.New(s.log, "m", model.Epoch, 1)
	_, end, err := s.log.Bounds(s.ctx, s.ts.Feedback, 0)
	s.no(err)
	s.no(stream.Scan(s.ctx, s.log, s.ts.Feedback, 0, stream.Earliest, end, func(r *stream.Record) error {
		return a.Take(s.ctx, r)
	}))
	b, err := a.AppendState(nil)
	s.no(err)
	return b
}

// fromSnapshot returns the state that a restart has from the last snapshot.
func (s *shopRig) fromSnapshot() []byte {
	s.Helper()
	s.open()
	b, err := s.d.AppendState(nil)
	s.no(err)
	return b
}

func shopLogs(t *testing.T) map[string]func(t *testing.T) stream.Log {
	return map[string]func(t *testing.T) stream.Log{
		"mem": func(*testing.T) stream.Log { return mem.New(mem.Options{Step: 2}) },
		"embedded": func(t *testing.T) stream.Log {
			e, err := embedded.Open(t.Context(), embedded.Options{Dir: t.TempDir(), Port: -1})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { e.Close() })
			return e.Log()
		},
	}
}

// shopModels are the learners and oracles; an action list and a version follow.
var shopModels = map[string]string{
	"linear": "oracle: {kind: linear, beta: 0.5, lambda: 1}",
	"auto":   "oracle: {kind: auto, beta: 0.5, columns: 3, fourier: 8}",
	"shared": "oracle: {kind: shared, beta: 0.5, lambda: 1, hashed: 16}",
	"hybrid": "oracle: {kind: hybrid, beta: 0.5, lambda: 1, hashed: 16}",
	"hedge":  "oracle: {kind: hedge, class: class.jsonl}",
	"exp4":   "learner: {kind: exp4dale, policies: policies.jsonl}",
	"greedy": "learner: {egreedy: 0.2}\noracle: {kind: linear, beta: 0.5, lambda: 1}",
}

func shopModel(kind string, version int, rest string) string {
	return fmt.Sprintf("name: m\nversion: %d\nwindow: 9 rounds\nmax_actions: 9\n%s\n%s\n", version, shopModels[kind],
		rest)
}
