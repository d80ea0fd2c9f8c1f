package verify

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"hindsight/internal/follow"
	"hindsight/internal/join"
	"hindsight/internal/model"
	"hindsight/internal/service"
	_ "hindsight/internal/testkit/roomy"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/mem"
)

const (
	worldName  = "m"
	worldDedup = 20
	worldClass = `{"hindsight_class":1,"kind":"linear","features":["x"],"actions":["a","b","c"]}
{"prior":1,"w":[[0.1,0.5],[-0.2,0.5],[0,0.3]]}
{"prior":2,"w":[[-0.1,0.5],[0.2,0.5],[0,0.9]]}
`
)

// worldModels are the epochs of a world, each with other rules.
var worldModels = []string{
	`{name: m, version: 1, actions: [a, b, c], oracle: {kind: hedge, class: class.jsonl}, window: 8 rounds}`,
	`{name: m, version: 2, window: 200ns, missing: impute, default_loss: 0.75, outcomes: mean, activation: required}`,
	`{name: m, version: 3, actions: [a, b, c], oracle: {kind: hedge, class: class.jsonl}, window: 9 rounds, order: ` +
		`arrival}`,
	`{name: m, version: 4, reward: {min: -1, max: 3, clip: true}, window: 150ns, outcomes: sum}`,
	`{name: m, version: 5, window: 150ns, order: early}`,
}

// world drives the real shells over a log in memory, one step after the other.
type world struct {
	testing.TB
	ctx      context.Context
	log      *mem.Log
	ts       join.Topics
	parts    int
	encoding codec.Encoding
	rng      *rand.Rand
	source   follow.Source
	j        *service.Joiner
	d        []*service.Decider
	in, out  []stream.Appender
	asked    int     // contexts
	read     []int64 // decisions read, by partition
	later    []lateOutcome
	overflow int // max_pending
}

type lateOutcome struct {
	due  int
	part int
	rec  stream.Record
}

func worldSeed() []byte { return []byte("a secret seed") }

func newWorld(t testing.TB, parts int, seed uint64) *world {
	w := &world{TB: t, ctx: t.Context(), log: mem.New(mem.Options{Step: 4, MaxBatch: 30}), ts: join.TopicsOf(worldName),
		parts: parts,
		rng:   rand.New(rand.NewPCG(seed, 1)), read: make([]int64, parts), d: make([]*service.Decider, parts),
		overflow: 1000}
	for _, topic := range []string{w.ts.Contexts, w.ts.Decisions, w.ts.Outcomes} {
		w.no(w.log.Create(w.ctx, topic, parts, stream.TopicOptions{}))
	}
	w.no(w.log.Create(w.ctx, w.ts.Rejects, 1, stream.TopicOptions{}))
	w.no(w.log.Create(w.ctx, w.ts.Feedback, 1, stream.TopicOptions{Trimmable: true}))
	w.no(w.log.Create(w.ctx, w.ts.Snapshots, 1, stream.TopicOptions{Trimmable: true}))
	for p := range parts {
		a, err := w.log.Writer(w.ctx, w.ts.Contexts, p, nil)
		w.no(err)
		b, err := w.log.Writer(w.ctx, w.ts.Outcomes, p, nil)
		w.no(err)
		w.in, w.out = append(w.in, a), append(w.out, b)
		w.read[p] = stream.Earliest
	}
	return w
}

