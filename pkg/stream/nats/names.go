package nats

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"hindsight/pkg/stream"
)

// place is one partition with its names on the server.
type place struct {
	stream.Place
	stream  string // shop_contexts_0
	subject string // shop.contexts.0
}

// StreamName returns the name of a partition's stream.
func StreamName(topic string, partition int) string {
	return strings.ReplaceAll(topic, ".", "_") + "_" + strconv.Itoa(partition)
}

// newPlace checks a topic's name and returns the place.
func newPlace(topic string, partition int) (place, error) {
	p := place{stream.Place{Topic: topic, Partition: partition}, StreamName(topic, partition),
		topic + "." + strconv.Itoa(partition)}
	switch {
	case partition < 0:
		return p, stream.ErrNotFound
	case !topicName.MatchString(topic):
		return p, fmt.Errorf("topic %q: only letters, digits, - and _ in parts joined by single dots", topic)
	}
	return p, nil
}

// place checks a place and that the log is open.
func (l *Log) place(topic string, partition int) (place, error) {
	p, err := newPlace(topic, partition)
	if err == nil && l.isClosed() {
		err = stream.ErrClosed
	}
	return p, err
}

var topicName = regexp.MustCompile(`^[\w-]+(\.[\w-]+)*$`)
