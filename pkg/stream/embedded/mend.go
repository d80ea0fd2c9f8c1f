package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"hindsight/pkg/stream"
)

// A server's store that once failed to write a record takes none any more, answers none, and stays so until it is
// opened anew (werr in filestore.go of nats-server), though the disk may have been full for a moment only. So it is
// opened anew here, under the living server: connections, requests and connect.json stay as they are, readers find
// their place again, and owners open their partitions as after any error of the log.

// The pauses between two looks whether the store can write again. They grow, and only a
// store that did not fail for a while is looked after at once.
const (
	firstLook = 100 * time.Millisecond
	lastLook  = 5 * time.Second
	mendedFor = time.Minute
)

// The file in the folder of the log by which a look finds out whether there is room, and its bytes.
const (
	roomFile  = "room"
	roomBytes = 1 << 20
)

// mender opens the store of an engine anew when it has failed.
type mender struct {
	e      *Engine
	faults <-chan error
}

// startMender begins to mend; stop ends it.
func startMender(e *Engine, faults <-chan error) (stop func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { (&mender{e, faults}).run(ctx) })
	return func() error {
		cancel()
		running.Wait()
		return nil
	}
}

func (m *mender) run(ctx context.Context) {
	pause, mended := firstLook, time.Time{}
	for {
		select {
		case <-ctx.Done():
			return
		case err := <-m.faults:
			if time.Since(mended) > mendedFor {
				pause = firstLook
			}
			if pause = m.mend(ctx, err, pause); ctx.Err() != nil {
				return
			}
			mended = time.Now()
		}
	}
}

// mend holds all appends until the store is open again, or the context ends. It returns the pause before the next look.
func (m *mender) mend(ctx context.Context, fault error, pause time.Duration) time.Duration {
	start, log := time.Now(), m.e.o.Logger.With("folder", m.e.o.Dir)
	why := explain(fault)
	m.e.client.Log().Hold(why)
	log.Error("the log takes no records", "error", why)
	for {
		select {
		case <-ctx.Done():
			return pause
		case <-time.After(pause):
		}
		pause = min(2*pause, lastLook)
		err := m.look()
		if err == nil {
			err = m.reopen()
		}
		if err == nil {
			break
		}
		log.Debug("the log still takes no records", "error", err)
	}
	m.e.client.Log().Resume()
	log.Info("the log takes records again", "after", time.Since(start).Round(time.Millisecond))
	return pause
}

// advise says what to do about an error that keeps the engine from starting.
func advise(err error) error {
	if fullDisk(err) != nil {
		return fmt.Errorf("%w: make room, then start it again", err)
	}
	return err
}

// fullDisk returns the error of a full disk or quota that err wraps, nil if it wraps none.
func fullDisk(err error) error {
	for _, full := range []error{syscall.ENOSPC, syscall.EDQUOT} {
		if errors.Is(err, full) {
			return full
		}
	}
	return nil
}

// explain says what to do about an error of the store.
func explain(fault error) error {
	if full := fullDisk(fault); full != nil {
		return fmt.Errorf("%w: %w: make room, then it goes on by itself", stream.ErrFull, full)
	}
	return fmt.Errorf("%w: the store failed, and goes on by itself when it can write again: %w",
		stream.ErrUnavailable, fault)
}

// look writes a file as the store would, and removes it.
func (m *mender) look() error {
	name := filepath.Join(m.e.o.Dir, roomFile)
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, roomBytes))
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close(), os.Remove(name))
}

// reopen closes the store and opens it as the server does at its start.
func (m *mender) reopen() error {
	s := m.e.server
	if err := s.ShutdownJetStream(); err != nil {
		return err
	}
	select {
	case <-m.faults: // of the store that is closed now
	default:
	}
	o := m.e.so
	return s.EnableJetStream(&server.JetStreamConfig{StoreDir: o.StoreDir, SyncInterval: o.SyncInterval,
		SyncAlways: o.SyncAlways,
		Strict:     !o.NoJetStreamStrict, MaxMemory: o.JetStreamMaxMemory, MaxStore: o.JetStreamMaxStore,
		CompressOK: true})
}
