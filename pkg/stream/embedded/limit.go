package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Usage returns how many bytes the store holds, how many it may, and how many are free on its disk.
func (e *Engine) Usage() (held, limit, free int64, err error) {
	js, err := e.server.Jsz(nil)
	if err != nil {
		return 0, 0, 0, err
	}
	free, err = freeBytes(e.o.Dir)
	return int64(js.Store), e.so.JetStreamMaxStore, free, err
}

// limitFile keeps the limit that was chosen when the store was created: chosen
// anew it would shrink while the store fills the disk.
const limitFile = "limit"

// storeLimit returns the store's limit in bytes.
func storeLimit(dir string, given int64) (int64, error) {
	if given > 0 {
		return given, nil
	}
	name := filepath.Join(dir, limitFile)
	data, err := os.ReadFile(name)
	if err == nil {
		n, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
		if err != nil || n <= 0 {
			return 0, fmt.Errorf("%s: %q is not a number of bytes", name, data)
		}
		return n, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	free, err := freeBytes(dir)
	if err != nil {
		return 0, fmt.Errorf("free space of %s: %w", dir, err)
	}
	n := free / 10 * 8
	return n, writeFile(name, fmt.Appendln(nil, n))
}
