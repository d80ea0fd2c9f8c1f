// Package testkit plays worlds with joiners that are killed and replaced, for tests.
package testkit

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"hindsight/internal/join"
	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/mem"
)

// Topics are those of a world.
var Topics = join.Topics{Decisions: "d", Outcomes: "o", Feedback: "f", Rejects: "r"}

// liveLog is a log to which somebody appends between any two calls of a step.
type liveLog struct {
	*mem.Log
	live func()
}

func (l *liveLog) Bounds(ctx context.Context, topic string, partition int) (int64, int64, error) {
	l.live()
	first, next, err := l.Log.Bounds(ctx, topic, partition)
	l.live()
	return first, next, err
}

// Open and Writer return appenders whose Flush has acknowledgements arrive, which otherwise do so when
// the world says.
func (l *liveLog) Open(ctx context.Context, topic string, partition int, o stream.OpenOptions) (stream.Appender,
	stream.Tail, error) {
	a, tail, err := l.Log.Open(ctx, topic, partition, o)
	return flusher{a, l}, tail, err
}

func (l *liveLog) Writer(ctx context.Context, topic string, partition int, ack stream.AckFunc) (stream.Appender,
	error) {
	a, err := l.Log.Writer(ctx, topic, partition, ack)
	return flusher{a, l}, err
}

type flusher struct {
	stream.Appender
	log *liveLog
}

func (f flusher) Flush(ctx context.Context) error {
	f.log.DeliverAcks(-1)
	return f.Appender.Flush(ctx)
}

// World is a log with deciders and users, and a joiner that is killed and replaced.
type World struct {
	t            testing.TB
	rng          *rand.Rand
	Kind         string
	Log          *liveLog
	Partitions   int
	real         int64
	back         int64 // by how much the clocks were set back
	skews        []int64
	first        int64 // offset of each partition
	stride       int64 // between offsets
	recorded     int64 // time of the next append; 0: the world's
	at           int   // whose clock the next append goes by: decisions, outcomes, feedback, rejects
	rules        loop.Rules
	limits       codec.Limits
	owned        []stream.Appender // decisions
	outcomes     []stream.Appender
	N            []int64
	open         []string // decided, at most once reported
	all          []string
	Core         *join.Core
	zombie       *join.Core
	quiet        bool // nobody appends between calls
	Restarts     int
	Loses        bool // logs lose their tails
	Lost         int
	LostFeedback bool  // some time the feedback log lost its tail
	markEvery    int64 // 0: as it comes
	actions      []string
	law          []float64
	context      []byte
	ticks        int
	opens        int // attempts to open that failed, in a row
	patience     int // so many may
	// Rest is the feedback of the rounds that wait where a joiner without cuts stopped, if nothing more
	// comes.
	Rest [][]byte
}

// epochs are those of a world, known to everybody.
type epochs struct{ w *World }

func (epochs) Read(*stream.Record) error { return nil }

func (epochs) Refs() []codec.EpochRef { return []codec.EpochRef{{Epoch: 1}} }

func (epochs) Find(context.Context, []codec.EpochRef) error { return nil }

func (e epochs) Rules(epoch int64) *loop.Rules { return e.w.Rules(epoch) }

// Rules returns the rules of an epoch.
func (w *World) Rules(epoch int64) *loop.Rules {
	if epoch == 1 {
		return &w.rules
	}
	return nil
}

func (w *World) clock() int64 {
	if w.recorded != 0 {
		return w.recorded
	}
	t := w.real - w.back
	if w.Kind == "skew" {
		t += w.skews[w.at]
	}
	if w.Kind == "coarse" {
		t -= t % 50
	}
	return t
}

