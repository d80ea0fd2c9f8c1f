package nats

import (
	"fmt"
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

// newPlace checks a topic's name and returns the place.
func newPlace(topic string, partition int) (place, error) {
	n := strconv.Itoa(partition)
	p := place{stream.Place{Topic: topic, Partition: partition}, strings.ReplaceAll(topic, ".", "_") + "_" + n,
		topic + "." + n}
	if partition < 0 {
		return p, stream.ErrNotFound
	}
	return p, checkTopic(topic)
}

// place checks a place and that the log is open.
func (l *Log) place(topic string, partition int) (place, error) {
	p, err := newPlace(topic, partition)
	if err == nil && l.isClosed() {
		err = stream.ErrClosed
	}
	return p, err
}

// checkTopic allows letters, digits, '-' and '_' in parts joined by single dots.
func checkTopic(topic string) error {
	bad := topic == "" || topic[0] == '.' || topic[len(topic)-1] == '.' || strings.Contains(topic, "..")
	for _, c := range []byte(topic) {
		ok := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.'
		bad = bad || !ok
	}
	if bad {
		return fmt.Errorf("topic %q: only letters, digits, - and _ in parts joined by single dots", topic)
	}
	return nil
}
