package topics

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"hindsight/internal/join"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/mem"
)

// noting is a log that notes which topics are made, and fails to tell of a topic.
type noting struct {
	*mem.Log
	made  []string
	fails string
}

var errAway = errors.New("the log is away")

func (n *noting) Create(ctx context.Context, topic string, partitions int, o stream.TopicOptions) error {
	if topic == n.fails {
		return errAway
	}
	n.made = append(n.made, fmt.Sprint(topic, " ", partitions, " ", o.MaxAge, " ", o.MaxBytes, " ", o.Trimmable))
	return n.Log.Create(ctx, topic, partitions, o)
}

func (n *noting) Partitions(ctx context.Context, topic string) (int, error) {
	if topic == n.fails {
		return 0, errAway
	}
	return n.Log.Partitions(ctx, topic)
}

func (n *noting) add(t *testing.T, topic, kind string, value []byte) {
	t.Helper()
	w, err := n.Writer(t.Context(), topic, 0, nil)
	if err == nil {
		_, err = w.Append(t.Context(), &stream.Record{Type: kind, Value: value})
	}
	if err != nil {
		t.Fatal(err)
	}
}

func mark(partitions int) []byte {
	return codec.AppendFeedbackMark(nil, &codec.FeedbackMark{Limits: codec.Limits{Heart: 1},
		Positions: make([]codec.Position, partitions)})
}

func epoch(partitions int) []byte {
	return codec.AppendEpoch(nil, &codec.Epoch{Epoch: 1, Partitions: partitions})
}

// TestEnsure: how many partitions a model gets, and keeps, whoever asks for how many; and what each topic keeps.
func TestEnsure(t *testing.T) {
	create := func(topic string, n int) func(*noting) {
		return func(l *noting) {
			if err := l.Log.Create(t.Context(), topic, n, stream.TopicOptions{MaxAge: 5, MaxBytes: 6}); err != nil {
				t.Fatal(err)
			}
		}
	}
	all := func(n int) func(*noting) {
		return func(l *noting) {
			if err := Create(t.Context(), l.Log, "m", n, Retention{Age: 5, Bytes: 6}); err != nil {
				t.Fatal(err)
			}
		}
	}
	fails := func(topic string) func(*noting) { return func(l *noting) { l.fails = topic } }
	marked := func(n int) func(*noting) { return func(l *noting) { l.add(t, "m.feedback", codec.TypeMark, mark(n)) } }
	for name, c := range map[string]struct {
		before []func(*noting)
		asked  int
		want   int
		err    error
	}{
		"new, as it comes":    {nil, 0, 1, nil},
		"new":                 {nil, 3, 3, nil},
		"half made":           {[]func(*noting){create("m.contexts", 2)}, 0, 2, nil},
		"half made, the same": {[]func(*noting){create("m.contexts", 2)}, 2, 2, nil},
		"half made, another":  {[]func(*noting){create("m.contexts", 2)}, 3, 0, stream.ErrPartitions},
		"half made, and wider": {[]func(*noting){create("m.contexts", 2), create("m.outcomes", 3)}, 0, 0,
			stream.ErrPartitions},
		"old, as it is":          {[]func(*noting){all(2)}, 0, 2, nil},
		"old, the same":          {[]func(*noting){all(2)}, 2, 2, nil},
		"old, fewer":             {[]func(*noting){all(2)}, 1, 0, stream.ErrPartitions},
		"old, more":              {[]func(*noting){all(2)}, 3, 0, stream.ErrPartitions},
		"a new log away":         {[]func(*noting){fails("m.contexts")}, 0, 0, errAway},
		"an old log away":        {[]func(*noting){all(2), fails("m.decisions")}, 0, 0, errAway},
		"contexts cannot be had": {[]func(*noting){all(2), fails("m.contexts")}, 0, 0, errAway},
		"rejects cannot be had":  {[]func(*noting){fails("m.rejects")}, 0, 0, errAway},
		"snapshots cannot":       {[]func(*noting){fails("m.snapshots")}, 0, 0, errAway},
		"partitions were added":  {[]func(*noting){all(3), marked(2)}, 0, 2, nil},
		"added, and asked":       {[]func(*noting){all(3), marked(2)}, 2, 2, nil},
		"partitions are gone":    {[]func(*noting){all(2), marked(3)}, 0, 0, stream.ErrPartitions},
	} {
		l := &noting{Log: mem.New(mem.Options{})}
		for _, f := range c.before {
			f(l)
		}
		n, err := Ensure(t.Context(), l, "m", c.asked, Retention{Age: 5, Bytes: 6})
		if !errors.Is(err, c.err) || err == nil && n != c.want {
			t.Errorf("%s: %d, %v", name, n, err)
		}
		if err == nil && len(c.before) == 0 {
			x := fmt.Sprint(" ", n, " 5 6 false")
			if want := []string{"m.contexts" + x, "m.decisions" + x, "m.outcomes" + x, "m.feedback 1 5 6 false",
				"m.rejects 1 5 6 false", "m.snapshots 1 0 0 true"}; !reflect.DeepEqual(l.made, want) {
				t.Errorf("%s made %q", name, l.made)
			}
		}
	}
}

