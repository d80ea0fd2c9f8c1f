package kafka

import (
	"errors"
	"fmt"
	"regexp"

	kafkago "github.com/segmentio/kafka-go"

	"hindsight/pkg/stream"
)

// ErrCorrupt reports a batch of records whose CRC or layout is wrong.
var ErrCorrupt = stream.ErrCorrupt

type place = stream.Place

// checkTopic reports whether Kafka takes a name.
func checkTopic(topic string) error {
	if topic == "" || len(topic) > 249 || topic == "." || topic == ".." {
		return fmt.Errorf("topic %q: a name has 1 to 249 characters", topic)
	}
	if !topicName.MatchString(topic) {
		return fmt.Errorf("topic %q: a name has letters, digits, '.', '_' and '-' only", topic)
	}
	return nil
}

var topicName = regexp.MustCompile(`^[\w.-]+$`)

// codeError is an error of a broker with the contract's beside it.
type codeError struct {
	code  kafkago.Error
	class error
}

func (e *codeError) Error() string {
	return fmt.Sprintf("%v: %s (Kafka error %d)", e.class, title(e.code), int(e.code))
}

// title is Kafka's name of an error; kafka-go has none of some, nor of those since 107.
func title(k kafkago.Error) string {
	if known := k.Title(); known != "" {
		return known
	}
	if i := int(k) - 107; i >= 0 && i < len(laterTitles) {
		return laterTitles[i]
	}
	switch k {
	case kafkago.NetworkException:
		return "Network Exception"
	case 77:
		return "Stale Broker Epoch"
	case kafkago.OffsetNotAvailable:
		return "Offset Not Available"
	case 80:
		return "Preferred Leader Not Available"
	case kafkago.GroupMaxSizeReached:
		return "Group Max Size Reached"
	}
	return "an error that has no name here"
}

// laterTitles are those of 107 to 133, as of Kafka 4.3.
var laterTitles = [...]string{"Ineligible Replica", "New Leader Elected", "Offset Moved To Tiered Storage",
	"Fenced Member Epoch",
	"Unreleased Instance ID", "Unsupported Assignor", "Stale Member Epoch", "Mismatched Endpoint Type",
	"Unsupported Endpoint Type",
	"Unknown Controller ID", "Unknown Subscription ID", "Telemetry Too Large", "Invalid Registration",
	"Transaction Abortable",
	"Invalid Record State", "Share Session Not Found", "Invalid Share Session Epoch", "Fenced State Epoch",
	"Invalid Voter Key",
	"Duplicate Voter", "Voter Not Found", "Invalid Regular Expression", "Rebootstrap Required", "Streams Invalid " +
		"Topology",
	"Streams Invalid Topology Epoch", "Streams Topology Fenced", "Share Session Limit Reached"}

func (e *codeError) Unwrap() []error { return []error{e.class, e.code} }

// classify gives a broker's error its place in the contract; nil for 0.
func classify(code int16) error {
	k := kafkago.Error(code)
	class := stream.ErrUnavailable
	switch k {
	case 0:
		return nil
	case kafkago.UnknownTopicOrPartition, kafkago.UnknownTopicID, kafkago.InvalidTopic:
		class = stream.ErrNotFound
	case kafkago.MessageSizeTooLarge, kafkago.RecordListTooLarge:
		class = stream.ErrTooLarge
	case kafkago.InvalidProducerEpoch, kafkago.ProducerFenced:
		class = stream.ErrFenced
	case kafkago.OutOfOrderSequenceNumber, kafkago.UnknownProducerId, kafkago.DuplicateSequenceNumber:
		class = stream.ErrUnknown
	case kafkago.TopicAuthorizationFailed, kafkago.ClusterAuthorizationFailed, kafkago.GroupAuthorizationFailed,
		kafkago.TransactionalIDAuthorizationFailed:
		class = errNotAllowed
	}
	return &codeError{k, class}
}

var errNotAllowed = fmt.Errorf("%w: %w", stream.ErrUnavailable, ErrAuthorization)

// isTransient reports whether the same question may be answered in a moment, perhaps by another broker.
func isTransient(err error) bool {
	var e *codeError
	if !errors.As(err, &e) {
		return errors.Is(err, stream.ErrUnavailable) && !errors.Is(err, ErrAuthentication) && !errors.Is(err, ErrTLS)
	}
	return isTransientCode(e.code)
}

func isTransientCode(k kafkago.Error) bool {
	switch k {
	case kafkago.LeaderNotAvailable, kafkago.NotLeaderForPartition, kafkago.RequestTimedOut, kafkago.BrokerNotAvailable,
		kafkago.ReplicaNotAvailable, kafkago.NetworkException, kafkago.NotEnoughReplicas,
		kafkago.NotEnoughReplicasAfterAppend,
		kafkago.NotController, kafkago.KafkaStorageError, kafkago.FencedLeaderEpoch, kafkago.UnknownLeaderEpoch,
		kafkago.OffsetNotAvailable, kafkago.GroupLoadInProgress, kafkago.GroupCoordinatorNotAvailable,
		kafkago.NotCoordinatorForGroup, kafkago.ThrottlingQuotaExceeded, kafkago.Unknown, kafkago.InvalidMessage:
		return true
	}
	return false
}
