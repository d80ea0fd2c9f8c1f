// Package attach finds and joins the log that another process embeds in a folder. It does not link the server.
//
// A folder belongs to the process that holds the lock on its file LOCK, which
// names it. While its server runs, connect.json says how to reach it.
package attach

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"hindsight/pkg/stream"
	"hindsight/pkg/stream/nats"
)

// The files of a folder.
const (
	LockFile    = "LOCK"
	ConnectFile = "connect.json"
)

// Connect is the content of connect.json.
type Connect struct {
	URL            string `json:"url"`
	User           string `json:"user"` // may do everything
	Password       string `json:"password"`
	Inbox          string `json:"inbox"`       // prefix of inboxes for User: no other user can read them
	ClientUser     string `json:"client_user"` // may ask for decisions and report outcomes
	ClientPassword string `json:"client_password"`
	// prefix of inboxes for ClientUser that those without a name cannot read
	ClientInbox string `json:"client_inbox"`
	PID         int    `json:"pid"`
}

// Prefixes of inboxes. A client without a name may read all below the usual
// _INBOX, so nothing of the logs is delivered there.
const (
	ServiceInbox = "_INBOX_service"
	ClientInbox  = "_INBOX_client"
)

// ErrInUse reports a folder that another process holds.
var ErrInUse = errors.New("in use by process")

// ErrNotRunning reports a folder that no process serves.
var ErrNotRunning = errors.New("nobody serves it")

// Lock takes the lock of a folder that exists, and that [Own] allows. unlock releases it.
func Lock(dir string) (unlock func() error, err error) {
	if err := Own(dir); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, LockFile), os.O_RDWR|os.O_CREATE|itself, 0o600)
	switch {
	case errors.Is(err, syscall.ELOOP):
		return nil, fmt.Errorf("%s is a symbolic link, which is not followed: remove it", filepath.Join(dir, LockFile))
	case err != nil:
		return nil, fmt.Errorf("folder %s is not writable: %w", dir, err)
	}
	if err := hold(f, dir, lockFile); err != nil {
		return nil, err
	}
	if err := sign(f); err != nil {
		_ = f.Close()
		return nil, err // it names the file
	}
	return f.Close, nil // closing unlocks; the file stays, for removing it would race with another Lock
}

// Share keeps all processes from serving a folder that exists while it is read, as others may
// at the same time. unlock ends that. In a copy without a lock file none is made: it would
// belong to the reader, which need not be the user that serves it later.
func Share(dir string) (unlock func() error, err error) {
	name := filepath.Join(dir, LockFile)
	f, err := os.OpenFile(name, os.O_RDWR|itself, 0)
	writable := err == nil
	if !writable {
		f, err = os.OpenFile(name, os.O_RDONLY|itself, 0)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return func() error { return nil }, nil
	}
	if err != nil {
		return nil, err
	}
	if err := hold(f, dir, shareFile); err != nil {
		return nil, err
	}
	if writable {
		_ = sign(f) // for people
	}
	return f.Close, nil
}

// hold locks the open lock file of a folder, or closes it.
func hold(f *os.File, dir string, lock func(*os.File) error) error {
	err := lock(f)
	if err == nil {
		return nil
	}
	_ = f.Close()
	if errors.Is(err, errHeld) {
		return fmt.Errorf("%s is %w %s: stop that one, or name another folder", dir, ErrInUse, holder(dir))
	}
	return fmt.Errorf("lock %s: %w", f.Name(), err)
}

// sign writes this process into a lock file.
func sign(f *os.File) error {
	text := fmt.Sprintf("%d (%s)\n", os.Getpid(), filepath.Base(os.Args[0]))
	_, err := f.WriteAt([]byte(text), 0)
	return errors.Join(err, f.Truncate(int64(len(text))))
}

// holder reads which process wrote the lock file last: "1234 (decider)".
func holder(dir string) string {
	text, err := os.ReadFile(filepath.Join(dir, LockFile))
	if s := strings.TrimSpace(string(text)); err == nil && s != "" {
		return s
	}
	return "unknown"
}

// Locked reports whether a process holds the folder, and which: "1234 (decider)".
// A folder that does not exist is not held.
func Locked(dir string) (who string, held bool, err error) {
	f, err := os.OpenFile(filepath.Join(dir, LockFile), os.O_RDONLY|itself, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	defer f.Close()
	held, err = isLocked(f)
	if err != nil || !held {
		return "", false, err
	}
	return holder(dir), true, nil
}

// Read reads connect.json. Without it the error is ErrNotRunning.
func Read(dir string) (Connect, error) {
	var c Connect
	name := filepath.Join(dir, ConnectFile)
	data, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return c, fmt.Errorf("%s: %w: it has no %s", dir, ErrNotRunning, ConnectFile)
	}
	if err != nil {
		return c, err
	}
	if err := json.Unmarshal(data, &c); err != nil {
		return c, fmt.Errorf("%s: %w", name, err)
	}
	return c, nil
}

// Dial joins the log of a folder that another process holds, and follows it: when the folder's next server listens
// elsewhere, with other passwords, the connections find it. name is shown by the server's tools.
func Dial(dir, name string, o nats.Options) (*nats.Client, error) {
	c, err := current(dir)
	if err != nil {
		return nil, err
	}
	f := folder{dir}
	return nats.Dial(c.URL, name, o, natsgo.SetCustomDialer(f), natsgo.UserInfoHandler(f.user),
		natsgo.IgnoreAuthErrorAbort(), natsgo.CustomInboxPrefix(ServiceInbox))
}

// current returns how to reach the process that holds a folder now.
func current(dir string) (Connect, error) {
	_, held, err := Locked(dir)
	if err != nil {
		return Connect{}, err
	}
	if !held { // a connect.json there is left from a crash
		return Connect{}, fmt.Errorf("%s: %w", dir, ErrNotRunning)
	}
	c, err := Read(dir)
	if err != nil {
		return Connect{}, fmt.Errorf("%w: %w", stream.ErrUnavailable, err) // it starts or stops just now
	}
	return c, nil
}

// dialTimeout bounds one attempt to connect.
const dialTimeout = 2 * time.Second

// folder connects to the process that serves it at that moment.
type folder struct{ dir string }

// Dial implements [natsgo.CustomDialer]; the address is that of the first server.
func (f folder) Dial(network, _ string) (net.Conn, error) {
	c, err := current(f.dir)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(c.URL)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(f.dir, ConnectFile), err)
	}
	return net.DialTimeout(network, u.Host, dialTimeout)
}

// user returns the service's user. A server that was started between Dial and user
// refuses the other one's password, and is tried again.
func (f folder) user() (name, password string) {
	c, err := current(f.dir)
	if err != nil {
		return "", ""
	}
	return c.User, c.Password
}
