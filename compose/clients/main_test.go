package clients

import (
	"os"
	"testing"

	"hindsight/pkg/stream/natstest"
)

func TestMain(m *testing.M) {
	natstest.Main()
	os.Exit(m.Run())
}
