package engine

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"hindsight/internal/front"
	"hindsight/internal/service"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/embedded"
)

// One client cannot fill the store with outcomes: once these and rejects hold half of it
// further ones are refused with the reason, after a restart too, and there is room for decisions.
func TestOutcomesQuota(t *testing.T) {
	const limit = 16 << 20
	o := embedded.Options{Dir: t.TempDir(), DontListen: true, MaxBytes: limit}
	outcome := fmt.Appendf(nil, `{"id":"a","loss":1,"x":"%s"}`, strings.Repeat("x", 60<<10))
	ctx := t.Context()
	for _, restarted := range []bool{false, true} {
		e, err := embedded.Open(ctx, o)
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		if err := service.CreateTopics(ctx, e.Log(), "m", 2, service.Retention{}); err != nil {
			t.Fatal(err)
		}
		rejects, err := e.Log().Writer(ctx, "m.rejects", 0, nil) // as a joiner writes them meanwhile
		if err != nil {
			t.Fatal(err)
		}
		s, err := front.NewServer(front.Config{Bus: e.Bus(), Name: "m", Partitions: 2}).ServeOutcomes(ctx, e.Log())
		if err != nil {
			t.Fatal(err)
		}
		taken, refused := 0, ""
		for refused == "" && taken < 2*limit/len(outcome) {
			reply, _, err := e.Bus().Request(ctx, "m.outcome", outcome)
			if err != nil {
				t.Fatal(err)
			}
			var answer struct {
				Error struct{ Message string }
			}
			if err := json.Unmarshal(reply, &answer); err != nil {
				t.Fatalf("%s: %v", reply, err)
			}
			if refused = answer.Error.Message; refused == "" {
				taken++
			}
			if _, err := rejects.Append(ctx, &stream.Record{Value: make([]byte, 4<<10)}); err != nil {
				t.Fatal(err)
			}
		}
		if err := rejects.Flush(ctx); err != nil {
			t.Error(err)
		}
		held, of, err := e.Log().Fill(ctx, "m.outcomes", "m.rejects")
		t.Logf("%d outcomes taken, %d of %d bytes held; then %q", taken, held, of, refused)
		if err != nil || of != limit || held < limit/2-limit/32 || held > limit/2+limit/32 ||
			!strings.Contains(refused, "half of the store") {
			t.Errorf("%d bytes of %d held, %v; then %q", held, of, err, refused)
		}
		if restarted && taken > 0 {
			t.Errorf("%d outcomes were taken after a restart", taken)
		}
		d, _, err := e.Log().Open(ctx, "m.decisions", 0, stream.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.Append(ctx, &stream.Record{Value: make([]byte, 1<<18)}); err != nil {
			t.Fatal(err)
		}
		if err := d.Flush(ctx); err != nil {
			t.Error(err)
		}
		s.Close()
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
