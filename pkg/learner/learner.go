package learner

import (
	"encoding"

	"hindsight/pkg/oracle"
)

// Round is one feedback as a learner sees it. The learner retains nothing of it.
type Round struct {
	Input          *oracle.Input
	Action         int       // index of the played action
	Propensities   []float64 // as logged by the decision, one per action of Input
	Gamma          float64   // as logged by the decision
	N              int64     // position in the feedback log: t
	LearnedThrough int64     // τ(t) < t: feedbacks learned when it was decided
	Partition      int
	Decision       int64 // its number in its partition: 1, 2, 3, …
	Fate           Fate
	Loss           float64 // in [0,1]; meaningful if Observed or Imputed
	// another law than the learner's was drawn from: Propensities are that one's, Gamma means nothing
	Borrowed bool
	// Outcomes are those that the model names, in the order of their names; nil: it has one loss. Those that this
	// record is the first to tell of are Known.
	Outcomes []Outcome
	// Partial says that the round has no fate yet: only outcomes are learned, or for [Early] a Loss that is
	// provisional.
	Partial bool
}

// Outcome is one named outcome of a round, as it is learned.
type Outcome struct {
	Known bool
	Value float64 // in [0,1], of its range
}

// Fate is what became of the round.
type Fate uint8

// The fates of rounds; the numbers are those of package codec.
const (
	Observed  Fate = iota + 1 // Loss is real: learn it
	Imputed                   // Loss is the model's default: learn it, the certificate warns
	Skipped                   // no loss: not learned, the certificate charges 1
	Withdrawn                 // never shown: not learned, not charged
)

// Learner decides and learns. It is not safe for concurrent use.
type Learner interface {
	// Propensities appends to dst the law over the K actions of x, K ≥ 1, and returns it with the γ that made it (0 for
	// learners without one). The law is exactly what is drawn from: multiples of 2^-53 that sum to exactly 1. It may
	// use scratch space but never changes what later calls return.
	Propensities(dst []float64, x *oracle.Input) (law []float64, gamma float64)
	// Learn takes one feedback, whatever its fate, in the order of the log. A borrowed
	// one is evidence, and no round of its own: the certificate does not count it.
	Learn(r *Round)
	// Learned returns the number of rounds learned (observed or imputed), borrowed ones included.
	Learned() int64
	// NeedsFIFO reports whether the guarantee needs feedback in decision order.
	NeedsFIFO() bool
	// AppendBinary appends the whole state; UnmarshalBinary restores it into a
	// learner made with the same parameters, to the same bits.
	encoding.BinaryAppender
	encoding.BinaryUnmarshaler
}

// Certified is a learner that keeps the sums of a regret certificate.
type Certified interface {
	Learner
	Certificate() Certificate
}

// Changes returns the changes that the oracle of a learner noticed; ok is false if it watches for none.
func Changes(l Learner) (c oracle.Changes, ok bool) {
	if l, is := l.(interface{ Oracle() oracle.Regressor }); is {
		if o, is := l.Oracle().(interface{ Changes() (oracle.Changes, bool) }); is {
			return o.Changes()
		}
	}
	return c, false
}