// New returns a world of a kind: its clock is plain or coarse, or the partitions' are skewed, or it goes
// back now and then.
func New(t testing.TB, seed uint64, kind string) *World {
	rng := rand.New(rand.NewPCG(seed, 11))
	w := &World{t: t, rng: rng, Kind: kind, Partitions: 1 + rng.IntN(3), real: 1e6}
	for range 2*w.Partitions + 2 {
		w.skews = append(w.skews, rng.Int64N(200))
	}
	w.actions, w.law, w.context = []string{"a", "b"}, []float64{.25, .75}, []byte("{}")
	w.rules = loop.Rules{MaxActions: 5, Range: loop.Range{Min: 0, Max: 1}, Impute: rng.IntN(2) == 0, DefaultLoss: 1,
		Outcomes: loop.Aggregate(rng.IntN(3)), Arrival: rng.IntN(4) == 0,
		Window: loop.Window{Nanos: 50 + rng.Int64N(1500)}}
	if rng.IntN(4) == 0 {
		w.rules.Window = loop.Window{Rounds: 1 + rng.Int64N(30)}
	}
	w.limits = codec.Limits{Heart: loop.Heart, Pending: 1000, Dedup: 1000}
	if rng.IntN(4) == 0 {
		w.limits = codec.Limits{Heart: loop.Heart, Pending: 3 + rng.Int64N(40), Dedup: rng.Int64N(30)}
	}
	w.first, w.stride = rng.Int64N(3), 1+rng.Int64N(3)
	w.create()
	return w
}

// create creates the topics, as yet empty.
func (w *World) create() {
	rng := w.rng
	o := mem.Options{Clock: w.clock, FirstOffset: w.first, Step: w.stride, MaxBatch: 1 + rng.IntN(30),
		ManualAcks: true, LateStore: rng.IntN(2) == 0, StrictBytes: true}
	o.OnAppend = func(topic string, partition int, r *stream.Record) mem.Fault {
		w.at = map[string]int{"d": partition, "o": w.Partitions + partition, "f": 2 * w.Partitions,
			"r": 2*w.Partitions + 1}[topic]
		if !w.quiet && w.opens < w.patience && w.at >= 2*w.Partitions && r.Type != stream.TypeOpen &&
			rng.IntN(150) == 0 {
			return []mem.Fault{mem.StoredUnknown, mem.NotStoredUnknown}[rng.IntN(2)]
		}
		return mem.None
	}
	w.Log = &liveLog{Log: mem.New(o), live: w.live}
	w.patience = 4 // each stores the rejects of the last cuts again, and all joiners behind it read them
	if os.Getenv("HINDSIGHT_LONG") != "" {
		w.patience = 20
	}
	ctx := context.Background()
	w.quiet = true
	for name, n := range map[string]int{"d": w.Partitions, "o": w.Partitions, "f": 1, "r": 1} {
		w.must(w.Log.Create(ctx, name, n, stream.TopicOptions{}))
	}
	w.N = make([]int64, w.Partitions)
	for p := range w.Partitions {
		d, err := w.Log.Writer(ctx, "d", p, nil)
		w.must(err)
		x, err := w.Log.Writer(ctx, "o", p, nil)
		w.must(err)
		w.owned, w.outcomes = append(w.owned, d), append(w.outcomes, x)
	}
}

func (w *World) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// live appends a decision or an outcome now and then.
func (w *World) live() {
	if w.quiet {
		return
	}
	for range w.rng.IntN(3) {
		w.real += w.rng.Int64N(20)
		switch k := w.rng.IntN(10); {
		case k < 4:
			w.decide()
		case k < 8 && len(w.open) > 0:
			i := w.rng.IntN(len(w.open))
			w.report(w.open[i])
			w.open = slices.Delete(w.open, i, i+1)
		case k == 8 && len(w.all) > 0:
			w.report(w.all[w.rng.IntN(len(w.all))])
		}
	}
}

func (w *World) append(a stream.Appender, value []byte) {
	w.t.Helper()
	_, err := a.Append(context.Background(), &stream.Record{Value: value})
	w.must(err)
	if w.rng.IntN(4) == 0 {
		w.must(a.Flush(context.Background()))
	}
}

func (w *World) decide() {
	p := w.rng.IntN(w.Partitions)
	w.N[p]++
	d := codec.Decision{Partition: p, N: w.N[p], ID: fmt.Sprint(p, "-", w.N[p]), Epoch: 1, Time: 5,
		Actions: w.actions, Propensities: w.law,
		Action: 1, Context: w.context}
	if len(w.all) > 0 && w.rng.IntN(20) == 0 {
		d.ID = w.all[w.rng.IntN(len(w.all))]
	}
	w.append(w.owned[p], codec.AppendDecision(nil, &d))
	w.must(w.owned[p].Flush(context.Background())) // somebody must have read it who reports
	w.open, w.all = append(w.open, d.ID), append(w.all, d.ID)
}

