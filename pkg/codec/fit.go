package codec

import (
	"fmt"
	"strings"
)

const (
	maxDetail      = 1024 // bytes of a reject's text for people
	rejectOverhead = 512  // more than its keys, numbers and reason take
)

// Fit makes a reject small enough for the log: of a record that is too large with
// what the reject says of it, only the beginning is kept, and Size tells how large it
// was.
func (x *Reject) Fit() {
	limit := MaxRecordBytes - rejectOverhead - maxDetail - 2*len(x.ID)
	if x.Size = 0; len(x.Bytes) > limit {
		x.Size = len(x.Bytes)
		x.Bytes = x.Bytes[:limit]
		x.Detail = fmt.Sprintf("only the first %d of %d bytes are kept; %s", limit, x.Size, x.Detail)
	}
	if len(x.Detail) > maxDetail {
		x.Detail = strings.ToValidUTF8(x.Detail[:maxDetail], "")
	}
}

// Tells reports whether a reject tells of these bytes.
func (x *Reject) Tells(record []byte) bool {
	if x.Size == 0 {
		return string(x.Bytes) == string(record)
	}
	return x.Size == len(record) && len(x.Bytes) < x.Size && string(x.Bytes) == string(record[:len(x.Bytes)])
}
