package learner

import (
	"encoding/binary"
	"math"
	"unsafe"

	"hindsight/pkg/oracle"
)

// The bytes of a round that waits ([inOrder]): fate, action, loss, law, and what [Models] and
// its alarm see of the input. Numbers are little endian, 8 bytes each; counts are varints.

// borrowedBit is in the byte of the fate of a round that another law played.
const borrowedBit = 0x80

func appendHeld(b []byte, r *Round) []byte {
	fate := byte(r.Fate)
	if r.Borrowed {
		fate |= borrowedBit
	}
	b = append(b, fate)
	b = binary.AppendUvarint(b, uint64(r.Action))
	loss := r.Loss
	if r.Fate != Observed {
		loss = 0 // it may be NaN
	}
	b = appendFloats(b, []float64{loss})
	b = binary.AppendUvarint(b, uint64(len(r.Propensities)))
	b = appendFloats(b, r.Propensities)
	b = appendHeldFeatures(b, r.Input.Features)
	b = binary.AppendUvarint(b, uint64(len(r.Input.Vector)))
	b = appendFloats(b, r.Input.Vector)
	for i := range r.Propensities {
		a := &r.Input.Actions[i]
		b = appendHeldText(b, a.Name)
		b = appendHeldFeatures(b, a.Features)
	}
	return b
}

func appendHeldFeatures(b []byte, fs []oracle.Feature) []byte {
	b = binary.AppendUvarint(b, uint64(len(fs)))
	for i := range fs {
		f := &fs[i]
		b = append(b, byte(f.Kind))
		b = appendHeldText(b, f.Name)
		if f.Kind == oracle.Text {
			b = appendHeldText(b, f.Text)
		} else {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(f.Value))
		}
	}
	return b
}

func appendHeldText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// heldRound reads rounds. What it returns aliases their bytes and itself.
type heldRound struct {
	round    Round
	in       oracle.Input
	law      []float64
	vector   []float64
	features []oracle.Feature
	actions  []oracle.Action
}

// of returns a round that waits.
func (h *heldRound) of(w *waiting) *Round {
	h.parse(w.round)
	h.round.N, h.round.Decision = w.n, w.decision
	return &h.round
}

// parse reports whether b is a round and nothing else.
func (h *heldRound) parse(b []byte) bool {
	r := stateReader{b: b}
	mark, action := r.byte(), r.count(1)
	fate := Fate(mark &^ borrowedBit)
	loss := r.float(0)
	k := r.count(8)
	h.law = resize(h.law, k)
	r.floats(h.law, 0)
	h.features, h.actions = h.features[:0], h.actions[:0]
	h.in.Features = h.readFeatures(&r)
	h.vector = resize(h.vector, r.count(8))
	r.floats(h.vector, math.Inf(-1))
	for range k {
		name := r.text()
		h.actions = append(h.actions, oracle.Action{Name: name, Features: h.readFeatures(&r)})
	}
	h.in.Vector, h.in.Actions = h.vector, h.actions
	h.round = Round{Input: &h.in, Action: action, Propensities: h.law, Fate: fate, Loss: loss,
		Borrowed: mark&borrowedBit != 0}
	return !r.bad && len(r.b) == 0 && k > 0 && action < k && loss <= 1 && fate >= Observed && fate <= Skipped
}

func (h *heldRound) readFeatures(r *stateReader) []oracle.Feature {
	from := len(h.features)
	for range r.count(2) {
		f := oracle.Feature{Kind: oracle.FeatureKind(r.byte()), Name: r.text()}
		if f.Kind == oracle.Text {
			f.Text = r.text()
		} else {
			f.Value = r.float(math.Inf(-1))
		}
		h.features = append(h.features, f)
	}
	return h.features[from:len(h.features):len(h.features)]
}

// count reads a number of things that take at least size bytes each.
func (r *stateReader) count(size int) int {
	v, n := binary.Uvarint(r.b)
	if n <= 0 || v > uint64(len(r.b)-n)/uint64(size) {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return int(v)
}

// text reads a text, which aliases the bytes.
func (r *stateReader) text() string {
	p := r.take(r.count(1))
	return unsafe.String(unsafe.SliceData(p), len(p))
}
