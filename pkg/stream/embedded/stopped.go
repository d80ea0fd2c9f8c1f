package embedded

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// Beside its blocks the server writes indexes of them, every two minutes and when it stops, and does not wait for the
// blocks to be on the disk. After a power cut an index may tell of records that no block has. The server would then go
// on behind them and leave a gap, for ever, in a log whose records must follow each other. So indexes are only used
// after a stop in order; without them the server reads the blocks.

// stoppedFile is in the folder of a log whose server stopped in order, with all blocks on the disk.
const stoppedFile = "stopped"

// noteStopped syncs the blocks and makes the file.
func noteStopped(dir string) error {
	blocks, err := streamFiles(dir, path.Join(blocksFolder, "*"+blockEnding))
	if err != nil {
		return err
	}
	for _, name := range blocks {
		if err := syncFile(name); err != nil {
			return err
		}
	}
	f, err := os.OpenFile(filepath.Join(dir, stoppedFile), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

func syncFile(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func stopped(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, stoppedFile))
	return err == nil
}

// checkStopped removes the file, or else the indexes.
func checkStopped(dir string) error {
	err := os.Remove(filepath.Join(dir, stoppedFile))
	if err == nil && syncFile(dir) == nil { // else a power cut could bring it back
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	indexes, err := streamFiles(dir, path.Join(blocksFolder, "*"+indexEnding))
	for _, name := range indexes {
		err = errors.Join(err, os.Remove(name))
	}
	return err
}
