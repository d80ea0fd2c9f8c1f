package oracle

import (
	"encoding"
	"fmt"
)

// FeatureKind is the type of a feature's value.
type FeatureKind uint8

// The kinds of feature values. The numbers are those of package codec.
const (
	Number FeatureKind = iota + 1 // Value holds it
	Text                          // Text holds it
	Bool                          // Value holds 0 or 1
)

// Feature is one named value.
type Feature struct {
	Name  string
	Kind  FeatureKind
	Value float64
	Text  string
}

// Action is one eligible action of a round.
type Action struct {
	Name     string
	Features []Feature // of the action itself; may be empty
}

// Term is one element of the wide part of an example: the places of the words of texts and of the
// numbers of vectors ([Ngrams], [AppendVector]). What no term names is 0.
type Term struct {
	Place int32
	Value float64 // finite
}

// Input is what an oracle sees of a round: the context's features, by name or as a dense vector, and the K eligible
// actions in the order of all per-action slices. Oracles do not retain it, nor its strings: they copy what they keep.
type Input struct {
	Features    []Feature
	Vector      []float64
	Actions     []Action
	Terms       []Term   // of the context, their places distinct; for [Diagonal] and [Aggregate] alone
	ActionTerms [][]Term // of each action's own features; nil: there are none
}

// own returns the terms of the features of an action.
func (x *Input) own(action int) []Term {
	if x.ActionTerms == nil {
		return nil
	}
	return x.ActionTerms[action]
}

// Class is a finite class F of functions f: (context, action) → [0,1].
type Class interface {
	// Size returns |F| ≥ 1.
	Size() int
	// Eval sets dst[i] = f_i(x, x.Actions[action]) ∈ [0,1] for all i; len(dst) = Size().
	Eval(dst []float64, x *Input, action int)
}

// Picker is a [Class] that evaluates some of its functions without the others: what
// the data have refuted need not be paid for.
type Picker interface {
	// EvalSome sets dst[j] = f_i(x, x.Actions[action]) for i = which[j], to the same
	// bits as Eval. which ascends; len(dst) = len(which).
	EvalSome(dst []float64, which []int32, x *Input, action int)
}

// Regressor is an online square-loss regression oracle. Predict may use scratch space of the oracle but never changes
// what later calls return. A Regressor is not safe for concurrent use.
type Regressor interface {
	// Predict sets dst[a] = f̂(x, a) ∈ [0,1] for each of the K actions of x; len(dst) = K.
	Predict(dst []float64, x *Input)
	// Update feeds the loss ∈ [0,1] of x.Actions[action].
	Update(x *Input, action int, loss float64)
	// Regret bounds (or, where the type's comment says so, measures) R_T(O) = Σ E(f̂_t − f⋆)²(z_t), which tunes γ.
	Regret() float64
	// OrderFree reports whether, in exact arithmetic, the state is a function
	// of the set of examples fed and not of their order.
	OrderFree() bool
	// AppendBinary appends the whole state; UnmarshalBinary restores it into an
	// oracle made with the same parameters, to the same bits.
	encoding.BinaryAppender
	encoding.BinaryUnmarshaler
}

// Newest is the newest version of what the oracles over features compute from the same examples. Logs name the version
// that they were learned with, and are learned again with it, to the same bits.
//
//	1: absent features read as the mean; parameters left to the program are fixed at the start
//	2: absent numbers differ from the mean; parameters follow the actions and columns seen;
//	   regressions whose predictions stop holding start anew (change.go)
const Newest = 2

// ByWhatComes, of β, λ or the number of random features, leaves the parameter to the oracle:
// it follows the actions and columns learned so far. Since version 2.
const ByWhatComes = -1

// knownVersion returns a version, 1 where none is given, or says that there is none such.
func knownVersion(v int) (int, error) {
	if v == 0 {
		v = 1
	}
	if v < 1 || v > Newest {
		return 0, fmt.Errorf("version is %d: it must be in 1…%d", v, Newest)
	}
	return v, nil
}
