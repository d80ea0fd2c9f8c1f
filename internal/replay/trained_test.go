package replay

import (
	"bytes"
	"strings"
	"testing"

	"hindsight/internal/follow"
	"hindsight/internal/join"
	"hindsight/internal/model"
	"hindsight/internal/world"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/mem"
)

// TestTrained: the learner after feedback N is that of who follows the log that far, with
// and without snapshots before it.
func TestTrained(t *testing.T) {
	tr := trialOf(t, OfWorld(world.NewSigmoid(1, 120, world.SigmoidOptions{})), "dafa", "200", "exp:5")
	seen := map[string]bool{}
	liveLog(t, tr, func(log stream.Log) {
		for _, n := range []int64{1, 57, 119, 120} {
			audit := follow.New(log, "replay", model.Epoch, 1)
			err := stream.Scan(t.Context(), log, join.TopicsOf("replay").Feedback, 0, stream.Earliest, 1<<40,
				func(r *stream.Record) error {
					if audit.Replica().LearnedThrough() == n {
						return stream.ErrStop
					}
					return audit.Take(t.Context(), r)
				})
			if err != nil {
				t.Fatal(err)
			}
			want, err := audit.Replica().Epoch().Learner.AppendBinary(nil)
			if err != nil {
				t.Fatal(err)
			}
			l, err := Trained(t.Context(), log, "replay", model.Epoch, n)
			if err != nil || l.Through != n {
				t.Fatalf("after %d: %+v, %v", n, l, err)
			}
			if seen[l.Digest] || len(l.Digest) != 64 {
				t.Errorf("after %d: digest %q", n, l.Digest)
			}
			seen[l.Digest] = true
			if got, err := l.Epoch.Learner.AppendBinary(nil); err != nil || !bytes.Equal(got, want) {
				t.Errorf("after %d it is another learner (%v)", n, err)
			}
		}
		if l, err := Trained(t.Context(), log, "replay", model.Epoch, 0); err != nil || l.Through != 120 ||
			!seen[l.Digest] {
			t.Errorf("all of it: %+v, %v", l, err)
		}
		if _, err := Trained(t.Context(), log, "replay", model.Epoch, 121); err == nil || !strings.Contains(err.Error(),
			"feedback through 120, not 121") {
			t.Errorf("beyond the end: %v", err)
		}
		// What a snapshot had learned may be gone from the log.
		last, err := lastSnapshot(t.Context(), log, "replay", 120)
		if err != nil || last == nil {
			t.Fatalf("no snapshot is left behind: %v", err)
		}
		if err := log.(*mem.Log).Truncate(join.TopicsOf("replay").Feedback, 0, last.FeedbackFrom); err != nil {
			t.Fatal(err)
		}
		if l, err := Trained(t.Context(), log, "replay", model.Epoch, 0); err != nil || !seen[l.Digest] {
			t.Errorf("from a snapshot alone: %+v, %v", l, err)
		}
	})
}