func (w *world) no(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// open starts or restarts everything with a model.
func (w *world) use(epoch int) {
	w.useModel(worldModels[epoch])
}

func (w *world) useModel(text string) {
	w.name(text)
	w.openJoiner()
	for p := range w.parts {
		w.openDecider(p)
	}
	w.pump()
}

// name makes a model the one that joiners announce.
func (w *world) name(text string) {
	m, err := model.Parse("model.yaml", []byte(text))
	w.no(err)
	w.source = follow.Source{Name: worldName, Version: m.Version, Model: m.Canonical(), Warm: m.Warm, Order: m.Files(),
		Files: map[string][]byte{}}
	for _, name := range m.Files() {
		w.source.Files[name] = []byte(worldClass)
	}
}

func (w *world) openJoiner() {
	w.no(w.tryJoiner())
}

func (w *world) tryJoiner() (err error) {
	if w.j != nil {
		w.j.Close()
		w.j = nil
	}
	j, err := service.OpenJoiner(w.ctx, service.SystemConfig{Log: w.log, Source: &w.source, Build: model.Epoch,
		Seed: worldSeed(), Encoding: w.encoding,
		Partitions: w.parts, MaxPending: w.overflow, Dedup: worldDedup, MarkEvery: 10,
		Logger: slog.New(slog.DiscardHandler)})
	if err == nil {
		w.j = j
	}
	return err
}

func (w *world) openDecider(p int) {
	if w.d[p] != nil {
		w.d[p].Close()
	}
	var err error
	w.d[p], err = service.OpenDecider(w.ctx, w.deciderConfig(p))
	w.no(err)
}

func (w *world) deciderConfig(p int) service.SystemConfig {
	c := service.SystemConfig{Log: w.log, Name: worldName, Build: model.Epoch, Seed: worldSeed(), Partition: p,
		Partitions: w.parts, Encoding: w.encoding,
		Dedup: worldDedup, MaxInFlight: 100, Owner: "test", Logger: slog.New(slog.DiscardHandler)}
	if p == 0 {
		c.SnapshotEvery = 25
	}
	return c
}

// pump lets everyone do what there is to do.
func (w *world) pump() {
	for busy := true; busy; {
		b, err := w.j.Step(w.ctx)
		w.no(err)
		busy = b
		for _, d := range w.d {
			b1, err := d.StepContexts(w.ctx, 3)
			w.no(err)
			b2, err := d.StepFeedback(w.ctx, 0)
			w.no(err)
			w.no(d.WriteSnapshots(w.ctx))
			busy = busy || b1 || b2
		}
	}
}

// rounds lets a number of contexts come, and outcomes of all sorts.
func (w *world) rounds(n int) {
	for range n {
		w.ask()
		if w.rng.IntN(4) > 0 {
			w.pump()
		}
		w.answer()
		switch w.rng.IntN(25) {
		case 0:
			w.openJoiner()
		case 1:
			w.openDecider(w.rng.IntN(w.parts))
		case 2:
			w.tick()
		}
	}
	w.pump()
}

// tick lets the joiner's clock run, so that it writes a mark of its own.
func (w *world) tick() {
	for i := range 2 { // it sees log time, and then that it stands
		w.no(w.j.Tick(w.ctx, time.Now().Add(time.Duration(i+1)*time.Hour)))
	}
	w.pump()
}

// stop lets a decider stop as it does when it is told to, and opens it again.
func (w *world) stop(p int) {
	ctx, cancel := context.WithCancel(w.ctx)
	cancel()
	w.no(w.d[p].Run(ctx))
	w.openDecider(p)
}

func (w *world) ask() {
	p := w.rng.IntN(w.parts)
	w.asked++
	id := fmt.Sprintf("c%d", w.asked)
	body := fmt.Sprintf(`"features":{"x":%d,"z":"t%d"},"actions":["a","b","c"]}`, w.rng.IntN(5), w.rng.IntN(3))
	r := stream.Record{Value: []byte(`{"id":"` + id + `",` + body)}
	switch w.rng.IntN(14) {
	case 0:
		r.Value = []byte(`{` + body) // minted
	case 1:
		r = stream.Record{Value: []byte(`{` + body), Headers: []stream.Header{{Key: "ce_specversion", Value: "1.0"},
			{Key: "ce_id", Value: "ce" + id}}}
	case 2:
		r.Value = []byte(`{"id":"` + id + `","features":{"x":[]}}`)
	case 3:
		w.request([]byte(`{` + body))
		return
	case 4:
		w.request([]byte(`{"id":"` + id + `",` + body))
		return
	case 5:
		r.Value = fmt.Appendf(nil, `{"id":"c%d",%s`, max(1, w.asked-1-w.rng.IntN(4)), body) // perhaps used
	case 6:
		c := codec.Context{ID: id, Features: []codec.Feature{{Name: "x", Kind: codec.Number, Value: .5}},
			Actions: []codec.Action{{Name: "a"}, {Name: "c"}}}
		r.Value = codec.AppendContext(nil, &c)
	}
	_, err := w.in[p].Append(w.ctx, &r)
	w.no(err)
}

func (w *world) request(data []byte) {
	w.d[w.rng.IntN(w.parts)].Request(
		stream.Message{Data: data, Respond: func([]byte, ...stream.Header) error { return nil }})
}

// answer writes outcomes for the decisions that came up.
func (w *world) answer() {
	for p := range w.parts {
		_, end, err := w.log.Bounds(w.ctx, w.ts.Decisions, p)
		w.no(err)
		w.no(stream.Scan(w.ctx, w.log, w.ts.Decisions, p, max(0, w.read[p]), end, func(r *stream.Record) error {
			var d codec.Decision
			if r.Type != "" {
				return nil
			}
			if err := codec.ParseDecision(&d, r.Value); err != nil {
				return err
			}
			w.outcomes(&d)
			return nil
		}))
		w.read[p] = end
	}
	var rest []lateOutcome
	for _, l := range w.later {
		if l.due > w.asked {
			rest = append(rest, l)
			continue
		}
		_, err := w.out[l.part].Append(w.ctx, &l.rec)
		w.no(err)
	}
	w.later = rest
}

// outcomes plans what is reported of a decision.
func (w *world) outcomes(d *codec.Decision) {
	add := func(delay int, o codec.Outcome) {
		if o.ID == "" {
			o.ID = string([]byte(d.ID))
		}
		var r stream.Record
		if w.rng.IntN(2) == 0 {
			r.Value = codec.AppendOutcome(nil, &o)
		} else {
			r.Value = codec.AppendOutcomeJSON(nil, &o)
		}
		w.later = append(w.later, lateOutcome{w.asked + delay, w.rng.IntN(w.parts), r})
	}
	loss := codec.Outcome{Kind: codec.Loss, Value: float64(w.rng.IntN(90)+3) / 100}
	if w.rng.IntN(2) == 0 {
		add(w.rng.IntN(4), codec.Outcome{Kind: codec.Activated})
	}
	switch w.rng.IntN(12) {
	case 0: // silence
	case 1:
		add(30, loss)
	case 2:
		add(1, codec.Outcome{Kind: codec.Withdrawn})
	case 3:
		loss.Action = "nobody"
		add(1, loss)
	case 4:
		loss.Value = 17
		add(1, loss)
	case 5:
		add(2, codec.Outcome{ID: fmt.Sprintf("nobody%d", d.N), Kind: codec.Reward, Value: 1})
	case 6:
		loss.OutcomeID = "o1"
		add(1, loss)
		add(3, loss)
	case 7:
		add(1, codec.Outcome{Kind: codec.Reward, Value: .25})
		add(2, loss)
	case 8:
		w.later = append(w.later, lateOutcome{w.asked, 0, stream.Record{Value: []byte(`{"id":`)}})
		add(w.rng.IntN(12), loss)
	default:
		loss.Action = d.Actions[d.Action]
		add(w.rng.IntN(7), loss)
	}
}

// liveWorld is a world with all that Run should understand.
func liveWorld(t testing.TB, parts int, seed uint64, rounds int) *world {
	return encodedWorld(t, codec.MessagePack, parts, seed, rounds)
}

func encodedWorld(t testing.TB, encoding codec.Encoding, parts int, seed uint64, rounds int) *world {
	w := newWorld(t, parts, seed)
	w.encoding = encoding
	w.overflow = 6 * parts
	for e := range worldModels {
		w.use(e)
		w.rounds(rounds)
		if e == 1 {
			w.ask()
			w.stop(0)
		}
		w.overflow = 1000
	}
	w.idle()
	return w
}

// idle lets log time pass until no round waits.
func (w *world) idle() {
	for range 300 {
		_, err := w.out[0].Append(w.ctx, &stream.Record{Type: "noise"})
		w.no(err)
	}
	w.tick()
}

func (w *world) verify() *Report {
	w.Helper()
	r, err := Run(w.ctx, Config{Log: w.log, Name: worldName, Seed: worldSeed(), Build: model.Epoch, Dedup: worldDedup})
	w.no(err)
	return r
}
