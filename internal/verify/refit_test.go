package verify

import (
	"bytes"
	"fmt"
	"testing"

	"hindsight/pkg/stream"
	"hindsight/pkg/stream/mem"
)

// TestRefitVerify: a decider decides on in the old epoch after the record of one whose learner
// is to be taught what the log keeps, until it is; the log verifies, and rounds decided so are
// not learned by anybody.
func TestRefitVerify(t *testing.T) {
	for _, warm := range []string{"refit", "12"} {
		s := newShop(t, mem.New(mem.Options{Step: 2}), shopModel("linear", 1, "actions: [a, b, c]"))
		s.rounds(20)
		_, err := s.j.Renew(s.ctx, s.source(shopModel("linear", 2, "actions: [a, b, c]\nwarm: "+warm)))
		s.no(err)
		from := s.read
		for i := range 7 {
			_, err := s.in.Append(s.ctx, &stream.Record{Value: fmt.Appendf(nil, `{"id":"old%d","features":{"x":%d}}`, i,
				i%5)})
			s.no(err)
			for _, step := range []func() (bool, error){
				func() (bool, error) { return s.d.StepContexts(s.ctx, 5) }, // and no StepFeedback
				func() (bool, error) { return s.j.Step(s.ctx) },
			} {
				_, err := step()
				s.no(err)
			}
			s.report()
		}
		late := s.decisions(from)
		if len(late) != 7 || late[6].Epoch != 1 {
			t.Fatalf("%d decided in the old epoch", len(late))
		}
		s.pump()
		s.jc.Source = s.source(shopModel("linear", 2, "actions: [a, b, c]\nwarm: "+warm))
		s.rounds(15)
		s.end()
		if all := s.decisions(from); all[len(all)-1].Epoch != 2 {
			t.Errorf("decided in epoch %d", all[len(all)-1].Epoch)
		}
		if r := s.verify(); r.ExitCode() != Identical {
			t.Errorf("warm: %s: does not verify: %+v\n%+v", warm, r.First, r)
		}
		if want, got := s.fromStart(), s.fromSnapshot(); !bytes.Equal(want, got) {
			t.Errorf("warm: %s: a restart from a snapshot has another state than one from the start", warm)
		}
		s.shut()
	}
}
