// Package roomy lets more garbage stand in the tests that import it, unless GOGC says otherwise: they allocate much
// and hold little, and collecting it was up to a third of their time. It is not for tests that start their own
// binary as a command, which is to collect as it does for users.
package roomy

import (
	"os"
	"runtime/debug"
)

func init() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
}
