package nats

import (
	"testing"

	"hindsight/pkg/stream/natstest"
)

func TestMain(m *testing.M) { natstest.TestMain(m) }
