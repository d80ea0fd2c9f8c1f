package kafka

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol/saslauthenticate"
	"github.com/segmentio/kafka-go/protocol/saslhandshake"
	"github.com/segmentio/kafka-go/sasl"
)

// What can be wrong with an access, beside [stream.ErrUnavailable].
var (
	// ErrAuthentication reports a user or password that the broker refuses.
	ErrAuthentication = errors.New("authentication failed: wrong user, password or mechanism")
	// ErrAuthorization reports what the user may not do.
	ErrAuthorization = errors.New("not authorized")
	// ErrTLS reports a connection on which no TLS could be agreed on.
	ErrTLS = errors.New("TLS failed")
)

// authenticate logs in by SASL. Its errors never hold what was sent.
func (cn *conn) authenticate(ctx context.Context, m sasl.Mechanism) error {
	if err := cn.chooseMechanism(m.Name()); err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(cn.addr)
	if err != nil {
		return err
	}
	number, _ := strconv.Atoi(port)
	ctx = sasl.WithMetadata(ctx, &sasl.Metadata{Host: host, Port: number})
	session, message, err := m.Start(ctx)
	if err != nil {
		return fmt.Errorf("%w: mechanism %s cannot start: %w", ErrAuthentication, m.Name(), err)
	}
	for done := false; !done; {
		answer, err := cn.call(&saslauthenticate.Request{AuthBytes: message})
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF): // how some brokers say no
			return fmt.Errorf("%w (mechanism %s): the broker closed the connection", ErrAuthentication, m.Name())
		case err != nil:
			return fmt.Errorf("authenticate with %s: %w", m.Name(), err)
		}
		r := answer.(*saslauthenticate.Response)
		if r.ErrorCode != 0 {
			_, _, _ = session.Next(ctx, []byte(refusal(r))) // what it keeps is refused
			return fmt.Errorf("%w (mechanism %s): %s", ErrAuthentication, m.Name(), refusal(r))
		}
		if done, message, err = session.Next(ctx, r.AuthBytes); err != nil {
			return fmt.Errorf("%w (mechanism %s): the broker's answer does not fit the password", ErrAuthentication,
				m.Name())
		}
	}
	return nil
}

func refusal(r *saslauthenticate.Response) string {
	if r.ErrorMessage != "" {
		return r.ErrorMessage
	}
	return kafkago.Error(r.ErrorCode).Title()
}

func (cn *conn) chooseMechanism(name string) error {
	m, err := cn.call(&saslhandshake.Request{Mechanism: name})
	if err != nil {
		return fmt.Errorf("agree on SASL mechanism %s: %w", name, err)
	}
	r := m.(*saslhandshake.Response)
	switch kafkago.Error(r.ErrorCode) {
	case 0:
		return nil
	case kafkago.UnsupportedSASLMechanism:
		return fmt.Errorf("%w: the broker has no mechanism %s, but %s", ErrAuthentication, name,
			strings.Join(r.Mechanisms, ", "))
	case kafkago.IllegalSASLState:
		return fmt.Errorf("%w: this port of the broker takes no SASL", ErrAuthentication)
	}
	return fmt.Errorf("%w: %w", ErrAuthentication, kafkago.Error(r.ErrorCode))
}
