package tail

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"hindsight/internal/join"
	"hindsight/internal/topics"
	"hindsight/internal/watch"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/mem"
)

// written is a log with one partition of decisions, as a system would write it.
type written struct {
	t   *testing.T
	log stream.Log
	to  map[string]stream.Appender
}

func newWritten(t *testing.T) *written {
	w := &written{t: t, log: mem.New(mem.Options{}), to: map[string]stream.Appender{}}
	if err := topics.Create(t.Context(), w.log, "m", 1, topics.Retention{}); err != nil {
		t.Fatal(err)
	}
	topics := join.TopicsOf("m")
	for _, topic := range []string{topics.Decisions, topics.Feedback, topics.Rejects} {
		a, err := w.log.Writer(t.Context(), topic, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { a.Close() })
		w.to[topic] = a
	}
	return w
}

func (w *written) append(topic string, value []byte) {
	w.t.Helper()
	if _, err := w.to[topic].Append(w.t.Context(), &stream.Record{Value: value}); err != nil {
		w.t.Fatal(err)
	}
	if err := w.to[topic].Flush(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

func (w *written) decision(n int64) {
	d := codec.Decision{N: n, ID: "r", Epoch: 1, Actions: []string{"a", "b"}, Propensities: []float64{.75, .25},
		Source: -1, Context: []byte(`{}`)}
	w.append("m.decisions", codec.AppendDecision(nil, &d))
}

// feedback of a round decided at 5 s, whose outcome came at 7.5 s.
func (w *written) feedback(n int64, fate codec.Fate, loss float64) {
	f := codec.Feedback{N: n, Round: n, ID: "r", Epoch: 1, Time: 5e9, ClosedAt: 75e8, Actions: []string{"a", "b"},
		Propensities: []float64{.75, .25},
		Fate:         fate, Loss: loss, Context: []byte(`{}`), OutcomePartition: -1, OutcomeOffset: -1}
	w.append("m.feedback", codec.AppendFeedback(nil, &f))
}

// TestTail follows a log from its last two records on: what was before counts for the
// number of rounds that wait only.
func TestTail(t *testing.T) {
	w := newWritten(t)
	for n := range int64(5) {
		w.decision(n + 1)
	}
	w.feedback(1, codec.Observed, 1)
	w.feedback(2, codec.Observed, .25)
	w.feedback(3, codec.Skipped, 0)
	tail, err := Open(t.Context(), Config{Log: w.log, Name: "m", Last: 2})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- tail.Follow(ctx) }()
	l := total(t, tail, func(l *progressLine) bool {
		return l.Decisions == 2 && l.Fates["observed"]+l.Fates["skipped"] == 2
	})
	if l.Appended != 0 || l.Fates["observed"] != 1 || l.Fates["skipped"] != 1 || l.Waiting == nil || *l.Waiting != 2 ||
		*l.Loss != .25 || *l.JoinRatio != .5 || *l.DelayP50 != 2.5 {
		t.Errorf("of the last two records: %+v", l)
	}
	w.decision(6)
	w.append("m.rejects", codec.AppendReject(nil, &codec.Reject{Topic: "outcomes", Reason: "orphan", ID: "x"}))
	l = total(t, tail, func(l *progressLine) bool { return l.Decisions == 1 && len(l.Rejects) > 0 })
	if l.Appended != 1 || l.Rejects["outcomes/orphan"] != 1 || *l.Waiting != 3 || l.Fates["observed"] != 0 {
		t.Errorf("of what came then: %+v", l)
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("stopped: %v", err)
	}
}

// total adds lines until they say what is awaited.
func total(t *testing.T, tail *Tail, done func(*progressLine) bool) progressLine {
	t.Helper()
	sum := progressLine{Fates: map[string]int64{}, Rejects: map[string]int64{}}
	tick, limit := time.NewTicker(time.Millisecond), time.After(10*time.Second)
	defer tick.Stop()
	for {
		l := tail.Line()
		l.Decisions += sum.Decisions
		l.Appended += sum.Appended
		for k, n := range sum.Fates {
			l.Fates[k] += n
		}
		for k, n := range sum.Rejects {
			l.Rejects[k] += n
		}
		if sum = l; done(&sum) {
			return sum
		}
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("not within 10 s: %+v", sum)
		}
	}
}

