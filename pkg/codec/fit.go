package codec

import (
	"fmt"
	"strings"
)

const maxDetail = 1024 // bytes of a reject's text for people

// Fit cuts a reject: of a record over [MaxRejectBytes] only so many are kept, and Size tells how large it was.
func (x *Reject) Fit() {
	if x.Size = 0; len(x.Bytes) > MaxRejectBytes {
		x.Size = len(x.Bytes)
		x.Bytes = x.Bytes[:MaxRejectBytes]
		x.Detail = strings.TrimSuffix(fmt.Sprintf("only the first %d of %d bytes are kept; %s", MaxRejectBytes, x.Size,
			x.Detail), "; ")
	}
	if len(x.Detail) > maxDetail {
		x.Detail = strings.ToValidUTF8(x.Detail[:maxDetail], "")
	}
}

// shortDetail is how many bytes of a detail are shown where many are.
const shortDetail = 200

// Short returns the beginning of a reject's detail, as a text of its own. Details tell of fields, types, limits and
// places, names of actions and features, and what an outcome was worth; they hold no value of a feature.
func (x *Reject) Short() string {
	if len(x.Detail) <= shortDetail {
		return strings.Clone(x.Detail)
	}
	return strings.ToValidUTF8(x.Detail[:shortDetail], "") + "…"
}

// Tells reports whether a reject tells of these bytes.
func (x *Reject) Tells(record []byte) bool {
	if x.Size == 0 {
		return string(x.Bytes) == string(record)
	}
	return x.Size == len(record) && len(x.Bytes) >= MaxRejectBytes && len(x.Bytes) < x.Size &&
		string(x.Bytes) == string(
			record[:len(x.Bytes)])
}
