package modelfile

import (
	"context"
	"errors"
	"os"
	"strconv"
	"time"

	"hindsight/internal/daemon"
	"hindsight/internal/follow"
)

// holdTime is how long a process waits before it ends with a model that is refused.
const holdTime = 30 * time.Second

// refused is an error of the model file, which only who mends it can help.
type refused struct{ error }

func (r *refused) Unwrap() error { return r.error }

// Hold returns the error that a program ends with. One of the model comes again at each start,
// and systemd starts a unit again each second: a process that systemd runs itself waits with that
// error, until it is told to stop. Docker and Kubernetes wait longer each time by themselves.
func Hold(ctx context.Context, env *daemon.Env, err error) error {
	if r := (*refused)(nil); !errors.As(err, &r) && !errors.Is(err, follow.ErrModel) {
		return err
	}
	if env.Getenv("SYSTEMD_EXEC_PID") != strconv.Itoa(os.Getpid()) {
		// a child of a unit, a shell for instance, has another
		return err
	}
	env.Logger.Error("the model is refused: the process ends with this error, and systemd restarts it; after fixing "+
		"the model you need not wait: systemctl restart", "error", err, "in", holdTime)
	select {
	case <-ctx.Done():
	case <-time.After(holdTime):
	}
	return err
}
