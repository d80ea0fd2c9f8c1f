package nats

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hindsight/pkg/stream"
)

// The error codes of JetStream that mean something to us; see errors.json of the server.
const (
	codeAccountResources   = 10002
	codeInsufficient       = 10023
	codeMemoryResources    = 10028
	codeStorageResources   = 10047
	codeMessageTooLarge    = 10054
	codeStreamNameInUse    = 10058
	codeStreamNotFound     = 10059
	codeWrongLastMessageID = 10070
	codeWrongLastSequence  = 10071
	codeStoreFailed        = 10077
	codeWrongSequence      = 10164 // as codeWrongLastSequence, of a replicated stream
	codeTooManyRequests    = 10167
	codeBatchIncomplete    = 10176
)

// apiError is the error of an answer.
type apiError struct {
	Code        int    `json:"code"`
	ErrCode     int    `json:"err_code"`
	Description string `json:"description"`
}

func (e *apiError) Error() string { return fmt.Sprintf("%s (%d)", e.Description, e.ErrCode) }

// class returns the error of the contract that e stands for.
func (e *apiError) class() error {
	switch e.ErrCode {
	case codeWrongLastMessageID, codeWrongLastSequence, codeWrongSequence:
		return fmt.Errorf("%w: %w", stream.ErrFenced, e)
	case codeAccountResources, codeInsufficient, codeMemoryResources, codeStorageResources:
		return fmt.Errorf("%w: %w", stream.ErrFull, e)
	case codeStoreFailed:
		if strings.Contains(e.Description, "maximum") { // "maximum bytes exceeded", "maximum messages exceeded"
			return fmt.Errorf("%w: %w", stream.ErrFull, e)
		}
		return fmt.Errorf("%w: %w", stream.ErrUnknown, e)
	case codeMessageTooLarge:
		return fmt.Errorf("%w: %w", stream.ErrTooLarge, e)
	case codeStreamNotFound:
		return fmt.Errorf("%w: %w", stream.ErrNotFound, e)
	case codeTooManyRequests:
		return fmt.Errorf("%w: %w", stream.ErrUnavailable, e)
	}
	if e.Code == 503 {
		return fmt.Errorf("%w: %w", stream.ErrUnavailable, e)
	}
	return e
}

// classify maps an error of the client library.
func classify(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, natsgo.ErrConnectionClosed), errors.Is(err, natsgo.ErrConnectionDraining):
		return fmt.Errorf("%w: %w", stream.ErrClosed, err)
	case errors.Is(err, natsgo.ErrMaxPayload):
		return fmt.Errorf("%w: %w", stream.ErrTooLarge, err)
	case errors.Is(err, natsgo.ErrBadHeaderMsg):
		return fmt.Errorf("%w: %w", stream.ErrUnfit, err)
	case errors.Is(err, natsgo.ErrNoResponders), errors.Is(err, natsgo.ErrReconnectBufExceeded),
		errors.Is(err, natsgo.ErrDisconnected), errors.Is(err, natsgo.ErrTimeout):
		return fmt.Errorf("%w: %w", stream.ErrUnavailable, err)
	}
	return err
}

// call sends a request to the JetStream API and parses its answer into answer, unless that is nil.
func (l *Log) call(ctx context.Context, conn *natsgo.Conn, subject string, request, answer any) error {
	if l.isClosed() {
		return stream.ErrClosed
	}
	var data []byte
	if request != nil {
		var err error
		if data, err = json.Marshal(request); err != nil {
			return err
		}
	}
	reply, err := l.ask(ctx, conn, l.o.APIPrefix+"."+subject, data)
	if err != nil {
		return err
	}
	return parseAnswer(reply.Data, answer)
}

// parseAnswer parses an answer of the API into answer, unless that is nil, or returns the error that it holds.
func parseAnswer(data []byte, answer any) error {
	var head struct {
		Error *apiError `json:"error"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return fmt.Errorf("answer of the API: %w", err)
	}
	if head.Error != nil {
		return head.Error
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(data, answer)
}

// ask sends a request and waits for its answer as long as the caller's context and
// our own limit allow: an answer that was lost with the connection never comes.
func (l *Log) ask(ctx context.Context, conn *natsgo.Conn, subject string, data []byte) (*natsgo.Msg, error) {
	if !conn.IsConnected() && !conn.IsClosed() {
		return nil, fmt.Errorf("%w: not connected", stream.ErrUnavailable)
	}
	own, cancel := context.WithTimeout(ctx, l.o.APITimeout)
	defer cancel()
	reply, err := conn.RequestWithContext(own, subject, data)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if own.Err() != nil {
			return nil, fmt.Errorf("%w: no answer to %s within %v", stream.ErrUnavailable, subject, l.o.APITimeout)
		}
		if errors.Is(err, natsgo.ErrNoResponders) {
			return nil, fmt.Errorf("%w: JetStream does not answer; it may be off on the servers or for this account: "+
				"%w", stream.ErrUnavailable, err)
		}
		return nil, classify(err)
	}
	return reply, nil
}

// contractError makes an error of call one of the contract.
func contractError(err error) error {
	var e *apiError
	if errors.As(err, &e) {
		return e.class()
	}
	return err
}

// streamInfo is what a server says of a stream.
type streamInfo struct{ jetstream.StreamInfo }

// replicated reports whether a stream has replicas.
func (i *streamInfo) replicated() bool { return i.Config.Replicas > 1 }

// info asks for a stream's state, twice: a cluster does not answer for a stream that has no leader at that moment.
func (l *Log) info(ctx context.Context, conn *natsgo.Conn, p *place) (*streamInfo, error) {
	var i streamInfo
	first, cancel := context.WithTimeout(ctx, l.o.APITimeout/2)
	defer cancel()
	err := l.call(first, conn, "STREAM.INFO."+p.stream, nil, &i)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		err = l.call(ctx, conn, "STREAM.INFO."+p.stream, nil, &i)
	}
	if err != nil {
		return nil, contractError(err)
	}
	return &i, nil
}

// bounds returns the first offset kept and the next one to be written.
func (i *streamInfo) bounds() (first, next int64) {
	next = int64(i.State.LastSeq) + 1
	return min(max(int64(i.State.FirstSeq), 1), next), next
}
