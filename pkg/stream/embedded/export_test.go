package embedded

import (
	"github.com/nats-io/nats-server/v2/server"

	"hindsight/pkg/stream/attach"
)

// Server returns the server, for tests that connect to it in process.
func (e *Engine) Server() *server.Server { return e.server }

// Access returns the users and passwords of the server.
func (e *Engine) Access() attach.Connect { return e.access }
