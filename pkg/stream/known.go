package stream

// Informed is a reader that hears of records before it returns them.
type Informed interface {
	// Known returns the end of the partition as the log told it last, unasked: records
	// before it can be read. It may be long ago, so that there are more by now. It may be
	// called at any time, also while Next waits.
	Known() int64
}
