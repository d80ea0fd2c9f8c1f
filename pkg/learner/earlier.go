package learner

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
