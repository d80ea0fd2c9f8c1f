package stream

import "errors"

// Place is a partition of a topic: with an offset it says where a record lies.
type Place struct {
	Topic     string
	Partition int
}

// Fail locates an error of an operation, unless the error has a place already. The offset is −1 if it does not apply.
func (p Place) Fail(op string, offset int64, err error) error {
	if located := (*Error)(nil); errors.As(err, &located) {
		return err
	}
	return &Error{Op: op, Topic: p.Topic, Partition: p.Partition, Offset: offset, Err: err}
}

// Locate is [Place.Fail] of the error that an operation returns, if it returns one: for defer.
func (p Place) Locate(op string, offset int64, err *error) {
	if *err != nil {
		*err = p.Fail(op, offset, *err)
	}
}
