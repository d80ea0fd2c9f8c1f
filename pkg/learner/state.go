package learner

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"hindsight/pkg/oracle"
)

// ErrSnapshot reports bytes that are no snapshot of this learner with these
// parameters. The learner is left as it was.
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

func appendHeader(b []byte, kind byte, learned int64) []byte {
	return binary.LittleEndian.AppendUint64(append(b, snapshotVersion, kind), uint64(learned))
}

func readHeader(b []byte, kind byte) (learned int64, rest []byte, err error) {
	if len(b) < 10 {
		return 0, nil, fmt.Errorf("%d bytes: %w", len(b), ErrSnapshot)
	}
	if b[0] > snapshotVersion || b[1] > newestKind {
		return 0, nil, fmt.Errorf("version %d, kind %d, and this one reads versions up to %d and kinds up to %d: %w: %w",
			b[0], b[1], snapshotVersion, newestKind, oracle.ErrNewer, ErrSnapshot)
	}
	if b[0] != snapshotVersion {
		return 0, nil, fmt.Errorf("version %d: %w", b[0], ErrSnapshot)
	}
	learned = int64(binary.LittleEndian.Uint64(b[2:]))
	if b[1] != kind || learned < 0 {
		return 0, nil, fmt.Errorf("of another learner: %w", ErrSnapshot)
	}
	return learned, b[10:], nil
}

// integers and floats name what is kept of a certificate, in the order of its
// bytes.
func (c *Certificate) integers() [5]*int64 {
	return [...]*int64{&c.Rounds, &c.Learned, &c.Imputed, &c.Skipped, &c.MaxSigma}
}

func (c *Certificate) floats() [6]*float64 {
	return [...]*float64{&c.Barrier, &c.MaxGamma, &c.Drift, &c.Explored, &c.SumSigma, &c.SumSqSig}
}

func (c *Certificate) appendBinary(b []byte) []byte {
	for _, v := range c.integers() {
		b = appendInt64(b, *v)
	}
	for _, v := range c.floats() {
		b = appendFloats(b, []float64{*v})
	}
	return b
}

func (c *Certificate) readBinary(b []byte) (rest []byte, err error) {
	if len(b) < 8*11 {
		return nil, fmt.Errorf("certificate is cut short: %w", ErrSnapshot)
	}
	r := stateReader{b: b}
	for _, v := range c.integers() {
		if *v = r.int64(); r.bad {
			return nil, fmt.Errorf("certificate has a negative count: %w", ErrSnapshot)
		}
	}
	for _, v := range c.floats() {
		if *v = r.float(math.Inf(-1)); r.bad {
			return nil, fmt.Errorf("certificate has a sum that is not finite: %w", ErrSnapshot)
		}
	}
	return r.b, nil
}

// Earlier is a learner that reads snapshots of earlier programs, which lack something that
// it keeps now. A learner that goes on from one differs from a learner that saw all rounds:
// whoever can learn again from the first round does.
type Earlier interface {
	// Lacks reports whether a snapshot is in such a layout.
	Lacks(snapshot []byte) bool
	// AppendEarlier appends the state in that layout: what an earlier program would have
	// written here.
	AppendEarlier(b []byte) ([]byte, error)
}

// Lacks implements [Earlier]: before there were models a snapshot had none.
func (d *DAFA) Lacks(snapshot []byte) bool {
	return d.models != nil && len(snapshot) > 1 && snapshot[1] == kindDAFA
}

// AppendEarlier implements [Earlier].
func (d *DAFA) AppendEarlier(b []byte) ([]byte, error) {
	b = appendHeader(b, kindDAFA, d.learned)
	return d.reg.AppendBinary(d.cert.appendBinary(b))
}
