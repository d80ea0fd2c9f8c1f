package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"hindsight/pkg/stream/attach"
)

// The files of the server's store below the folder of a log.
const (
	storeFolder    = "jetstream"
	streamsFolder  = "streams"
	consumerFolder = "obs"
	metaFile       = "meta.inf"
	sumFile        = "meta.sum"
	blocksFolder   = "msgs"
	blockEnding    = ".blk"
	indexEnding    = ".db"
)

// manyBytes is a limit of the store that nothing reaches.
const manyBytes = 1 << 50

// viewHeartbeat is short: nothing is written to a view, so whoever waits does so in vain.
const viewHeartbeat = 100 * time.Millisecond

// openReadOnly serves a view of a folder. A server writes at its start already: it drops what is older than a stream
// keeps, cuts a damaged block at the damage, and writes its index. So it gets a folder of its own, with streams that
// keep everything and are sealed, and links in place of the blocks.
func openReadOnly(ctx context.Context, o Options) (*Engine, error) {
	if _, err := os.Stat(filepath.Join(o.Dir, storeFolder)); err != nil {
		return nil, fmt.Errorf("folder %s holds no log: %w", o.Dir, err)
	}
	unlock, err := attach.Share(o.Dir)
	if err != nil {
		return nil, err
	}
	e := &Engine{o: o, closers: []func() error{unlock}}
	if err = e.makeView(); err == nil {
		if err = layView(ctx, o.Dir, e.view); err == nil {
			e.o.Dir, e.o.DontListen, e.o.MaxBytes, e.o.Log.Heartbeat = e.view, true, manyBytes, viewHeartbeat
			e.o.Log.Direct = e.readView
			err = e.start(ctx)
		}
	}
	if err != nil {
		_ = e.Close()
		return nil, err
	}
	return e, nil
}

// viewPrefix begins the name of a view's folder.
const viewPrefix = "hindsight-view-"

// makeView makes a folder for a view, and removes those of processes that were killed. A
// view is locked while it is used; where that is not possible none is ever removed.
func (e *Engine) makeView() (err error) {
	old, err := filepath.Glob(filepath.Join(os.TempDir(), viewPrefix+"*"))
	if err != nil {
		return err
	}
	for _, dir := range old {
		if abandoned(dir) {
			_ = os.RemoveAll(dir) // it may be somebody else's
		}
	}
	if e.view, err = os.MkdirTemp("", viewPrefix); err != nil {
		return err
	}
	if unlock, err := attach.Lock(e.view); err == nil {
		e.atClose(unlock)
	} else {
		e.o.Logger.Debug("the view is not locked", "error", err)
	}
	e.atClose(func() error { return os.RemoveAll(e.view) })
	return nil
}

// newView is how long a view may exist without being locked yet.
const newView = time.Minute

// abandoned reports whether a folder is a view that nobody uses.
func abandoned(dir string) bool {
	if i, err := os.Lstat(dir); err != nil || !i.IsDir() {
		return false
	}
	i, err := os.Lstat(filepath.Join(dir, attach.LockFile))
	if err != nil || !i.Mode().IsRegular() || time.Since(i.ModTime()) < newView {
		return false
	}
	_, held, err := attach.Locked(dir)
	return err == nil && !held
}

// layView lays the store of the folder dir into the folder view: small files and the last
// block of each stream, which a server may append to, as copies, other blocks as links.
func layView(ctx context.Context, dir, view string) error {
	from, err := filepath.EvalSymlinks(filepath.Join(dir, storeFolder))
	if err == nil {
		from, err = filepath.Abs(from)
	}
	if err != nil {
		return fmt.Errorf("folder %s: %w", dir, err)
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	v := &viewer{ctx: ctx, from: from, to: filepath.Join(view, storeFolder), blocks: g, stopped: stopped(dir)}
	err = filepath.WalkDir(from, v.visit)
	if first := g.Wait(); first != nil {
		return first
	}
	return err
}

// viewer walks a store.
type viewer struct {
	ctx      context.Context
	from, to string
	blocks   *errgroup.Group
	stopped  bool             // the folder's last server stopped in order
	stream   string           // whose files are visited
	last     map[string]int64 // by folder: the number of its last block
}

func (v *viewer) visit(path string, d fs.DirEntry, err error) error {
	if err != nil {
		return err
	}
	name, err := filepath.Rel(v.from, path)
	if err != nil {
		return err
	}
	to := filepath.Join(v.to, name)
	if d.IsDir() {
		if d.Name() == consumerFolder { // of readers that are gone
			return fs.SkipDir
		}
		if filepath.Base(filepath.Dir(path)) == streamsFolder {
			v.stream = d.Name()
		}
		return os.Mkdir(to, 0o700)
	}
	switch {
	case !d.Type().IsRegular():
		return fmt.Errorf("%s is neither a file nor a folder", path)
	case d.Name() == sumFile: // written with its meta file
		return nil
	case filepath.Ext(d.Name()) == indexEnding && !v.stopped: // made from the blocks
		return nil
	case d.Name() == metaFile:
		return copyMeta(path, to, v.stream)
	case filepath.Ext(d.Name()) != blockEnding:
		return copyFile(path, to)
	}
	last, err := v.isLast(path)
	if err != nil || last {
		return errors.Join(err, copyFile(path, to))
	}
	b := block{from: path, to: to, stream: v.stream}
	v.blocks.Go(b.show)
	return v.ctx.Err()
}

// isLast reports whether no later block is in the folder of this one.
func (v *viewer) isLast(path string) (bool, error) {
	dir := filepath.Dir(path)
	if _, ok := v.last[dir]; !ok {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return false, err
		}
		last := int64(math.MinInt64)
		for _, e := range entries {
			last = max(last, blockNumber(e.Name()))
		}
		v.last = map[string]int64{dir: last} // the one before is not asked for again
	}
	return blockNumber(path) == v.last[dir], nil
}

// blockNumber returns the number in the name of a block, −1 for another file.
func blockNumber(path string) int64 {
	name, ok := strings.CutSuffix(filepath.Base(path), blockEnding)
	var n int64
	if _, err := fmt.Sscanf(name, "%d", &n); !ok || err != nil {
		return -1
	}
	return n
}

// block is a block of a stream that is to be seen at another place.
type block struct{ from, to, stream string }

// show links a block that is whole, which a server only reads, and copies one that is not, which it cuts.
func (b block) show() error {
	data, err := os.ReadFile(b.from)
	if err != nil {
		return err
	}
	if wholeBlock(data, b.stream, blockNumber(b.from)) {
		return os.Symlink(b.from, b.to)
	}
	return os.WriteFile(b.to, data, 0o600)
}

func copyFile(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o600)
}
