package replay

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hindsight/internal/access"
	"hindsight/internal/engine"
	_ "hindsight/internal/testkit/roomy"
	"hindsight/internal/verify"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/kafkatest"
	"hindsight/pkg/stream/natstest"
)

func TestMain(m *testing.M) { natstest.TestMain(m) }

// pacedLog is a log of so many rows, 20 ms apart, whose outcomes come some rounds later,
// in another order, or never.
func pacedLog(t *testing.T, rows int) *Rounds {
	t.Helper()
	var b strings.Builder
	b.WriteString("id,at,who,paid,back,x,y\n")
	for i := range rows {
		at := time.Unix(1_700_000_000, 0).UTC().Add(time.Duration(i) * 20 * time.Millisecond)
		won, back := fmt.Sprint(i/3%2), at.Add(time.Duration(i*i%7)*30*time.Millisecond).Format(time.RFC3339Nano)
		if i%13 == 12 {
			won, back = "", ""
		}
		fmt.Fprintf(&b, "q%d,%s,%c,%s,%s,%d,%d\n", i, at.Format(time.RFC3339Nano), 'a'+i%2, won, back, i%5, i%3)
	}
	return parseLog(t, b.String(), timedMapping())
}

// TestEnginesEqualBacktest: on every engine, at full speed and paced, an injection equals
// the backtest in the interleaving that its log recorded: each decision to the bit, what
// it found, and the learner that it ends with.
func TestEnginesEqualBacktest(t *testing.T) {
	if testing.Short() {
		t.Skip("starts servers and brokers: go test without -short does")
	}
	const rows = 60
	for _, c := range []struct {
		name string
		log  func(t *testing.T) string
	}{
		{"embedded", func(t *testing.T) string { return "embedded:" + filepath.Join(t.TempDir(), "log") }},
		{"nats", func(t *testing.T) string { return natstest.Start(t, natstest.Options{}).URL() }},
		{"kafka", func(t *testing.T) string {
			addrs, _ := kafkatest.Fake(t, 1)
			return "kafka://" + strings.Join(addrs, ",")
		}},
	} {
		for _, speed := range []string{"max", "10x"} {
			t.Run(c.name+" "+speed, func(t *testing.T) {
				t.Parallel()
				e, err := engine.Open(t.Context(), engine.Options{Log: c.log(t), Listen: "127.0.0.1:0",
					Requests: access.None})
				if err != nil {
					t.Fatal(err)
				}
				defer e.Close()
				pacedEqualsBacktest(t, e.Log, pacedLog(t, rows), speed)
			})
		}
	}
}

// pacedEqualsBacktest plays a log to an engine at a speed.
func pacedEqualsBacktest(t *testing.T, log stream.Log, data *Rounds, speed string) {
	tr := trialOf(t, data, "dafa", "20", "recorded")
	var played Result
	began := time.Now()
	live, v := liveOn(t, log, tr, speed, func(log stream.Log) { sameAsLive(t, tr, log).match.Score(&played) })
	if least := time.Duration(data.Time(data.Len()-1)-data.Time(0)) / 10; speed == "10x" && time.Since(began) < least {
		t.Errorf("%v at %s took less than %v", data.Len(), speed, least)
	}
	if v.ExitCode() != verify.Identical {
		t.Errorf("the logs do not verify: %s", said(v))
	}
	if got, want := asJSON(t, played.Replay)+asJSON(t, played.MeanLoss)+asJSON(t, played.Matched),
		asJSON(t, live.Replay)+asJSON(t, live.MeanLoss)+asJSON(t, live.Matched); got != want || live.MeanLoss == nil {
		t.Errorf("the backtest found %s, live it was %s", got, want)
	}
	if live.Fates.Observed == 0 || live.Fates.Observed == int64(data.Len()) {
		t.Errorf("fates: %+v", live.Fates)
	}
}
