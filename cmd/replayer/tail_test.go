package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hindsight/internal/daemon"
)

// TestInjectSpeed plays a log of 2.9 s ten times as fast: it takes no less than .29 s, and
// what is drawn and joined is what it is at full speed.
func TestInjectSpeed(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("at,done,arm,won,n_x\n")
	for i := range 30 {
		at := time.Unix(1_700_000_000, int64(i)*1e8).UTC()
		fmt.Fprintf(&b, "%s,%s,%c,%d,%d\n", at.Format(time.RFC3339Nano),
			at.Add(350*time.Millisecond).Format(time.RFC3339Nano), 'a'+i%2, i%2, i)
	}
	path := filepath.Join(t.TempDir(), "log.csv")
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	play := func(speed string) map[string]any {
		return object(t, "inject", "--data", path, "--time-column", "at", "--outcome-time-column", "done",
			"--action-column", "arm", "--reward-column", "won",
			"--features", "n_x", "--learner", "uniform", "--log", "mem:", "--speed", speed, "--json")
	}
	began := time.Now()
	paced := play("10x")
	if took := time.Since(began); took < 290*time.Millisecond {
		t.Errorf("2.9 s ten times as fast took %v", took)
	}
	atOnce := play("max")
	for _, key := range []string{"rounds", "fates", "mean_loss"} {
		if a, b := fmt.Sprint(paced[key]), fmt.Sprint(atOnce[key]); a != b || a == "<nil>" {
			t.Errorf("%s: %s at 10x, %s at full speed", key, a, b)
		}
	}
}

// untilSum is standard output of tail, which is stopped when its lines add up.
type untilSum struct {
	t                   *testing.T
	want                float64
	decided, released   float64
	appended            float64
	stop                context.CancelFunc
	text                bytes.Buffer
	losses, joinedRatio any
}

func (u *untilSum) Write(line []byte) (int, error) {
	u.text.Write(line)
	var l map[string]any
	if err := json.Unmarshal(line, &l); err != nil {
		u.t.Errorf("%v: %s", err, line)
		return len(line), nil
	}
	u.decided += l["decisions"].(float64)
	u.appended += l["appended"].(float64)
	for _, n := range l["fates"].(map[string]any) {
		u.released += n.(float64)
	}
	u.losses, u.joinedRatio = l["loss"], l["join_ratio"]
	if u.decided >= u.want && u.released >= u.want {
		u.stop()
	}
	return len(line), nil
}

// TestTail reads all of a log that was kept.
func TestTail(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "log")
	run := object(t, "inject", "--rounds", "200", "--log", "embedded:"+dir, "--listen", "127.0.0.1:0", "--json")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out := &untilSum{t: t, want: 200, stop: cancel}
	var stderr bytes.Buffer
	env := &daemon.Env{Args: []string{"tail", "--log", "embedded:" + dir, "--last", "-1", "--every", "50ms", "--json"},
		Getenv: func(string) string { return "" },
		Stdin:  strings.NewReader(""), Stdout: out, Stderr: &stderr}
	daemon.Run(ctx, env, command(env))
	if want := "no decider serves " + dir + ": this is what it holds, and no decider can be started on it until this " +
		"ends\n"; !strings.HasPrefix(stderr.String(), want) {
		t.Errorf("%q, want %q", &stderr, want)
	}
	if out.decided != 200 || out.appended != 0 || out.released != 200 || out.losses == nil || out.joinedRatio == nil {
		t.Errorf("%v decisions and %v feedbacks of 200 (%v); %s%s", out.decided, out.released, run["fates"], &out.text,
			&stderr)
	}
}
