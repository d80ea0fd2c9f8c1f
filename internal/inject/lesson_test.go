package inject

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"hindsight/internal/join"
	"hindsight/internal/logs"
	"hindsight/internal/model"
	"hindsight/internal/modelfile"
	"hindsight/internal/random"
	"hindsight/internal/replay"
	"hindsight/internal/service"
	"hindsight/internal/topics"
	"hindsight/internal/verify"
	"hindsight/internal/world"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/kafkatest"
	"hindsight/pkg/stream/mem"
	"hindsight/pkg/stream/natstest"
)

// lessonText is a log of decisions a second apart: an outcome comes up to 12 s later, of every
// fifth round never, of every eleventh after a minute.
func lessonText(rounds int) string {
	var text strings.Builder
	text.WriteString("id,at,who,p,paid,back,x\n")
	s := random.New(5, "lesson")
	at := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	for t := range rounds {
		u := func(k int) float64 { return s.Uniform(uint64(t), uint64(k)) }
		paid, back := fmt.Sprintf("%.2f", u(0)), at.Add(time.Duration(t)*time.Second+time.Duration(12*u(1)*1e9))
		came := back.Format(time.RFC3339Nano)
		switch {
		case t%5 == 3:
			paid, came = "", ""
		case t%11 == 7:
			came = back.Add(time.Minute).Format(time.RFC3339Nano)
		}
		fmt.Fprintf(&text, "round-%d,%s,%c,0.%d,%s,%s,%.3f\n", t, at.Add(time.Duration(t)*time.Second).Format(
			time.RFC3339Nano), 'a'+int(3*u(2)), 1+t%9, paid, came, u(3))
	}
	return text.String()
}

