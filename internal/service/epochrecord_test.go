package service

import (
	"errors"
	"strings"
	"testing"

	"hindsight/internal/watch"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/mem"
)

// An epoch record whose model has a bit flipped is refused: nothing is decided or joined by it.
func TestDamagedModel(t *testing.T) {
	r := newRig(t, nil)
	r.contexts("a")
	r.must(r.settle())
	r.d.Close()
	r.j.Close()
	r.must(r.log.Edit(r.topics.Feedback, 0, func(recs []stream.Record) []stream.Record {
		for i := range recs {
			if recs[i].Type != codec.TypeEpoch {
				continue
			}
			epoch, err := codec.ParseEpoch(recs[i].Value)
			r.must(err)
			epoch.Model[0] ^= 1
			recs[i].Value = codec.AppendEpoch(nil, &epoch)
		}
		return recs
	}))
	r.jc.Source.Model = []byte{'x' ^ 1} // what the log says now: only the sum tells
	for role, open := range map[string]func() error{
		watch.RoleJoiner:  func() error { _, err := OpenJoiner(t.Context(), r.jc); return err },
		watch.RoleDecider: func() error { _, err := OpenDecider(t.Context(), r.dc); return err },
	} {
		if err := open(); !errors.Is(err, codec.ErrCorrupt) || !strings.Contains(err.Error(),
			"epoch 1: its model has SHA-256 ") {
			t.Errorf("the %s begins with a damaged model: %v", role, err)
		}
	}
}

// An epoch whose record the log did not acknowledge has not begun: nothing shows its mode.
func TestEpochNotAcknowledged(t *testing.T) {
	r := newRig(t, func(r *rig) { r.jc.Control = new(Control) })
	r.must(r.settle())
	r.fault = func(_ string, rec *stream.Record) mem.Fault {
		if rec.Type == codec.TypeEpoch {
			return mem.StoredUnknown
		}
		return mem.None
	}
	if _, err := r.j.Switch(t.Context(), codec.Paused, watch.CauseAdmin); !errors.Is(err, stream.ErrUnknown) {
		t.Fatal(err)
	}
	if refs := r.j.epochs.Refs(); len(refs) != 1 || refs[0].Epoch != 1 {
		t.Errorf("the log knows of %v", refs)
	}
	if shown := r.jc.Control.mode; shown.Epoch != 1 || shown.Mode != codec.Live.String() {
		t.Errorf("epoch %d is shown, in mode %s", shown.Epoch, shown.Mode)
	}
}
