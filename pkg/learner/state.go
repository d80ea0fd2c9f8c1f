package learner

import (
	"errors"
	"math"

	"hindsight/pkg/oracle"
)

// ErrSnapshot reports bytes that are no snapshot of this learner with these parameters. The learner is left as it was.
var ErrSnapshot = errors.New("not a snapshot of this learner")

// The first two bytes of a snapshot are a version and the kind of learner.
const snapshotVersion = 1

const (
	kindDAFA byte = iota + 1
	kindUniform
	kindFixed
	kindGreedy
	_ // of a learner that is no more
	kindEXP4
	// Kinds from 32 on are in modelstate.go.
)

// newestKind is the largest kind that this program writes.
const newestKind = kindEarly

// codeHeader is what the state of a kind begins with.
func codeHeader(c *oracle.Coder, kind byte, learned *int64) bool {
	c.Version(snapshotVersion, snapshotVersion, "")
	c.Version(kind, newestKind, "of another learner")
	c.Words(learned)
	return c.Must(true, "it is cut short")
}

func newReader(b []byte) oracle.Coder { return oracle.NewReader(b, "", ErrSnapshot) }

func (s *Certificate) code(c *oracle.Coder) {
	c.Words(&s.Rounds, &s.Learned, &s.Imputed, &s.Skipped, &s.MaxSigma)
	c.Float(math.Inf(-1), &s.Barrier, &s.MaxGamma, &s.Drift, &s.Explored, &s.SumSigma, &s.SumSqSig)
	c.Must(true, "a certificate that is cut short, has a negative count or a sum that is not finite")
}

// Earlier is a learner that reads snapshots of earlier programs, which lack something that it keeps now. A learner that
// goes on from one differs from a learner that saw all rounds: whoever can learn again from the first round does.
type Earlier interface {
	// Lacks reports whether a snapshot is in such a layout.
	Lacks(snapshot []byte) bool
	// AppendEarlier appends the state in that layout: what an earlier program would have written here.
	AppendEarlier(b []byte) ([]byte, error)
}

// Lacks implements [Earlier]: before there were models a snapshot had none.
func (d *DAFA) Lacks(snapshot []byte) bool {
	return d.models != nil && len(snapshot) > 1 && snapshot[1] == kindDAFA
}

// AppendEarlier implements [Earlier].
func (d *DAFA) AppendEarlier(b []byte) ([]byte, error) {
	c := oracle.NewWriter(b)
	codeHeader(&c, kindDAFA, &d.learned)
	d.cert.code(&c)
	return d.reg.AppendBinary(c.Bytes())
}
