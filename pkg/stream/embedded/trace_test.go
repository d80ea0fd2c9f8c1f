package embedded_test

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// disk is what a disk holds below a folder, by the system calls of a process: what was
// written, and what was synced and so survives a power cut. A sync covers what was written
// before it began, and counts once it returned; of a write that has begun by then and not
// returned, the trace does not say whether another thread knew already that it is done, so it is
// covered as well. A name survives once its folder was synced.
type disk struct {
	root    string
	names   map[string]*node // by path, folders too
	synced  map[string]*node
	begun   map[string][]string // by thread: the name and arguments of a call that has not returned
	syncing map[string]func()   // by thread: what a sync that has begun does when it returns
	said    func(text string)   // hears what the process writes to its standard output, before it does
}

// node is a file or folder.
type node struct {
	folder bool
	data   []byte
	synced []byte
}

// newDisk takes what is in a folder as synced.
func newDisk(t *testing.T, root string, said func(string)) *disk {
	t.Helper()
	d := &disk{root: root, names: map[string]*node{}, begun: map[string][]string{},
		syncing: map[string]func(){}, said: said}
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		n := &node{folder: e.IsDir()}
		if !n.folder {
			n.data, err = os.ReadFile(path)
			n.synced = slices.Clone(n.data)
		}
		d.names[path] = n
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	d.synced = maps.Clone(d.names)
	return d
}

var (
	hexByte = regexp.MustCompile(`\\x[0-9a-f]{2}`)
	call    = regexp.MustCompile(`^(\d+) +(\w+)\((.*)$`)
	resumed = regexp.MustCompile(`^(\d+) +<\.\.\. (\w+) resumed>(.*)$`)
	result  = regexp.MustCompile(`= (-?\d+)[^=]*$`)
	quoted  = regexp.MustCompile(`"([^"]*)"`)
	pathOf  = regexp.MustCompile(`^(\d+)<([^>]*)>`)
	lastArg = regexp.MustCompile(`, (\d+)(?:\) += .*)?$`) // the last one
)

// decode turns hexadecimal bytes of strace into what they are.
func decode(s string) string {
	return hexByte.ReplaceAllStringFunc(s, func(b string) string {
		n, _ := strconv.ParseUint(b[2:], 16, 8)
		return string([]byte{byte(n)})
	})
}

// replay follows the lines of a trace (strace -f -y -xx) and calls each before every line.
func (d *disk) replay(t *testing.T, trace string, each func(line int)) {
	t.Helper()
	f, err := os.Open(trace)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := bufio.NewReader(f)
	for i := 0; ; i++ {
		line, err := r.ReadString('\n')
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		each(i)
		line = strings.TrimSuffix(line, "\n")
		if m := resumed.FindStringSubmatch(line); m != nil {
			args := d.begun[m[1]][1] + m[3]
			delete(d.begun, m[1])
			err = d.end(m[1], m[2], args)
		} else if m := call.FindStringSubmatch(line); m != nil {
			d.begin(m[1], m[2], m[3])
			if args, ok := strings.CutSuffix(m[3], " <unfinished ...>"); ok {
				d.begun[m[1]] = []string{m[2], args}
				continue
			}
			err = d.end(m[1], m[2], m[3])
		}
		if err != nil {
			t.Fatalf("%v: %.300s", err, line)
		}
	}
}

// begin follows the beginning of a system call.
func (d *disk) begin(thread, name, args string) {
	fd := pathOf.FindStringSubmatch(args)
	switch {
	case fd == nil:
	case name == "write" && fd[1] == "1":
		d.said(decode(quoted.FindStringSubmatch(args)[1]))
	case name == "fsync", name == "fdatasync":
		d.syncing[thread] = d.sync(decode(fd[2]))
	}
}

// sync begins a sync; done is for when it has returned.
func (d *disk) sync(path string) (done func()) {
	n := d.names[path]
	switch {
	case n == nil: // outside, or removed
		return func() {}
	case n.folder:
		now := map[string]*node{}
		for p, n := range d.names {
			if filepath.Dir(p) == path {
				now[p] = n
			}
		}
		return func() {
			maps.DeleteFunc(d.synced, func(p string, _ *node) bool { return filepath.Dir(p) == path })
			maps.Copy(d.synced, now)
		}
	}
	now := &node{data: slices.Clone(n.data)}
	for _, b := range d.begun {
		if fd := pathOf.FindStringSubmatch(b[1]); fd != nil && decode(fd[2]) == path {
			now.write(b[0], b[1])
		}
	}
	return func() { n.synced = now.data }
}

