package daemon

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"hindsight/internal/secret"
	"hindsight/pkg/stream/attach"
)

// SeedBytes is the length of the secret seed.
const SeedBytes = 32

// maxSeedFile is more than a seed in hex with its line end.
const maxSeedFile = 1024

// SeedFile reads the secret seed of a system, [SeedBytes] bytes in hex, and makes it, readable by its owner only, if
// there is none. Anyone with the seed can choose round IDs that draw a wanted action, and verify needs it: a file that
// others can read is refused.
func SeedFile(path string) ([]byte, error) {
	seed, err := readSeed(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return seed, err
	}
	seed = make([]byte, SeedBytes)
	rand.Read(seed) // never fails
	if err = WriteSeed(path, seed); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("make seed file: %w", err)
	}
	return readSeed(path) // of two that made one at once, both get the first
}

// SeedOf is [SeedFile] for a log that may hold rounds already, as begun tells: their
// draws came from a seed that exists somewhere, and another one would not do.
func SeedOf(path string, begun func() (bool, error)) ([]byte, error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		old, err := begun()
		if err != nil {
			return nil, err
		}
		if old {
			return nil, fmt.Errorf("the seed of this log is missing: there is no file %s, and a new one would be "+
				"another seed; restore it from the backup, or copy it from where the log was made, with mode 0600 "+
				"(all processes of a model need the same seed file)", path)
		}
	}
	seed, err := SeedFile(path)
	if err != nil {
		return nil, err
	}
	return seed, attach.OwnFile(path, "seed file")
}

func readSeed(path string) ([]byte, error) {
	text, err := secret.Read(path, "seed", maxSeedFile)
	if err != nil {
		return nil, err
	}
	seed, err := hex.DecodeString(string(bytes.TrimSpace(text)))
	if err != nil || len(seed) != SeedBytes {
		return nil, fmt.Errorf("seed file %s: expected %d bytes in hex, that is %d digits; restore it, or remove it "+
			"to start a new system with a new seed", path, SeedBytes, 2*SeedBytes)
	}
	return seed, nil
}

// WriteSeed writes a seed beside path and links it into place, so that the
// file is there whole or not at all; fs.ErrExist if another one was faster.
func WriteSeed(path string, seed []byte) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".seed-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = fmt.Fprintf(f, "%x\n", seed)
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		return err
	}
	return os.Link(f.Name(), path)
}
