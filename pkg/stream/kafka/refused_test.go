package kafka

import (
	"context"
	"errors"
	"net"
	"strconv"
	"testing"

	"github.com/segmentio/kafka-go/sasl"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// heard is a mechanism that notes what it is answered.
type heard struct {
	answers []string
	broker  *sasl.Metadata
}

func (*heard) Name() string { return "OAUTHBEARER" }

func (h *heard) Start(ctx context.Context) (sasl.StateMachine, []byte, error) {
	h.broker = sasl.MetadataFromContext(ctx)
	return h, []byte("t"), nil
}

func (h *heard) Next(_ context.Context, challenge []byte) (bool, []byte, error) {
	h.answers = append(h.answers, string(challenge))
	return false, nil, errors.New("refused")
}

// A mechanism hears of a refusal also from a broker that says no by an error code at once: a token that
// is kept must not be used again.
func TestMechanismHearsRefusal(t *testing.T) {
	k := fake(t)
	k.ControlKey(int16(kmsg.SASLHandshake), func(r kmsg.Request) (kmsg.Response, error, bool) {
		k.KeepControl()
		return r.ResponseKind(), nil, true
	})
	k.ControlKey(int16(kmsg.SASLAuthenticate), func(r kmsg.Request) (kmsg.Response, error, bool) {
		k.KeepControl()
		a, text := r.ResponseKind().(*kmsg.SASLAuthenticateResponse), "no"
		a.ErrorCode, a.ErrorMessage = kerr.SaslAuthenticationFailed.Code, &text
		return a, nil, true
	})
	h := &heard{}
	_, err := Dial(t.Context(), Options{Brokers: k.ListenAddrs(), SASL: h})
	if !errors.Is(err, ErrAuthentication) || len(h.answers) == 0 || h.answers[0] != "no" {
		t.Errorf("%v, it heard %q", err, h.answers)
	}
	if b := h.broker; b == nil || net.JoinHostPort(b.Host, strconv.Itoa(b.Port)) != k.ListenAddrs()[0] {
		t.Errorf("it was told of broker %+v", b)
	}
}