// lessonOf returns the lesson of a log for a model with some more keys.
func lessonOf(t *testing.T, rounds int, keys string) *Lesson {
	t.Helper()
	log := testLog(t, lessonText(rounds), logs.Mapping{Time: "at", OutcomeTime: "back", Action: "who", Reward: "paid",
		Propensity: "p", ID: "id", Features: []string{"x"}})
	m, err := model.Parse("m.yaml", []byte("name: shop\nversion: 2\nwarm: keep\nreward: {min: 0, max: 1}\n"+keys))
	if err != nil {
		t.Fatal(err)
	}
	l, err := NewLesson(log, m)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// cut is a log whose writers, all together, take so many records until ctx is over.
type cut struct {
	stream.Log
	left   int
	cancel func()
}

type cutWriter struct {
	stream.Appender
	cut *cut
}

func (c *cut) Writer(ctx context.Context, topic string, partition int, ack stream.AckFunc) (stream.Appender, error) {
	a, err := c.Log.Writer(ctx, topic, partition, ack)
	return &cutWriter{a, c}, err
}

func (w *cutWriter) Append(ctx context.Context, r *stream.Record) (uint64, error) {
	if w.cut.left--; w.cut.left == 0 {
		w.cut.cancel()
	}
	return w.Appender.Append(ctx, r)
}

// teachOn teaches a lesson to a system on a log, until that is done or left records were written;
// 0: all.
func teachOn(t *testing.T, log stream.Log, l *Lesson, partitions, left int) error {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if _, err := topics.Ensure(ctx, log, "shop", partitions, topics.Retention{}); err != nil {
		t.Fatal(err)
	}
	source, err := modelfile.Source(l.Model, nil)
	if err != nil {
		t.Fatal(err)
	}
	learned := NewLearned(partitions)
	system := service.SystemConfig{Log: log, Name: "shop", Source: source, Build: model.Epoch,
		Seed:       replay.SecretSeed(1),
		Partitions: partitions, Owner: "test", Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Learned: learned.Note}
	stop, err := service.Start(t.Context(), system)
	if err != nil {
		return err
	}
	in := Injection{Log: &cut{log, left, cancel}, Topics: join.TopicsOf("shop"), Lead: 1, Rules: l.Model.Rules(),
		Partitions: partitions, Rounds: l.Rounds(), Delays: l.Delays(), Learned: learned, Taught: true}
	err = in.Run(ctx, func(int) {})
	if ended := stop(); ended != nil && !errors.Is(ended, context.Canceled) {
		t.Fatal(ended)
	}
	return err
}

// taught returns what the decisions and the feedback of a log say, but for the log's own clock and
// places, and verifies it.
func taught(t *testing.T, log stream.Log, partitions int) (out []string) {
	t.Helper()
	all := func(topic string, partition int, f func(b []byte) error) {
		err := stream.Scan(t.Context(), log, topic, partition, stream.Earliest, math.MaxInt64,
			func(r *stream.Record) error {
				if r.Type != "" {
					return nil
				}
				return f(r.Value)
			})
		if err != nil {
			t.Fatal(err)
		}
	}
	for p := range partitions {
		all(join.TopicsOf("shop").Decisions, p, func(b []byte) error {
			var d codec.Decision
			err := codec.ParseDecision(&d, b)
			d.Source, d.Time, d.ContextsThrough = 0, 0, 0
			out = append(out, fmt.Sprintf("%+v", d))
			return err
		})
	}
	all(join.TopicsOf("shop").Feedback, 0, func(b []byte) error {
		var f codec.Feedback
		err := codec.ParseFeedback(&f, b)
		f.Time, f.ClosedAt, f.OutcomeOffset = 0, 0, min(f.OutcomeOffset, 0)
		out = append(out, fmt.Sprintf("%+v", f))
		return err
	})
	var skew time.Duration
	if _, oneClock := log.(*mem.Log); !oneClock {
		skew = time.Duration(join.ClockSkew)
	}
	r, err := verify.Run(t.Context(), verify.Config{Log: log, Name: "shop", Seed: replay.SecretSeed(1),
		Build: model.Epoch, Skew: skew})
	if err != nil || r.ExitCode() != verify.Identical {
		t.Fatalf("the log does not verify: %v %+v", err, r)
	}
	return out
}

func clockOf(tick time.Duration) *mem.Log {
	return mem.New(mem.Options{Clock: func() int64 { return time.Now().Truncate(tick).UnixNano() }})
}

// TestTeachGoesOn: a system that is taught, stopped anywhere and taught again makes the decisions
// and the feedback of one that was not stopped.
func TestTeachGoesOn(t *testing.T) {
	const rounds = 120
	for _, c := range []struct {
		name, keys string
		partitions int
		tick       time.Duration
	}{
		{"partitions", "window: 20s\n", 3, time.Millisecond},
		{"window of time", "window: 20s\n", 1, 1},
		{"silence is a loss", "window: 20s\nmissing: impute\n", 1, time.Millisecond},
		{"window of rounds", "window: 8\norder: fifo\n", 1, 1},
		{"sums", "window: 20s\noutcomes: sum\n", 1, 1},
	} {
		if testing.Short() && c.partitions == 1 {
			continue // the others say the same of what runs beside what
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := lessonOf(t, rounds, c.keys)
			whole := clockOf(c.tick)
			defer whole.Close()
			if err := teachOn(t, whole, l, c.partitions, 0); err != nil {
				t.Fatal(err)
			}
			want := taught(t, whole, c.partitions)
			if n := len(want); n <= rounds || n > 2*rounds {
				t.Fatalf("%d decisions and feedbacks of %d rounds", n, rounds)
			}
			log := clockOf(c.tick)
			defer log.Close()
			for _, left := range []int{1, 2, 3, 41, 5, 8, 13, 60, 22} {
				if err := teachOn(t, log, l, c.partitions, left); !errors.Is(err, context.Canceled) {
					t.Fatalf("stopped after %d more records: %v", left, err)
				}
			}
			for range 2 { // once more changes nothing
				if err := teachOn(t, log, l, c.partitions, 0); err != nil {
					t.Fatal(err)
				}
				if got := taught(t, log, c.partitions); !slices.Equal(got, want) {
					t.Errorf("%q, want %q", got, want)
				}
			}
		})
	}
}

