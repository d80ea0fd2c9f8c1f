package main

import (
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"hindsight/internal/access"
	"hindsight/internal/engine"
	"hindsight/internal/join"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/kafkatest"
	"hindsight/pkg/stream/natstest"
)

// TestEncodings plays one world to logs in MessagePack and in JSON on each engine: decisions and
// feedback are equal but for places and times, and verify finds no difference.
func TestEncodings(t *testing.T) {
	if testing.Short() {
		t.Skip("starts servers and brokers: go test without -short does")
	}
	addrs, _ := kafkatest.Fake(t, 1)
	equalEncodings(t, "embedded:"+filepath.Join(t.TempDir(), "log"), natstest.Start(t, natstest.Options{}).URL(),
		"kafka://"+strings.Join(addrs, ","))
}

// TestKafkaRealEncodings is the same on a real broker.
func TestKafkaRealEncodings(t *testing.T) {
	kafkatest.Heavy(t)
	c := kafkatest.Shared(t)
	want := equalEncodings(t, "kafka://"+strings.Join(c.Brokers(), ","))
	readByConnect(t, kafkatest.Program(t, "testdata/Connect.java", strings.Join(c.Brokers(), ","), "alike.decisions",
		"alike.feedback", "alike.rejects", "alike.snapshots"), want)
}

// readByConnect checks the lines that Kafka Connect's converter made of topics.
func readByConnect(t *testing.T, out string, want played) {
	types := map[string]int{}
	decisions, feedback := want.decisions, want.feedback
	for _, line := range strings.Split(out, "\n") {
		f := strings.Split(line, "\t")
		if len(f) != 13 {
			continue // a line of Kafka's logger
		}
		topic, kind, media, at, told := f[0], f[1], f[2], f[3], f[4]
		types[topic+" "+kind]++
		if told != kind || kind != stream.TypeOpen && media != "application/json" {
			t.Errorf("%q: type %q in the header, %q in the record", line, kind, told)
		}
		if kind != "" || topic == "snapshots" || topic == "rejects" {
			continue
		}
		var id, action, ns string
		var bits [2]uint64
		if topic == "decisions" {
			d := &decisions[0]
			id, action, bits[0], ns = d.ID, d.Actions[d.Action], math.Float64bits(d.Propensities[d.Action]), f[7]
			decisions = decisions[1:]
		} else {
			x := &feedback[0]
			id, action, bits, ns = x.ID, x.Actions[x.Action], [2]uint64{math.Float64bits(x.Propensities[x.Action]),
				math.Float64bits(x.Loss)}, f[8]
			feedback = feedback[1:]
		}
		loss := ""
		if topic == "feedback" {
			loss = fmt.Sprint(bits[1])
		}
		n, err := strconv.ParseInt(ns, 10, 64)
		if f[5] != id || f[9] != action || f[10] != fmt.Sprint(bits[0]) || f[11] != loss || f[12] != "true" ||
			err != nil || at != time.Unix(0, n).UTC().Format(time.RFC3339Nano) {
			t.Errorf("%q: want %s, %s, %v", line, id, action, bits)
		}
	}
	if len(decisions)+len(feedback) > 0 || types["feedback cut"] == 0 || types["decisions open"] == 0 ||
		types["feedback epoch"] == 0 || types["feedback mark"] == 0 || types["snapshots "] == 0 {
		t.Errorf("Kafka Connect read %v; %d decisions and %d feedbacks are missing", types, len(decisions),
			len(feedback))
	}
}

func equalEncodings(t *testing.T, logs ...string) played {
	m := writeFile(t, "m.yaml", "name: alike\nactions: [a1, a2, a3]\nwindow: 40 rounds\nguard: {alpha: 0.1}\n")
	seed := filepath.Join(t.TempDir(), "seed")
	play := func(log, encoding string) played {
		object(t, "inject", "--env", "linear:2,3", "--rounds", "300", "--seed", "5", "--model", m, "--delays", "exp:15",
			"--encoding", encoding, "--json", "--log", log, "--seed-file", seed)
		if r := execute(t.Context(), audit("verify", log, seed)...); r.code != 0 {
			t.Errorf("%s, %s: verify: exit code %d: %s%s", log, encoding, r.code, r.stdout, r.stderr)
		}
		return playedTo(t, log, encoding)
	}
	want := play("embedded:"+filepath.Join(t.TempDir(), "log"), "msgpack")
	if len(want.decisions) != 300 || len(want.feedback) < 200 {
		t.Fatalf("%d decisions, %d feedbacks: this shows nothing", len(want.decisions), len(want.feedback))
	}
	for _, log := range logs {
		got := play(log, "json")
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %d decisions and %d feedbacks, %d and %d in MessagePack, and not the same", log,
				len(got.decisions), len(got.feedback), len(want.decisions), len(want.feedback))
		}
		id := want.decisions[7].ID
		r := execute(t.Context(), append(audit("explain", log, seed), id)...)
		if r.code != 0 || !strings.Contains(r.stdout, "identical") {
			t.Errorf("%s: explain %s: exit code %d: %s%s", log, id, r.code, r.stdout, r.stderr)
		}
	}
	return want
}

// audit returns a command on a log, whose seed lies in its folder if it has one.
func audit(command, log, seed string) []string {
	args := []string{command, "--log", log, "--name", "alike"}
	if strings.HasPrefix(log, "embedded:") {
		return args
	}
	return append(args, "--seed-file", seed)
}

// played is what the logs of a run hold but for places and times.
type played struct {
	decisions []codec.Decision
	feedback  []codec.Feedback
}

func playedTo(t *testing.T, log, encoding string) (p played) {
	t.Helper()
	e, err := engine.Open(t.Context(), engine.Options{Log: log, Listen: "127.0.0.1:0", Requests: access.None})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	meant := func(raw []byte) []byte {
		var c codec.Context
		if err := codec.ParseContext(&c, raw); err != nil {
			t.Fatal(err)
		}
		return codec.AppendContextJSON(nil, &c)
	}
	ts := join.TopicsOf("alike")
	for _, topic := range []string{ts.Decisions, ts.Feedback} {
		err := stream.Scan(t.Context(), e.Log, topic, 0, stream.Earliest, math.MaxInt64, func(r *stream.Record) error {
			if got := codec.EncodingOf(r.Value).String(); got != encoding && len(r.Value) > 0 {
				return fmt.Errorf("a record %q of %s", r.Type, got)
			}
			switch {
			case r.Type != "":
				return nil
			case topic == ts.Feedback:
				var f codec.Feedback
				err := codec.ParseFeedback(&f, append([]byte(nil), r.Value...))
				f.Time, f.OutcomeOffset, f.ClosedAt, f.Context = 0, 0, 0, meant(f.Context)
				p.feedback = append(p.feedback, f)
				return err
			}
			var d codec.Decision
			err := codec.ParseDecision(&d, append([]byte(nil), r.Value...))
			d.Time, d.ContextsThrough, d.Source, d.Context = 0, 0, 0, meant(d.Context)
			p.decisions = append(p.decisions, d)
			return err
		})
		if err != nil {
			t.Fatalf("%s: %s: %v", log, topic, err)
		}
	}
	return p
}
