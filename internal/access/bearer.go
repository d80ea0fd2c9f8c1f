package access

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/segmentio/kafka-go/sasl"

	"hindsight/internal/bounded"
)

// bearer logs in with a token (OAUTHBEARER, RFC 7628) from a file, which is read anew for
// each connection, or from a command.
type bearer struct {
	file    string
	command []string // program and arguments
	limit   time.Duration

	mu    sync.Mutex // of the command's last token
	last  string
	until time.Time // the command runs again from then on
}

const (
	maxToken     = 64 << 10         // more than a token has
	commandLimit = 10 * time.Second // for one run of the command
	tokenReuse   = time.Minute      // connections made in this time share one token of the command
)

// token returns the token for one connection.
func (b *bearer) token(ctx context.Context) (string, error) {
	if b.file != "" {
		text, err := bounded.Read(b.file, maxToken)
		return b.check(text, b.file, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if time.Now().Before(b.until) {
		return b.last, nil
	}
	text, err := b.run(ctx)
	token, err := b.check(text, "the command "+b.command[0], err)
	if err == nil {
		b.last, b.until = token, expiry(token, time.Now().Add(tokenReuse))
	}
	return token, err
}

// check returns the token in what a source gave. The error names the source, and never shows what it gave.
func (b *bearer) check(text []byte, source string, err error) (string, error) {
	if err != nil {
		return "", fmt.Errorf("token for Kafka: %w", err)
	}
	token := strings.TrimSpace(string(text))
	if token == "" || strings.ContainsAny(token, " \t\r\n\x00\x01") {
		return "", fmt.Errorf("token for Kafka: %s holds none", source)
	}
	return token, nil
}

// run runs the command and returns its standard output.
func (b *bearer) run(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, b.limit, fmt.Errorf("no end after %v", b.limit))
	defer cancel()
	out := output{full: cancel}
	c := exec.CommandContext(ctx, b.command[0], b.command[1:]...)
	c.Stdout, c.WaitDelay = &out, time.Second // children of the command may keep its output open
	err := c.Run()
	switch {
	case len(out.text) > maxToken:
		err = fmt.Errorf("more than %d bytes of output", maxToken)
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("the command %s: %w", b.command[0], err)
	}
	return out.text, nil
}

// output is what a command has written; it takes no more than is read of it.
type output struct {
	text []byte
	full func() // ends the command
}

func (o *output) Write(p []byte) (int, error) {
	if len(o.text) > maxToken {
		o.full()
		return 0, io.ErrShortWrite
	}
	o.text = append(o.text, p...)
	return len(p), nil
}

// expiry returns when a token expires by its own words, at most most. Tokens that are not JSON web tokens say nothing.
func expiry(token string, most time.Time) time.Time {
	var claims struct {
		Exp float64 `json:"exp"`
	}
	if parts := strings.Split(token, "."); len(parts) == 3 {
		text, err := base64.RawURLEncoding.DecodeString(parts[1])
		if err == nil && json.Unmarshal(text, &claims) == nil && claims.Exp > 0 {
			if at := time.Unix(int64(claims.Exp), 0); at.Before(most) {
				return at
			}
		}
	}
	return most
}

// Name implements [sasl.Mechanism].
func (*bearer) Name() string { return "OAUTHBEARER" }

// Start implements [sasl.Mechanism].
func (b *bearer) Start(ctx context.Context) (sasl.StateMachine, []byte, error) {
	token, err := b.token(ctx)
	return &bearing{b: b, token: token}, []byte("n,,\x01auth=Bearer " + token + "\x01\x01"), err
}

// bearing is one login.
type bearing struct {
	b       *bearer
	token   string
	refused bool
}

var errToken = errors.New("the broker refuses the token")

// Next implements [sasl.StateMachine]: the broker says nothing more if it is content. A
// token that it refuses is not used again; it says why when it was told that we heard.
func (l *bearing) Next(_ context.Context, challenge []byte) (done bool, response []byte, err error) {
	if len(challenge) == 0 && !l.refused {
		return true, nil, nil
	}
	if l.refused {
		return false, nil, errToken
	}
	l.refused = true
	l.b.mu.Lock()
	defer l.b.mu.Unlock()
	if l.b.last == l.token {
		l.b.until = time.Time{}
	}
	return false, []byte{1}, nil
}
