package brokers

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/segmentio/kafka-go/sasl"

	"hindsight/internal/bounded"
)

// bearer logs in with the token in a file (OAUTHBEARER, RFC 7628). It is read anew for each
// connection: whoever writes the file renews it.
type bearer string

// maxToken is more than a token has.
const maxToken = 64 << 10

func (b bearer) token() (string, error) {
	text, err := bounded.Read(string(b), maxToken)
	if err != nil {
		return "", fmt.Errorf("token for Kafka: %w", err)
	}
	token := strings.TrimSpace(string(text))
	if token == "" || strings.ContainsAny(token, " \t\r\n\x00\x01") {
		return "", fmt.Errorf("token for Kafka: %s holds none", string(b))
	}
	return token, nil
}

// Name implements [sasl.Mechanism].
func (bearer) Name() string { return "OAUTHBEARER" }

// Start implements [sasl.Mechanism].
func (b bearer) Start(context.Context) (sasl.StateMachine, []byte, error) {
	token, err := b.token()
	return b, []byte("n,,\x01auth=Bearer " + token + "\x01\x01"), err
}

var errToken = errors.New("the broker refuses the token")

// Next implements [sasl.StateMachine]: the broker says nothing more if it is content.
func (bearer) Next(_ context.Context, challenge []byte) (done bool, response []byte, err error) {
	if len(challenge) > 0 {
		return false, nil, errToken
	}
	return true, nil, nil
}