// end follows a system call that has returned.
func (d *disk) end(thread, name, args string) error {
	value := result.FindStringSubmatch(args)
	if value == nil || strings.HasPrefix(value[1], "-") {
		return nil
	}
	var path, to string
	if fd := pathOf.FindStringSubmatch(args); fd != nil {
		path = decode(fd[2])
	}
	if q := quoted.FindAllStringSubmatch(args, 2); len(q) > 0 && path == "" {
		path, to = decode(q[0][1]), decode(q[len(q)-1][1])
	}
	if !strings.HasPrefix(path, d.root) {
		return nil
	}
	n := d.names[path]
	switch name {
	case "fsync", "fdatasync":
		d.syncing[thread]()
	case "mkdirat":
		d.names[path] = &node{folder: true}
	case "openat":
		if n == nil && strings.Contains(args, "O_CREAT") {
			d.names[path] = &node{}
		} else if n != nil && strings.Contains(args, "O_TRUNC") {
			n.resize(0)
		}
	case "renameat":
		if n == nil || n.folder {
			return fmt.Errorf("%s cannot be followed", path)
		}
		d.names[to] = n
		delete(d.names, path)
	case "unlinkat":
		delete(d.names, path)
	case "write", "pwrite64", "ftruncate":
		if n != nil { // else it was removed
			n.write(name, args)
		}
	default:
		return fmt.Errorf("%s is not known", name)
	}
	return nil
}

func (n *node) resize(size int) {
	n.data = append(n.data, make([]byte, max(0, size-len(n.data)))...)[:size]
}

// write does what a call did to a file. One to write does it to the end.
func (n *node) write(name, args string) {
	at, text := len(n.data), ""
	if q := quoted.FindStringSubmatch(args); q != nil {
		text = decode(q[1])
	}
	if last := lastArg.FindStringSubmatch(args); last != nil && name != "write" {
		at, _ = strconv.Atoi(last[1])
	}
	switch name {
	case "ftruncate":
		n.resize(at)
	case "write", "pwrite64":
		n.resize(max(len(n.data), at+len(text)))
		copy(n.data[at:], text)
	}
}

// How a power cut treats what was not synced.
const (
	cutAll    = iota // none of it survives
	cutSome          // of each file a part survives
	cutZeroed        // of each file a part survives as zeros
	waysToCut
)

// image writes what a power cut leaves. With names, what was done to names survives unsynced.
// Of a folder's files the system writes back first what was written first: where a part of one
// is lost, nothing of a later one survives that was not synced.
func (d *disk) image(t *testing.T, how int, names bool, random *rand.Rand) string {
	t.Helper()
	dir, all, torn := t.TempDir(), d.synced, map[string]bool{}
	if names {
		all = d.names
	}
	// Folders come before what is in them, 9.blk before 10.blk.
	paths := slices.SortedFunc(maps.Keys(all), func(a, b string) int {
		return cmp.Or(len(a)-len(b), strings.Compare(a, b))
	})
	for _, path := range paths {
		n, to := all[path], filepath.Join(dir, strings.TrimPrefix(path, d.root))
		if _, err := os.Stat(filepath.Dir(to)); err != nil {
			continue // the folder's name is lost
		}
		var err error
		if n.folder {
			err = os.MkdirAll(to, 0o700)
		} else {
			data := n.synced
			if folder := filepath.Dir(path); !torn[folder] {
				data = n.survives(how, random)
				torn[folder] = len(data) < len(n.data)
			}
			err = os.WriteFile(to, data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func (n *node) survives(how int, random *rand.Rand) []byte {
	rest := len(n.data) - len(n.synced)
	if how == cutAll || rest <= 0 {
		return n.synced
	}
	part := slices.Clone(n.data[len(n.synced):][:random.IntN(rest+1)])
	if how == cutZeroed {
		clear(part)
	}
	return append(slices.Clone(n.synced), part...)
}

// unsynced returns how many bytes a power cut would lose.
func (d *disk) unsynced() (n int) {
	for _, file := range d.names {
		n += max(0, len(file.data)-len(file.synced))
	}
	return n
}