func (w *World) report(id string) {
	o := codec.Outcome{ID: id, Kind: codec.Loss, Value: .5}
	if w.rng.IntN(30) == 0 {
		o.ID = "nobody"
	}
	b := codec.AppendOutcome(nil, &o)
	if w.rng.IntN(40) == 0 {
		b = []byte{0xc1}
	}
	w.append(w.outcomes[w.rng.IntN(w.Partitions)], b)
}

// lose has logs lose their tails. Deciders go on behind what any log tells of, and logs may grow
// again before the next joiner comes.
func (w *World) lose() {
	w.Lost++
	for _, c := range []**join.Core{&w.Core, &w.zombie} {
		if *c != nil {
			(*c).Close()
			*c = nil
		}
	}
	w.Log.DeliverAcks(-1)
	drop := func(topic string, partition int) {
		if records := w.Read(topic, partition); w.rng.IntN(2) == 0 && len(records) > 12 {
			w.LostFeedback = w.LostFeedback || topic == "f"
			w.must(w.Log.DropTail(topic, partition, records[len(records)-1-w.rng.IntN(10)].Offset))
		}
	}
	for p := range w.Partitions {
		drop("d", p)
		drop("o", p)
	}
	drop("f", 0)
	w.real += 1000
	alive := map[string]bool{}
	for p := range w.Partitions {
		w.announceGap(p, alive)
	}
	w.open = slices.DeleteFunc(w.open, func(id string) bool { return !alive[id] })
	w.all = slices.DeleteFunc(w.all, func(id string) bool { return !alive[id] })
	for range w.rng.IntN(5) {
		w.live()
	}
}

// announceGap has a decider go on: numbers that another log tells of are not used again.
func (w *World) announceGap(p int, alive map[string]bool) {
	var last, told int64
	var e loop.DecisionEvent
	for _, r := range w.Read("d", p) {
		w.must(e.Parse(r.Type, r.Value))
		last = max(last, e.D.N, e.GapTo)
		if e.GapTo == 0 && e.D.N > 0 {
			alive[strings.Clone(e.D.ID)] = true
		}
	}
	for _, r := range w.Read("f", 0) {
		var f codec.Feedback
		if r.Type == "" && codec.ParseFeedback(&f, r.Value) == nil && f.Partition == p {
			told = max(told, f.Round)
		}
		if m, err := codec.ParseFeedbackMark(r.Value); r.Type == codec.TypeMark && err == nil {
			told = max(told, m.Positions[p].Round)
		}
	}
	if w.N[p] = max(last, told); told > last {
		_, err := w.owned[p].Append(context.Background(), &stream.Record{Type: codec.TypeMark,
			Value: codec.AppendDecisionMark(nil, &codec.DecisionMark{V: 1, N: last, GapFrom: last + 1, GapTo: told})})
		w.must(err)
		w.must(w.owned[p].Flush(context.Background()))
	}
}

// restart opens a joiner in place of the one at work, which may live on for a while.
func (w *World) restart() {
	w.Restarts++
	if w.zombie != nil {
		w.zombie.Close()
		w.zombie = nil
	}
	if w.Core != nil {
		if w.rng.IntN(2) == 0 {
			w.Core.Close()
		} else {
			w.zombie = w.Core
		}
	}
	if w.rng.IntN(3) == 0 {
		w.limits.Pending, w.limits.Dedup = w.limits.Pending+w.rng.Int64N(5), w.limits.Dedup+w.rng.Int64N(5)
	}
	skew := int64(0)
	if w.Kind != "plain" && w.Kind != "coarse" {
		skew = 300
	}
	var err error
	w.Core = nil
	for w.opens = 0; w.Core == nil && (err == nil || errors.Is(err, stream.ErrUnknown)); w.opens++ {
		w.Core, err = join.Open(context.Background(),
			join.Config{Log: w.Log, Topics: Topics, Partitions: w.Partitions, Limits: w.limits,
				MarkEvery: cmp.Or(w.markEvery, 1+w.rng.Int64N(60)),
				Skew:      skew, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), Epochs: epochs{w},
				Wake: func() {}})
	}
	w.opens = 0 // a cut of thousands of rejects never passes all faults: they are stored again
	w.must(err)
}

// Open opens a joiner.
func (w *World) Open() *join.Core {
	w.restart()
	return w.Core
}

