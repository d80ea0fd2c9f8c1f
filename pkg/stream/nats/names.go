package nats

import (
	"fmt"
	"strconv"
	"strings"

	"hindsight/pkg/stream"
)

// place is one partition with its names on the server.
type place struct {
	topic     string
	partition int
	stream    string // shop_contexts_0
	subject   string // shop.contexts.0
}

// newPlace checks a topic's name and returns the place.
func newPlace(topic string, partition int) (place, error) {
	if err := checkTopic(topic); err != nil {
		return place{}, err
	}
	if partition < 0 {
		return place{}, stream.ErrNotFound
	}
	n := strconv.Itoa(partition)
	return place{topic, partition, strings.ReplaceAll(topic, ".", "_") + "_" + n, topic + "." + n}, nil
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

// fail locates an error.
func (p *place) fail(op string, offset int64, err error) error {
	return &stream.Error{Op: op, Topic: p.topic, Partition: p.partition, Offset: offset, Err: err}
}