// TestTailForeign passes over what somebody else wrote, and counts it.
func TestTailForeign(t *testing.T) {
	w := newWritten(t)
	tail, err := Open(t.Context(), Config{Log: w.log, Name: "m", Last: -1})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- tail.Follow(ctx) }()
	for _, topic := range []string{"m.decisions", "m.feedback", "m.rejects"} {
		mark := stream.Record{Type: codec.TypeMark, Value: []byte("x")} // is none of these
		if _, err := w.to[topic].Append(ctx, &mark); err != nil {
			t.Fatal(err)
		}
		w.append(topic, []byte(`{"id":"c1","loss":0}`))
	}
	w.decision(1)
	w.feedback(1, codec.Observed, 1)
	l := total(t, tail, func(l *progressLine) bool {
		return l.Decisions == 1 && l.Fates["observed"] == 1 && len(l.Rejects) == 3
	})
	if l.Rejects["decisions/foreign"] != 1 || l.Rejects["feedback/foreign"] != 1 || l.Rejects["rejects/foreign"] != 1 {
		t.Errorf("%+v", l.Rejects)
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("stopped: %v", err)
	}
}

// TestTailNewer ends with the place of a record of a later program.
func TestTailNewer(t *testing.T) {
	w := newWritten(t)
	w.append("m.feedback", []byte{0x81, 0xa1, 'v', 0x63}) // {"v": 99}
	tail, err := Open(t.Context(), Config{Log: w.log, Name: "m", Last: -1})
	if err != nil {
		t.Fatal(err)
	}
	if err := tail.Follow(t.Context()); err == nil || !strings.Contains(err.Error(), "m.feedback[0]: record ") {
		t.Errorf("got %v", err)
	}
}

// gone is a log of which one call of a topic fails: to read it "again" after retention has overtaken a reader, too.
type gone struct {
	stream.Log
	call  string
	reads int // of feedback, by one goroutine
}

var errGone = errors.New("the log is gone")

func (l *gone) fails(call, topic string) error {
	if l.call == call+" "+topic {
		return errGone
	}
	return nil
}

func (l *gone) Partitions(ctx context.Context, topic string) (int, error) {
	n, err := l.Log.Partitions(ctx, topic)
	return n, errors.Join(err, l.fails("partitions", topic))
}

func (l *gone) Bounds(ctx context.Context, topic string, partition int) (first, next int64, err error) {
	first, next, err = l.Log.Bounds(ctx, topic, partition)
	return first, next, errors.Join(err, l.fails("bounds", topic))
}

func (l *gone) Read(ctx context.Context, topic string, partition int, from int64) (stream.Reader, error) {
	r, err := l.Log.Read(ctx, topic, partition, from)
	again := l.fails("again", topic)
	if again != nil {
		l.reads++
	}
	if err = errors.Join(err, l.fails("read", topic)); err != nil || again != nil && l.reads > 1 {
		return nil, errors.Join(err, again, r.Close())
	}
	if again != nil {
		return failing{r, stream.ErrTruncated}, nil
	}
	if err := l.fails("next", topic); err != nil {
		return failing{r, err}, nil
	}
	return r, nil
}

type failing struct {
	stream.Reader
	err error
}

func (f failing) Next(context.Context, []stream.Record) ([]stream.Record, error) { return nil, f.err }