// TestPartitions: the newest record of the feedback log that says how many partitions there were counts, of those that
// can be read and say so.
func TestPartitions(t *testing.T) {
	type entry struct {
		kind  string
		value []byte
	}
	other := entry{"", []byte("x")}
	for name, c := range map[string]struct {
		feedback []entry
		want     int
	}{
		"nothing":          {nil, 4},
		"feedback":         {[]entry{other}, 4},
		"a mark":           {[]entry{{codec.TypeMark, mark(1)}, other}, 1},
		"an epoch":         {[]entry{{codec.TypeEpoch, epoch(1)}, other}, 1},
		"an epoch of old":  {[]entry{{codec.TypeMark, mark(2)}, {codec.TypeEpoch, epoch(0)}}, 2},
		"two":              {[]entry{{codec.TypeMark, mark(2)}, {codec.TypeEpoch, epoch(3)}}, 3},
		"two, turned":      {[]entry{{codec.TypeEpoch, epoch(3)}, {codec.TypeMark, mark(2)}}, 2},
		"damaged":          {[]entry{{codec.TypeMark, mark(2)}, {codec.TypeMark, mark(3)[:9]}}, 2},
		"damaged epoch":    {[]entry{{codec.TypeMark, mark(2)}, {codec.TypeEpoch, epoch(3)[:9]}}, 2},
		"no partitions":    {[]entry{{codec.TypeMark, mark(2)}, {codec.TypeMark, mark(0)}}, 2},
		"far back":         {append([]entry{{codec.TypeMark, mark(3)}}, slices.Repeat([]entry{other}, 2500)...), 3},
		"nothing but that": {[]entry{{codec.TypeMark, mark(0)}, {codec.TypeEpoch, epoch(0)}}, 4},
	} {
		l := &noting{Log: mem.New(mem.Options{})}
		if err := Create(t.Context(), l, "m", 4, Retention{}); err != nil {
			t.Fatal(err)
		}
		for _, e := range c.feedback {
			l.add(t, "m.feedback", e.kind, e.value)
		}
		if n, err := Partitions(t.Context(), l, "m"); n != c.want || err != nil {
			t.Errorf("%s: %d, %v, want %d", name, n, err, c.want)
		}
	}
	if n, err := Partitions(t.Context(), mem.New(mem.Options{}), "m"); n != 0 || !errors.Is(err, stream.ErrNotFound) {
		t.Errorf("of no model: %d, %v", n, err)
	}
}

// bounded is a log whose feedback has these bounds.
type bounded struct {
	stream.Log
	first, next int64
	err         error
}

func (b *bounded) Bounds(_ context.Context, topic string, partition int) (int64, int64, error) {
	if topic != "m.feedback" || partition != 0 {
		return 0, 0, stream.ErrNotFound
	}
	return b.first, b.next, b.err
}

