package verify

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/mem"
)

// TestVerifyForeign: what somebody else wrote into decisions or feedback is named, each record
// once, and all the rest is checked as if it were not there.
func TestVerifyForeign(t *testing.T) {
	strange := []stream.Record{
		{Value: []byte(`{"id":"c1","loss":0}`)},
		{Value: []byte("not a record")},
		{Type: codec.TypeMark, Value: []byte(`{}`)},
		{Type: codec.TypeClass, Value: []byte{0x80}},
		{Type: codec.TypeEpoch, Value: []byte("epoch")},
		{Type: "of others"},
	}
	for _, topic := range []string{"m.decisions", "m.feedback"} {
		s := newShop(t, mem.New(mem.Options{Step: 2}), shopModel("linear", 1, "actions: [a, b, c]"))
		s.rounds(15)
		w, err := s.log.Writer(s.ctx, topic, 0, nil)
		s.no(err)
		for i := range strange {
			_, err := w.Append(s.ctx, &strange[i])
			s.no(err)
			if i == 1 {
				s.rounds(3)
			}
		}
		s.rounds(15)
		s.open()
		s.rounds(5)
		s.end()
		r := s.verify()
		if r.ExitCode() != Different || r.Differences != int64(len(strange)) || r.First.Topic != topic {
			t.Errorf("%s: exit %d, %d differences, the first %+v", topic, r.ExitCode(), r.Differences, r.First)
		}
		if r.Foreign != int64(len(strange)) || r.Beside != nil {
			t.Errorf("%s: %d foreign records, beside them %+v", topic, r.Foreign, r.Beside)
		}
		fed := r.Feedback.Records
		if topic == s.ts.Feedback {
			fed -= 2 // of others
		}
		if n := int64(len(s.decisions(0))); r.Decisions.Checked != n || r.Feedback.Checked != fed {
			t.Errorf("%s: of %d decisions %d are checked, of %d feedbacks %d", topic, n, r.Decisions.Checked, fed,
				r.Feedback.Checked)
		}
		var again stream.Record
		s.no(stream.Scan(s.ctx, s.log, topic, 0, stream.Earliest, 1<<40, func(r *stream.Record) error {
			again = stream.Record{Type: r.Type, Key: bytes.Clone(r.Key), Value: bytes.Clone(r.Value)}
			if r.Type == "" && len(r.Key) > 0 {
				return stream.ErrStop
			}
			return nil
		}))
		_, err = w.Append(s.ctx, &again)
		s.no(err)
		r = s.verify()
		var text bytes.Buffer
		s.no(r.Write(&text))
		if d := r.Beside; r.Foreign != int64(len(strange)) || d == nil || d.Field == "bytes" || d == r.First ||
			d.Topic != topic ||
			!strings.Contains(text.String(), fmt.Sprintf("foreign %d: ", len(strange))) ||
			!strings.Contains(text.String(), d.Field+"\n    want ") {
			t.Errorf("%s: a round that is there twice is hidden: %+v\n%s", topic, d, &text)
		}
		s.shut()
	}
}
