package door

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"hindsight/internal/secret"
)

// Limits of a file of keys.
const (
	maxKeys    = 256
	maxKeyFile = 64 << 10
	keysEvery  = time.Second // the file is read again, when somebody asks
)

// role is what a key allows, as a set.
type role uint8

const (
	mayDecide role = 1 << iota
	mayOutcome
	mayRead
	mayAll = mayDecide | mayOutcome | mayRead
)

// The roles as the file has them, and what they allow. Whoever may all is an admin.
var (
	roleNames = []string{"decide", "outcome", "read", "admin"}
	roles     = []role{mayDecide, mayOutcome, mayRead, mayAll}
)

func (r role) String() string {
	var names []string
	for i, one := range roles {
		if one == r {
			return roleNames[i]
		}
		if one&r == one {
			names = append(names, roleNames[i])
		}
	}
	return strings.Join(names, " or ")
}

// parseRole reads one or several roles with commas between them.
func parseRole(s string) (r role, err error) {
	for name := range strings.SplitSeq(s, ",") {
		i := slices.Index(roleNames, name)
		if i < 0 {
			return 0, fmt.Errorf("role %.64q: expected %s, or several with commas between them", name,
				strings.Join(roleNames, ", "))
		}
		r |= roles[i]
	}
	return r, nil
}

// key is one line of the file: whoever has the key that its hash is of is this client.
type key struct {
	client
	hash [sha256.Size]byte
}

// client is who asks, and what it may do.
type client struct {
	name string // which --client-rate counts by
	role role
}

var keyName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// parseKeys reads a file of keys. Empty lines and those that begin with # are none.
func parseKeys(text []byte) (keys []key, err error) {
	n := 0
	for line := range bytes.Lines(text) {
		n++
		words := strings.Fields(string(line))
		if len(words) == 0 || words[0][0] == '#' {
			continue
		}
		k, err := parseKey(words)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		keys = append(keys, k)
	}
	if len(keys) > maxKeys {
		return nil, fmt.Errorf("it has %d keys, at most %d are taken", len(keys), maxKeys)
	}
	return keys, nil
}

func parseKey(words []string) (k key, err error) {
	if len(words) != 3 || !keyName.MatchString(words[0]) {
		return k, errors.New("expected NAME ROLE sha256:HEX, with a name of letters, digits, dots, dashes and " +
			"underscores; add keys with: decider keys add NAME ROLE")
	}
	k.name = words[0]
	if k.role, err = parseRole(words[1]); err != nil {
		return k, err
	}
	digits, ok := strings.CutPrefix(words[2], "sha256:")
	if n, err := hex.Decode(k.hash[:], []byte(digits[:min(len(digits), 2*sha256.Size)])); !ok || err != nil ||
		n != sha256.Size || len(digits) != 2*sha256.Size {
		return k, fmt.Errorf("of %s: expected sha256: and the %d hexadecimal digits of the key's SHA-256", k.name,
			2*sha256.Size)
	}
	return k, nil
}

// keys are those of a file, which is read again while the process runs.
type keys struct {
	file   string
	logger *slog.Logger
	last   atomic.Pointer[[]key]
	readAt atomic.Int64 // ns since 1970

	mu     sync.Mutex
	text   []byte
	failed string // the error of the last reading
}

// readKeys reads a file of keys.
func readKeys(file string, logger *slog.Logger) (*keys, error) {
	k := &keys{file: file, logger: logger}
	return k, k.read(time.Now())
}

func (k *keys) read(now time.Time) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.readAt.Store(now.UnixNano())
	text, err := secret.Read(k.file, "keys", maxKeyFile)
	if err != nil || k.last.Load() != nil && bytes.Equal(text, k.text) {
		return err
	}
	all, err := parseKeys(text)
	if err != nil {
		return fmt.Errorf("keys file %s: %w", k.file, err)
	}
	if k.last.Swap(&all) != nil {
		k.logger.Info("keys are read again", "file", k.file, "keys", len(all))
	}
	k.text = text
	return nil
}

// refresh reads the file again when that is due. Keys that cannot be read leave the last ones in use.
func (k *keys) refresh(now time.Time) {
	at := k.readAt.Load()
	if now.UnixNano()-at < int64(keysEvery) || !k.readAt.CompareAndSwap(at, now.UnixNano()) {
		return
	}
	err := k.read(now)
	k.mu.Lock()
	defer k.mu.Unlock()
	said := fmt.Sprint(err)
	if err != nil && said != k.failed {
		k.logger.Warn("the keys cannot be read; the last ones stay in use", "error", said)
	}
	k.failed = said
}

// find returns whose key this is. It takes as long for any guess, and what it compares are hashes.
func (k *keys) find(given string) (c client, ok bool) {
	k.refresh(time.Now())
	hash := sha256.Sum256([]byte(given))
	all := *k.last.Load()
	for i := range all {
		if k := &all[i]; subtle.ConstantTimeCompare(hash[:], k.hash[:]) == 1 {
			c, ok = client{k.name, c.role | k.role}, true
		}
	}
	return c, ok
}

// AddKey makes a key, adds its hash to a file, which it makes if there is none, and returns the key.
func AddKey(file, name, roles string) (string, error) {
	if !keyName.MatchString(name) {
		return "", fmt.Errorf("name %.64q: expected letters, digits, dots, dashes and underscores, at most 64", name)
	}
	if _, err := parseRole(roles); err != nil {
		return "", err
	}
	text, err := secret.Read(file, "keys", maxKeyFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	random := make([]byte, 32)
	rand.Read(random) // never fails
	made := "hs_" + base64.RawURLEncoding.EncodeToString(random)
	line := fmt.Sprintf("%s %s sha256:%x\n", name, roles, sha256.Sum256([]byte(made)))
	if len(text) > 0 && text[len(text)-1] != '\n' {
		line = "\n" + line
	}
	if _, err := parseKeys(append(text, line...)); err != nil {
		return "", fmt.Errorf("keys file %s: %w", file, err)
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(line)
	return made, errors.Join(err, f.Sync(), f.Close())
}