// The same on servers and brokers, whose clocks count milliseconds or are their own.
func TestTeachGoesOnElsewhere(t *testing.T) {
	if testing.Short() {
		t.Skip("servers and brokers are not short")
	}
	for name, c := range map[string]struct {
		open       func() stream.Log
		partitions int
	}{
		"nats": {func() stream.Log { return opened(t, natstest.Start(t, natstest.Options{}).URL()) }, 1},
		"kafka": {func() stream.Log {
			addrs, _ := kafkatest.Fake(t, 1)
			return opened(t, "kafka://"+strings.Join(addrs, ","))
		}, 3},
	} {
		l := lessonOf(t, 80, "window: 20s\n")
		whole, log := c.open(), c.open()
		if err := teachOn(t, whole, l, c.partitions, 0); err != nil {
			t.Fatal(name, err)
		}
		for _, left := range []int{2, 41, 5, 0} {
			if err := teachOn(t, log, l, c.partitions, left); err != nil && !errors.Is(err, context.Canceled) {
				t.Fatal(name, err)
			}
		}
		if got, want := taught(t, log, c.partitions), taught(t, whole, c.partitions); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// A round ends as its own times say, by the live model's window, and keeps its id, what was
// played, and with which propensity.
func TestLessonByHand(t *testing.T) {
	const rounds = 60
	l := lessonOf(t, rounds, "window: 20s\nmissing: impute\n")
	if w := l.Model.Window.Rounds; w < 10 || w > 13 || l.Late == 0 || !l.Propensities() {
		t.Errorf("a window of %d rounds, %d outcomes late", w, l.Late)
	}
	log := clockOf(1)
	defer log.Close()
	if err := teachOn(t, log, l, 1, 0); err != nil {
		t.Fatal(err)
	}
	taught(t, log, 1)
	v, late := l.env.Log, 0
	n := 0
	scanned(t, log, join.TopicsOf("shop").Feedback, func(r *stream.Record) error {
		var f codec.Feedback
		var c codec.Context
		if err := errors.Join(codec.ParseFeedback(&f, r.Value), codec.ParseContext(&c, f.Context)); err != nil {
			return err
		}
		paid := v.Value[n]
		fate, loss := codec.Observed, 1-paid
		if !v.Observed(n) || n%11 == 7 {
			fate, loss = codec.Imputed, 1
		}
		if v.Observed(n) && n%11 == 7 {
			late++
		}
		if f.ID != fmt.Sprintf("round-%d", n) || f.Fate != fate || math.Abs(f.Loss-loss) > 1e-12 ||
			f.Mode != codec.Apprentice {
			t.Errorf("round %d, paid %v: %s is %s with a loss of %v in mode %v; want %s with %v",
				n, paid, f.ID, f.Fate, f.Loss, f.Mode, fate, loss)
		}
		if f.Actions[f.Action] != v.Actions[v.Action[n]] || f.Propensities[f.Action] != 1 ||
			c.LoggedPropensity != v.Props[n] {
			t.Errorf("round %d: %s of %v, logged with %v; want %s, logged with %v", n, f.Actions[f.Action],
				f.Propensities, c.LoggedPropensity, v.Actions[v.Action[n]], v.Props[n])
		}
		n++
		return nil
	})
	if n < rounds-int(l.Model.Window.Rounds) {
		t.Errorf("%d feedbacks", n)
	}
	if err := teachOn(t, log, lessonOf(t, rounds-1, "window: 20s\nmissing: impute\nmax_features: 8\n"), 1,
		0); err == nil {
		t.Error("another lesson was taught to the same log")
	}
}

// What cannot be taught is told before anything is written.
func TestNoLesson(t *testing.T) {
	log := testLog(t, lessonText(10), logs.Mapping{Action: "who", Reward: "paid", ID: "id", Features: []string{"x"}})
	const keep = "version: 2\nwarm: keep\n"
	for text, want := range map[string]string{
		"version: 2\n": "write version: 2, or higher, and warm: keep",
		"warm: keep\n": "write version: 2, or higher, and warm: keep",
		keep + "features: {x: " +
			"text}\n": `round 1 of t.csv, "round-0": the model does not take it: context: features.x`,
		keep + "actions: [a, b, d]\n":              `not an action of the model: "c"`,
		keep + "max_actions: 2\nactions: any\n":    "the model's max_actions is 2",
		keep + "actions: [c, b, a]\nmasked: [b]\n": "",
	} {
		m, err := model.Parse("m.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := NewLesson(log, m); want == "" && err != nil || want != "" &&
			(err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := NewLesson(replay.OfWorld(world.NewSigmoid(1, 10, world.SigmoidOptions{})),
		model.Default()); !errors.Is(
		err, errNoLesson) {
		t.Error(err)
	}
}

// A round whose window is over is closed before the next is decided, and not with it: a pause,
// in which the joiner closes it, changes nothing.
func TestSilenceEndsBeforeTheNext(t *testing.T) {
	text := "id,who,paid\n" + strings.Repeat("%d,a,\n", 11) + "%d,b,1\n"
	log := testLog(t, fmt.Sprintf(text, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11),
		logs.Mapping{Action: "who", Reward: "paid", ID: "id"})
	m, err := model.Parse("m.yaml", []byte("name: shop\nversion: 2\nwarm: keep\nwindow: 3\n"))
	if err != nil {
		t.Fatal(err)
	}
	l, err := NewLesson(log, m)
	if err != nil {
		t.Fatal(err)
	}
	live := clockOf(1)
	defer live.Close()
	if err := teachOn(t, live, l, 1, 0); err != nil {
		t.Fatal(err)
	}
	taught(t, live, 1)
	scanned(t, live, join.TopicsOf("shop").Decisions, func(r *stream.Record) error {
		var d codec.Decision
		err := codec.ParseDecision(&d, r.Value)
		if want := max(0, d.N-1-3); d.LearnedThrough != want {
			t.Errorf("decision %d had learned %d, want %d", d.N, d.LearnedThrough, want)
		}
		return err
	})
}
