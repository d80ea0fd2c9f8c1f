package verify

import (
	"bytes"
	"fmt"
	"testing"

	"hindsight/internal/join"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/mem"
)

// heldModels are those whose decisions a guard can hold to a share of the baseline's gain.
var heldModels = map[string]string{
	"hedge": "oracle: {kind: hedge, class: class.jsonl}",
	"ridge": "oracle: {kind: ridge, certified: true}\nfeatures: {x: {number: [0, 1]}}",
}

// TestHeldBackVerifies: laws that a guard mixes are decided again from the log, from a snapshot, over switches of the
// mode and of the guard, and where the log has lost its beginning; a mode that was changed is told.
func TestHeldBackVerifies(t *testing.T) {
	for kind, text := range heldModels {
		t.Run(kind, func(t *testing.T) {
			model := func(version int, rest string) string {
				return fmt.Sprintf("name: m\nversion: %d\nwindow: 9 rounds\nactions: [a, b, c]\n%s\n%s\n", version,
					text, rest)
			}
			log := mem.New(mem.Options{})
			if err := log.Create(t.Context(), join.TopicsOf("m").Feedback, 1,
				stream.TopicOptions{Trimmable: true}); err != nil {
				t.Fatal(err)
			}
			s := newShop(t, log, model(1, "guard: {lose_at_most: 0.1, alpha: 0.5}"))
			defer s.shut()
			s.rounds(120)
			s.open()
			s.switchTo(codec.Shadow)
			s.rounds(20)
			s.switchTo(codec.Live)
			s.rounds(40)
			src := s.source(model(2, "warm: keep"))
			_, err := s.j.Renew(s.ctx, src)
			s.no(err)
			s.jc.Source = src
			s.pump()
			s.rounds(20)
			s.end()
			modes := map[codec.Mode]int{}
			for _, d := range s.decisions(stream.Earliest) {
				modes[d.Mode]++
			}
			if modes[codec.Live] < 25 || modes[codec.Shadow] < 25 {
				t.Errorf("decided in %v", modes)
			}
			if r := s.verify(); r.ExitCode() != Identical {
				t.Fatalf("does not verify: %+v\n%+v", r.First, r)
			}
			want := s.fromStart()
			if !bytes.Equal(want, s.fromSnapshot()) {
				t.Error("a restart from a snapshot has another state than one from the start")
			}
			s.no(log.Trim(s.ctx, s.ts.Feedback, 0, 60))
			if r := s.verify(); r.First != nil || r.ExitCode() != TooOld || r.Decisions.TooOld == 0 {
				t.Errorf("%+v\n%+v", r.First, r)
			}
		})
	}
}