func TestBegun(t *testing.T) {
	for _, c := range []struct {
		log  bounded
		want bool
	}{{bounded{err: stream.ErrNotFound, next: 9}, false}, {bounded{err: errAway}, false}, {bounded{}, false},
		{bounded{first: 1, next: 1}, false}, {bounded{first: join.LogStart, next: join.LogStart}, false},
		{bounded{first: 0, next: 1}, true}, {bounded{first: 1, next: 2}, true},
		{bounded{first: join.LogStart + 1, next: join.LogStart + 1}, true}} {
		got, err := Begun(t.Context(), &c.log, "m")
		if got != c.want || (err != nil) != errors.Is(c.log.err, errAway) {
			t.Errorf("%+v: %t, %v", c.log, got, err)
		}
	}
}

// TestCheckWaits: a topic that is gone is told after two seconds, in which brokers learn of it, and one that comes in
// that time is no fault.
func TestCheckWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, comes := range []time.Duration{time.Second, 2100 * time.Millisecond, time.Hour} {
			l, begin := &late{Log: mem.New(mem.Options{}), at: time.Now().Add(comes)}, time.Now()
			if err := Create(t.Context(), l, "m", 1, Retention{}); err != nil {
				t.Fatal(err)
			}
			err := Check(t.Context(), l, "m")
			is, want := time.Since(begin), min(comes, 2250*time.Millisecond)
			if want = (want + 249*time.Millisecond) / (250 * time.Millisecond) * (250 * time.Millisecond); is != want ||
				(err == nil) != (comes < time.Hour) {
				t.Errorf("a topic that comes after %v: %v after %v", comes, err, is)
			}
		}
		l := &noting{Log: mem.New(mem.Options{}), fails: "m.outcomes"}
		if err := Check(t.Context(), l, "m"); !errors.Is(err, errAway) {
			t.Errorf("of a log that is away: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		w := without{mem.New(mem.Options{}), "m.decisions"}
		if err := errors.Join(Create(ctx, w.Log, "m", 1, Retention{})); err != nil {
			t.Fatal(err)
		}
		if err := Check(ctx, w, "m"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("stopped: %v", err)
		}
	})
}

// late is a log whose decisions are known from a time on.
type late struct {
	stream.Log
	at time.Time
}

func (l *late) Partitions(ctx context.Context, topic string) (int, error) {
	if topic == "m.decisions" && time.Now().Before(l.at) {
		return 0, stream.ErrNotFound
	}
	return l.Log.Partitions(ctx, topic)
}

// TestAwait: a program waits for all topics and for the first record of a decider, looks ten times a second and says
// once that it waits.
func TestAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said strings.Builder
		logger, log, begin := slog.New(slog.NewTextHandler(&said, nil)), mem.New(mem.Options{}), time.Now()
		gone := &noting{Log: log}
		go func() {
			time.Sleep(250 * time.Millisecond)
			if err := Create(context.Background(), log, "m", 3, Retention{}); err != nil {
				panic(err)
			}
			time.Sleep(time.Second)
			if _, _, err := log.Open(context.Background(), "m.decisions", 1, stream.OpenOptions{}); err != nil {
				panic(err)
			}
		}()
		n, err := Await(t.Context(), gone, "m", logger)
		if took := time.Since(begin); n != 3 || err != nil || took != 1300*time.Millisecond {
			t.Errorf("%d, %v after %v", n, err, took)
		}
		if k := strings.Count(said.String(), "waiting for a decider"); k != 1 {
			t.Errorf("said %d times", k)
		}
		for _, topic := range []string{"m.decisions", "m.feedback", "m.snapshots"} {
			gone.fails = topic
			if n, err := Await(t.Context(), gone, "m", logger); !errors.Is(err, errAway) {
				t.Errorf("of a log whose %s are away: %d, %v", topic, n, err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			n, err := Await(ctx, without{log, topic}, "m", logger)
			if n != 0 || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("without %s: %d, %v", topic, n, err)
			}
			cancel()
		}
	})
}