// step has a joiner do something. One that was replaced may only meet its fence.
func (w *World) step(c *join.Core) {
	_, _, err := c.Step(context.Background(), time.Time{})
	if err == nil && w.rng.IntN(10) == 0 {
		w.ticks++ // the process's clock is far ahead, and one tick a second is allowed
		at := time.Unix(0, w.real).Add(time.Duration(w.ticks) * time.Second)
		err = c.Tick(context.Background(), at, at.UnixNano())
	}
	if c == w.zombie && err != nil {
		if !errors.Is(err, stream.ErrFenced) && !errors.Is(err, stream.ErrUnknown) {
			w.t.Fatal(err)
		}
		c.Close()
		w.zombie = nil
		return
	}
	if errors.Is(err, stream.ErrUnknown) {
		w.restart()
		return
	}
	w.must(err)
}

// Run plays a world until all is joined.
func (w *World) Run(steps int) {
	w.restart()
	w.quiet = false
	for range steps {
		w.live()
		switch w.rng.IntN(40) {
		case 0:
			w.real += w.rng.Int64N(4000)
		case 1:
			if w.Kind == "back" && w.rng.IntN(8) == 0 {
				w.back += w.rng.Int64N(3000)
			}
		case 2:
			for range 60 {
				w.live()
			}
		case 3, 4:
			w.restart()
		case 5:
			if w.Loses && w.rng.IntN(2) == 0 {
				w.lose()
				w.restart()
			}
		}
		if w.zombie != nil && w.rng.IntN(2) == 0 {
			w.step(w.zombie)
		}
		if w.rng.IntN(3) == 0 {
			w.Log.DeliverAcks(w.rng.IntN(5))
		}
		w.step(w.Core)
	}
	w.quiet = true
	w.Log.DeliverAcks(-1)
	for w.Core.Heart().Pending() > 0 || w.busy() {
		w.real += 500
		if w.rules.Window.Rounds > 0 {
			w.decideAll()
		}
		w.step(w.Core)
		if w.rules.Window.Rounds > 0 && !w.busy() {
			break
		}
	}
	w.must(w.Core.Stop(context.Background()))
	w.must(w.Core.Flush(context.Background()))
}

func (w *World) decideAll() {
	if w.rng.IntN(2) == 0 && len(w.all) < 2000 {
		w.decide()
	}
}

// busy reports whether anything is not taken.
func (w *World) busy() bool {
	for p := range w.Partitions {
		decisions, outcomes := w.Core.Heart().Next(p)
		for topic, next := range map[string]int64{Topics.Decisions: decisions, Topics.Outcomes: outcomes} {
			more := false
			w.must(stream.Scan(context.Background(), w.Log.Log, topic, p, next, 1<<60, func(*stream.Record) error {
				more = true
				return stream.ErrStop
			}))
			if more {
				return true
			}
		}
	}
	return false
}

// Read returns the records of a partition.
func (w *World) Read(topic string, partition int) (out []stream.Record) {
	w.must(stream.Scan(context.Background(), w.Log.Log, topic, partition, stream.Earliest, 1<<60,
		func(r *stream.Record) error {
			x := *r
			x.Value, x.Key = bytes.Clone(r.Value), bytes.Clone(r.Key)
			out = append(out, x)
			return nil
		}))
	return out
}

// Long returns the log of a joiner that was never replaced, of rounds as large as users have them, each
// with an outcome.
func Long(t testing.TB, rounds int) *World {
	w := New(t, 1, "plain")
	w.rules = loop.Rules{MaxActions: 10, Range: loop.Range{Min: 0, Max: 1}, Window: loop.Window{Nanos: 1e6}}
	w.limits = codec.Limits{Heart: loop.Heart, Pending: 10_000, Dedup: 10_000}
	w.markEvery = 1000
	for i := range 10 {
		w.actions, w.law = append(w.actions, fmt.Sprint("action", i)), append(w.law, .1)
	}
	w.context = []byte(
		`{"features":{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8,"i":9,"j":10,"k":11,"l":12,"m":13,"n":14,"o":15,` +
			`"p":"x"}}`)
	w.restart()
	for i := range rounds {
		w.real += 1000
		w.decide()
		w.report(w.all[len(w.all)-1])
		w.all, w.open = w.all[:0], w.open[:0]
		if i%16 == 15 {
			w.Log.DeliverAcks(-1)
			w.step(w.Core)
		}
	}
	w.Run(0)
	return w
}
