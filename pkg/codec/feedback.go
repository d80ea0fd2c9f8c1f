package codec

import (
	"math/bits"
	"slices"
)

// feedbackKeys are the keys of a feedback in the order of the wire. A key's index is its bit in the set of keys seen.
var feedbackKeys = []string{
	"v", "n", "partition", "round", "id", "epoch", "learned_through", "gamma", "time", "action",
	"propensity", "propensities", "fate", "reason", "loss", "outcome_partition", "outcome_offset",
	"closed_at", "context",
}

// fateKeys are the bits of the keys that a record of an earlier stage leaves out.
const fateKeys uint32 = 1<<12 | 1<<13 | 1<<14 | 1<<15 | 1<<16

// AppendFeedback appends f as MessagePack. f is valid ([Feedback.Validate]); it
// panics if f.Action is no index of the propensities.
func AppendFeedback(dst []byte, f *Feedback) []byte {
	n, version := len(feedbackKeys)+modeKeys(f.Mode, f.Would), int64(Version)
	if len(f.Outcomes) > 0 {
		n, version = n+1, saysMore
	}
	if f.Stage > 0 {
		n, version = n+1-bits.OnesCount32(fateKeys), saysMore
	}
	if n += unitKeys(f.Unit, f.First); f.Mode == External || f.Unit != "" {
		version = saysMore
	}
	dst = appendMap(dst, n)
	dst = appendInt(appendKey(dst, "v"), version)
	dst = appendInt(appendKey(dst, "n"), f.N)
	dst = appendInt(appendKey(dst, "partition"), int64(f.Partition))
	dst = appendInt(appendKey(dst, "round"), f.Round)
	dst = appendText(appendKey(dst, "id"), f.ID)
	dst = appendInt(appendKey(dst, "epoch"), f.Epoch)
	dst = appendInt(appendKey(dst, "learned_through"), f.LearnedThrough)
	dst = appendFloat(appendKey(dst, "gamma"), f.Gamma)
	dst = appendInt(appendKey(dst, "time"), f.Time)
	dst = appendDraw(dst, f.Actions, f.Propensities, f.Action, f.Unknown)
	if f.Stage == 0 {
		dst = appendText(appendKey(dst, "fate"), f.Fate.name())
		dst = appendText(appendKey(dst, "reason"), f.Reason)
		dst = appendFloat(appendKey(dst, "loss"), f.Loss)
		dst = appendInt(appendKey(dst, "outcome_partition"), int64(f.OutcomePartition))
		dst = appendInt(appendKey(dst, "outcome_offset"), f.OutcomeOffset)
	}
	dst = appendInt(appendKey(dst, "closed_at"), f.ClosedAt)
	dst = appendMode(appendBytes(appendKey(dst, "context"), f.Context), f.Mode, f.Would)
	if len(f.Outcomes) > 0 {
		dst = appendClosed(appendKey(dst, "outcomes"), f.Outcomes)
	}
	if f.Stage > 0 {
		dst = appendInt(appendKey(dst, "stage"), int64(f.Stage))
	}
	return appendUnit(dst, f.Unit, f.First)
}

// ParseFeedback parses what [AppendFeedback] wrote, in any form that MessagePack or JSON allows. Every key must be
// there, and action and propensity must agree with propensities. It reuses the memory of dst.
func ParseFeedback(dst *Feedback, b []byte) error {
	r := newReader(b)
	r.feedback(dst)
	return r.end("feedback")
}

func (r *reader) feedback(f *Feedback) {
	*f = Feedback{Actions: f.Actions[:0], Propensities: f.Propensities[:0], Would: f.Would[:0],
		Outcomes: f.Outcomes[:0]}
	var drawn string
	var p float64
	var seen uint32
	s := r.entries()
	for r.entry(&s) {
		switch s.key {
		case "v":
			r.once(&seen, 0).version()
		case "n":
			f.N = r.once(&seen, 1).int()
		case "partition":
			f.Partition = r.once(&seen, 2).small()
		case "round":
			f.Round = r.once(&seen, 3).int()
		case "id":
			f.ID = r.once(&seen, 4).text()
		case "epoch":
			f.Epoch = r.once(&seen, 5).int()
		case "learned_through":
			f.LearnedThrough = r.once(&seen, 6).int()
		case "gamma":
			f.Gamma = r.once(&seen, 7).float()
		case "time":
			f.Time = r.once(&seen, 8).int()
		case "action":
			drawn = r.once(&seen, 9).text()
		case "propensity":
			p = r.once(&seen, 10).known()
		case "propensities":
			f.Actions, f.Propensities = r.once(&seen, 11).law(f.Actions, f.Propensities)
		default:
			r.ending(f, s.key, &seen)
		}
	}
	if f.Stage > 0 && r.err == nil {
		if seen&fateKeys != 0 {
			r.fail(errStageFate)
			r.in("stage")
		}
		seen |= fateKeys
		f.OutcomePartition, f.OutcomeOffset = -1, -1
	}
	r.require(seen, feedbackKeys)
	f.Action, f.Unknown = r.draw(f.Actions, f.Propensities, drawn, p)
}

// ending reads a key that tells how the round ended, or skips an unknown one.
func (r *reader) ending(f *Feedback, key string, seen *uint32) {
	switch key {
	case "fate":
		f.Fate = r.once(seen, 12).fate()
	case "reason":
		f.Reason = r.once(seen, 13).text()
	case "loss":
		f.Loss = r.once(seen, 14).float()
	case "outcome_partition":
		f.OutcomePartition = r.once(seen, 15).small()
	case "outcome_offset":
		f.OutcomeOffset = r.once(seen, 16).int()
	case "closed_at":
		f.ClosedAt = r.once(seen, 17).int()
	case "context":
		f.Context = r.once(seen, 18).contextBytes()
	case "outcomes":
		f.Outcomes = r.once(seen, 21).closed(f.Outcomes)
	case "stage":
		if f.Stage = r.once(seen, 22).small(); f.Stage < 1 {
			r.fail(errStage)
		}
	default:
		if !r.unitKey(key, seen, &f.Unit, &f.First) {
			r.modeKey(key, seen, 19, &f.Mode, &f.Would)
		}
	}
}

func (r *reader) fate() Fate {
	f := slices.Index(fateNames[1:], r.text()) + 1
	if f == 0 {
		r.fail(errFateName)
	}
	return Fate(f)
}