// TestTailFails ends with the error of whatever the log refuses.
func TestTailFails(t *testing.T) {
	w := newWritten(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for _, call := range []string{"partitions m.decisions", "bounds m.decisions", "bounds m.feedback",
		"bounds m.rejects", "read m.decisions", "next m.feedback", "again m.feedback"} {
		tail, err := Open(ctx, Config{Log: &gone{Log: w.log, call: call}, Name: "m"})
		if err == nil {
			err = tail.Follow(ctx)
		}
		if !errors.Is(err, errGone) {
			t.Errorf("%s: got %v", call, err)
		}
	}
}

// TestTailDeadline ends without an error when its time is over.
func TestTailDeadline(t *testing.T) {
	w := newWritten(t)
	tail, err := Open(t.Context(), Config{Log: w.log, Name: "m"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	if err := tail.Follow(ctx); err != nil {
		t.Errorf("got %v", err)
	}
}

func TestPrinter(t *testing.T) {
	waiting, loss, p50 := int64(7), .12345, 1.23456
	l := progressLine{Time: time.Unix(3661, 0).UTC(), Seconds: 2, Decisions: 1025, Appended: 25,
		Fates: map[string]int64{
			"observed": 20, "withdrawn": 1}, Rejects: map[string]int64{"outcomes/late": 2, "contexts/malformed": 1},
		Waiting: &waiting, Loss: &loss, DelayP50: &p50}
	var b bytes.Buffer
	p := Printer{W: &b}
	for range 21 {
		if err := p.Print(&l); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(b.String(), "decided/s"); n != 2 {
		t.Errorf("%d headings over 21 lines", n)
	}
	line := strings.Join(strings.Fields(strings.Split(b.String(), "\n")[1]), " ")
	if want := "01:01:01 12.5 20 0 0 1 7 1.23s – – 0.1235 – contexts/malformed 1, outcomes/late 2"; line != want {
		t.Errorf("%q, want %q", line, want)
	}
	b.Reset()
	p = Printer{W: &b, JSON: true}
	var back progressLine
	if err := p.Print(&l); err != nil || json.Unmarshal(b.Bytes(), &back) != nil || *back.Waiting != 7 ||
		back.Uniform != nil {
		t.Errorf("%v, %s", err, &b)
	}
}

// TestTailTakes: which records count, and how many decisions wait once each log was seen.
func TestTailTakes(t *testing.T) {
	tail := &Tail{topics: join.TopicsOf("m"), scope: watch.NewScope(), released: -1, decided: []int64{-1, -1},
		ends: []int64{3, 5}, now: counts{fates: map[codec.Fate]int64{}, rejects: map[string]int64{}}}
	tail.was = tail.now.clone()
	give := func(partition int, n, offset int64) {
		d := codec.Decision{N: n, Partition: partition, ID: "r", Epoch: 1, Actions: []string{"a", "b"},
			Propensities: []float64{.75, .25}, Source: -1, Context: []byte(`{}`)}
		if err := tail.decision(&stream.Record{Offset: offset, Value: codec.AppendDecision(nil, &d)}); err != nil {
			t.Fatal(err)
		}
	}
	for i, c := range []struct {
		partition               int
		n, offset               int64
		released                int64 // by then; 0: nothing
		decided, appended, wait int64
	}{{2, 9, 9, 0, 0, 0, -1}, {0, 4, 2, 0, 1, 0, -1}, {1, 3, 4, 0, 2, 0, -1}, {1, 4, 5, 0, 3, 1, -1}, {0, 5, 3, 2,
		4, 2, 7},
		{0, 6, 4, 20, 5, 3, 0}} {
		give(c.partition, c.n, c.offset)
		if c.released > 0 {
			f := codec.Feedback{N: c.released, Round: 1, ID: "r", Epoch: 1, Actions: []string{"a", "b"}, Stage: i % 2,
				Propensities: []float64{.75, .25}, Fate: codec.Skipped, Context: []byte(`{}`), OutcomePartition: -1,
				OutcomeOffset: -1}
			if f.Stage > 0 {
				f.Fate, f.Outcomes = codec.Observed, []codec.Closed{{Name: "q", Fate: codec.Observed}}
			}
			if err := tail.feedback(&stream.Record{Value: codec.AppendFeedback(nil, &f)}); err != nil {
				t.Fatal(err)
			}
		}
		if tail.now.decisions != c.decided || tail.now.appended != c.appended || tail.waiting() != c.wait {
			t.Errorf("%d: %d decisions, %d appended, %d wait", i, tail.now.decisions, tail.now.appended, tail.waiting())
		}
	}
	if tail.now.fates[codec.Skipped] != 1 || tail.now.fates[codec.Observed] != 0 {
		t.Errorf("fates %v", tail.now.fates)
	}
	for _, want := range []bool{true, false} {
		l := tail.Line()
		if (l.Decisions == 5) != want || (l.Appended == 3) != want || (l.Fates["skipped"] == 1) != want ||
			l.Waiting == nil || *l.Waiting != 0 || len(l.Fates) != 4 || l.Seconds < 0 {
			t.Errorf("first %t: %+v", want, l)
		}
	}
}

// TestShown: numbers that there are none of, and durations with about three digits.
func TestShown(t *testing.T) {
	for x, want := range map[float64]string{0: "0s", 0.000123456: "123µs", 0.0123456: "12.3ms", 1.23456: "1.23s",
		12.3456: "12.3s", 100: "1m40s", 1234.5: "20m30s"} {
		if got := seconds(&x); got != want {
			t.Errorf("%v is shown as %s, not %s", x, got, want)
		}
	}
	if seconds(nil) != "–" || number(nil, "%v", 1) != "–" || rejects(nil) != "–" ||
		rejects(map[string]int64{"b": 2, "a": 1}) != "a 1, b 2" {
		t.Error("what is not there is shown as something")
	}
	var b bytes.Buffer
	if err := (&Printer{W: &b}).Print(&progressLine{Appended: 5}); err != nil || !strings.Contains(b.String(),
		" 0.0 ") ||
		!strings.Contains(b.String(), " ? ") {
		t.Errorf("%v, %s", err, &b)
	}
}

// TestTailGoesOn: what retention dropped before it was read is passed over, and a log that is away is read again.
func TestTailGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWritten(t)
		for n := range int64(4) {
			w.feedback(n+1, codec.Observed, 1)
		}
		log := &stumbling{Log: w.log}
		tail, err := Open(t.Context(), Config{Log: log, Name: "m", Last: 0})
		if err != nil {
			t.Fatal(err)
		}
		log.errs, log.reads, log.nexts = []error{stream.ErrTruncated, stream.ErrUnavailable}, 0, 0
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := tail.Follow(ctx); err != nil {
			t.Fatal(err)
		}
		if l := tail.Line(); l.Fates["observed"] != 4 || log.reads != 2 || log.nexts > 10 {
			t.Errorf("%d read in %d readers and %d calls", l.Fates["observed"], log.reads, log.nexts)
		}
	})
}

// stumbling is a log whose readers of feedback fail with these errors first.
type stumbling struct {
	stream.Log
	errs         []error
	reads, nexts int
}

func (l *stumbling) Read(ctx context.Context, topic string, partition int, from int64) (stream.Reader, error) {
	r, err := l.Log.Read(ctx, topic, partition, from)
	if topic != "m.feedback" || err != nil {
		return r, err
	}
	l.reads++
	return &stumble{r, l}, nil
}

type stumble struct {
	stream.Reader
	of *stumbling
}

func (s *stumble) Next(ctx context.Context, dst []stream.Record) ([]stream.Record, error) {
	if s.of.nexts++; len(s.of.errs) > 0 {
		err := s.of.errs[0]
		s.of.errs = s.of.errs[1:]
		return dst, err
	}
	return s.Reader.Next(ctx, dst)
}
