package embedded

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"hindsight/pkg/stream"
)

// TestGateTakesSyncs holds that the server syncs by itself, each record before the next, only where nothing else does:
// with a gate before it it has an interval, and nobody gets past the gate.
func TestGateTakesSyncs(t *testing.T) {
	for _, always := range []bool{true, false} {
		e := &Engine{o: Options{Dir: t.TempDir(), Logger: slog.New(slog.DiscardHandler)}, so: &server.Options{
			SyncAlways: always, SyncInterval: time.Hour}}
		if err := e.startGate(); err != nil {
			t.Fatal(err)
		}
		if gated := e.gate != nil; gated {
			if !always || e.so.SyncAlways || e.so.SyncInterval != time.Second || !e.so.DontListen {
				t.Errorf("always %v: with a gate %+v", always, e.so)
			}
		} else if e.so.SyncAlways != always || e.so.SyncInterval != time.Hour || e.so.DontListen {
			t.Errorf("always %v: without a gate %+v", always, e.so)
		}
		for _, c := range e.closers {
			if err := c(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestGateStaysShut holds that nothing passes a gate any more after one sync that failed.
func TestGateStaysShut(t *testing.T) {
	store, err := watch(t.TempDir())
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	g := newGate(store, slog.New(slog.DiscardHandler))
	defer g.close()
	if err := g.pass(); err != nil {
		t.Fatal(err)
	}
	bad := errors.New("input/output error")
	g.err = bad
	for range 2 {
		if err := g.pass(); !errors.Is(err, bad) {
			t.Errorf("passed: %v", err)
		}
	}
}

// TestFolderIsPrivate: nobody else may look into a folder that is made for a log.
func TestFolderIsPrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	e, err := Open(t.Context(), Options{Dir: dir, DontListen: true})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if i, err := os.Stat(dir); err != nil || i.Mode() != os.ModeDir|0o700 {
		t.Errorf("%v, %v", i.Mode(), err)
	}
}

// TestIndexesAfterStop: indexes are used once after a stop in order, and not after another end.
func TestIndexesAfterStop(t *testing.T) {
	dir := t.TempDir()
	blocks := filepath.Join(dir, storeFolder, "$G", streamsFolder, "s", blocksFolder)
	index, block := filepath.Join(blocks, "index"+indexEnding), filepath.Join(blocks, "1"+blockEnding)
	if err := errors.Join(os.MkdirAll(blocks, 0o700), os.WriteFile(index, nil, 0o600), os.WriteFile(block, nil, 0o600),
		noteStopped(dir)); err != nil {
		t.Fatal(err)
	}
	for _, kept := range []bool{true, false, false} {
		if err := checkStopped(dir); err != nil {
			t.Fatal(err)
		}
		_, missing := os.Stat(index)
		if _, err := os.Stat(block); err != nil || (missing == nil) != kept || stopped(dir) {
			t.Errorf("the index is kept: %v; the block: %v", missing == nil, err)
		}
	}
}

// TestConfig holds that of the streams in a folder the one that is asked for is told, and that there may be none.
func TestConfig(t *testing.T) {
	o := Options{Dir: t.TempDir()}
	e, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	for topic, age := range map[string]time.Duration{"a": time.Hour, "b": 2 * time.Hour, "c": 3 * time.Hour} {
		if err := e.Log().Create(t.Context(), topic, 1, stream.TopicOptions{MaxAge: int64(age)}); err != nil {
			t.Error(err)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	for name, age := range map[string]time.Duration{"a_0": time.Hour, "b_0": 2 * time.Hour, "c_0": 3 * time.Hour} {
		c, err := Config(o.Dir, name)
		if err != nil || c["name"] != name || c["max_age"] != float64(age) || c["Created"] != nil {
			t.Errorf("%s: %v, %v", name, c, err)
		}
	}
	if c, err := Config(o.Dir, "d_0"); err == nil {
		t.Errorf("a stream that is not there: %v", c)
	}
	metas, err := streamFiles(o.Dir, metaFile)
	if err != nil || len(metas) != 3 {
		t.Fatal(metas, err)
	}
	if err := os.WriteFile(metas[0], []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = Config(o.Dir, "a_0")
	for _, err := range []error{err, SetAge(o.Dir, time.Hour)} {
		if err == nil || !strings.Contains(err.Error(), metas[0]) {
			t.Errorf("a configuration that is none: %v", err)
		}
	}
}

// TestViewOfConfig holds that a view's stream takes no records and drops none, and that a damaged configuration is seen
// as it is: the server tells of it.
func TestViewOfConfig(t *testing.T) {
	meta := []byte(`{"name":"s","max_age":7}`)
	for sum, whole := range map[string]bool{metaSum(meta, "s"): true, metaSum(meta, "t"): false, "": false} {
		from, to := filepath.Join(t.TempDir(), metaFile), filepath.Join(t.TempDir(), metaFile)
		given := []byte(sum)
		if sum == "" {
			given = nil
		}
		if err := errors.Join(writeMeta(from, meta, given), copyMeta(from, to, "s")); err != nil {
			t.Fatal(err)
		}
		want, wantSum := string(meta), sum
		if whole {
			want = `{"max_age":0,"name":"s","sealed":true}`
			wantSum = metaSum([]byte(want), "s")
		}
		if got, gotSum, err := readMeta(to); string(got) != want || string(gotSum) != wantSum || err != nil {
			t.Errorf("with the sum %q: %s %s, %v; want %s %s", sum, got, gotSum, err, want, wantSum)
		}
	}
}

// TestBlocksOfStream holds that only a stream from which no single record can be deleted is read from its blocks, and
// in the order of their numbers.
func TestBlocksOfStream(t *testing.T) {
	dir := t.TempDir()
	folder := filepath.Join(dir, storeFolder, "$G", streamsFolder, "s")
	if err := os.MkdirAll(filepath.Join(folder, blocksFolder), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"10.blk", "9.blk", "index.db"} {
		if err := os.WriteFile(filepath.Join(folder, blocksFolder, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for meta, want := range map[string]string{`{"deny_delete":true}`: "9.blk 10.blk", `{"deny_delete":false}`: "",
		`{}`: ""} {
		if err := writeMeta(filepath.Join(folder, metaFile), []byte(meta), nil); err != nil {
			t.Fatal(err)
		}
		blocks, err := streamBlocks(dir, "s")
		for i := range blocks {
			blocks[i] = filepath.Base(blocks[i])
		}
		if got := strings.Join(blocks, " "); got != want || err != nil {
			t.Errorf("%s: %q, %v, want %q", meta, got, err, want)
		}
	}
}

// TestAdvice holds what is said to do about a disk that is full, and that it is said of no other error.
func TestAdvice(t *testing.T) {
	for _, full := range []error{syscall.ENOSPC, syscall.EDQUOT} {
		err := fmt.Errorf("write x: %w", full)
		if got := advise(err); !errors.Is(got, full) ||
			!strings.HasSuffix(got.Error(), ": make room, then start it again") {
			t.Error(got)
		}
		if got := explain(err); !errors.Is(got, stream.ErrFull) || !strings.Contains(got.Error(), "make room") {
			t.Error(got)
		}
	}
	if got := advise(syscall.EIO); got != error(syscall.EIO) {
		t.Error(got)
	}
	if got := explain(syscall.EIO); !errors.Is(got, stream.ErrUnavailable) || !errors.Is(got, syscall.EIO) {
		t.Error(got)
	}
}

// TestBridge holds that all bytes come over, however few at once, and that both sides end when one does.
func TestBridge(t *testing.T) {
	server, in := net.Pipe()
	out, client := net.Pipe()
	ended := make(chan struct{})
	go func() { bridge(out, in); close(ended) }()
	go func() {
		for _, part := range []string{"a", "bc", "d"} {
			_, _ = io.WriteString(server, part)
		}
		server.Close()
	}()
	if got, err := io.ReadAll(client); string(got) != "abcd" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	<-ended

	server, in = net.Pipe()
	out, client = net.Pipe()
	defer client.Close()
	go bridge(deafConn{out}, in)
	_, _ = io.WriteString(server, "x")
	if err := server.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := server.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the client takes nothing, and the server hears %v", err)
	}
}

// deafConn takes nothing.
type deafConn struct{ net.Conn }

func (deafConn) Write([]byte) (int, error) { return 0, errors.New("it takes nothing") }

// TestCutStored holds which bytes of a block are a record: those whose lengths and checksum fit, and no others.
func TestCutStored(t *testing.T) {
	h := checksum(blockName("s", 7))
	le := binary.LittleEndian
	// record has a head that says how long its subject is, and that it has headers if any are counted.
	record := func(subject, headers int, body string) []byte {
		b := make([]byte, recordHead, 100)
		le.PutUint64(b[4:], 5)
		le.PutUint64(b[12:], 6)
		le.PutUint16(b[20:], uint16(subject))
		hashed := body
		if headers >= 0 {
			cut := min(subject, len(body))
			body = body[:cut] + string(le.AppendUint32(nil, uint32(headers))) + body[cut:]
		}
		b = append(b, body...)
		h.Reset()
		_, _ = h.Write(b[4:20])
		_, _ = h.Write([]byte(hashed))
		b = le.AppendUint64(b, h.Sum64())
		le.PutUint32(b, uint32(len(b)))
		if headers >= 0 {
			le.PutUint32(b, uint32(len(b))|withHeaders)
		}
		return b
	}
	for _, x := range []struct {
		name             string
		subject, headers int
		body             string
		want             string // headers and data; "": no record
	}{
		{"nothing", 0, -1, "", "+"}, {"data", 0, -1, "data", "+data"}, {"subject", 4, -1, "a.b.", "+"},
		{"subject and data", 3, -1, "a.bdata", "+data"}, {"subject too long", 4, -1, "a.b", ""},
		{"headers", 1, 2, "ahh", "hh+"}, {"headers and data", 1, 2, "ahhdata", "hh+data"},
		{"no headers, though counted", 1, 0, "a", "+"}, {"headers too long", 1, 3, "ahh", ""},
	} {
		b := record(x.subject, x.headers, x.body)
		got := func(b []byte) string {
			r, ok := cutStored(b, h)
			if !ok || r.sequence != 5 || r.time != 6 || r.length != min(len(b), r.length) {
				return ""
			}
			return string(r.headers) + "+" + string(r.data)
		}
		if got(b) != x.want || got(append(slices.Clone(b), 1, 2, 3)) != x.want {
			t.Errorf("%s: %q, want %q", x.name, got(b), x.want)
		}
		twice, more := append(slices.Clone(b), b...), append(slices.Clone(b), 1)
		if wholeBlock(twice, "s", 7) != (x.want != "") || wholeBlock(more, "s", 7) || wholeBlock(b, "s", 8) {
			t.Errorf("%s: twice, or with a byte more, or in another block", x.name)
		}
		for i := range b {
			if got(b[:i]) != "" {
				t.Errorf("%s: %d bytes of %d are a record", x.name, i, len(b))
			}
			if i < 4 || i >= 20 && i < recordHead+min(x.subject, len(x.body))+4 {
				continue // lengths, and what is beside them
			}
			b[i] ^= 1
			if got(b) != "" {
				t.Errorf("%s: the record with another byte %d is one", x.name, i)
			}
			b[i] ^= 1
		}
	}
	short := record(0, 0, "")
	le.PutUint32(short, uint32(recordHead+recordSum)|withHeaders) // its checksum is where the count would be
	if _, ok := cutStored(short[:recordHead+recordSum], h); ok {
		t.Error("headers without a count are a record")
	}
	for length := range recordHead + recordSum {
		le.PutUint32(short, uint32(length))
		if _, ok := cutStored(short, h); ok {
			t.Errorf("%d bytes are a record", length)
		}
	}
	for n, want := range map[int]int{recordHead - 1: 0, recordHead: recordHead + recordSum} {
		if got := recordLength(record(0, -1, "")[:n]); got != want {
			t.Errorf("%d bytes begin a record of %d, want %d", n, got, want)
		}
	}
	if !wholeBlock(nil, "s", 7) {
		t.Error("an empty block is not whole")
	}
}

// oddListener fails once, and then gives the connections that it has.
type oddListener struct {
	net.Listener
	errs  []error
	conns []net.Conn
}

func (l *oddListener) Accept() (c net.Conn, err error) {
	if len(l.errs) > len(l.conns) {
		err, l.errs = l.errs[0], l.errs[1:]
		return nil, err
	}
	if len(l.conns) == 0 {
		return nil, net.ErrClosed
	}
	c, l.conns = l.conns[0], l.conns[1:]
	return c, nil
}

// TestGateGoesOn holds that a gate serves on after a connection that it could not take, and hangs up on clients of a
// server that has ended.
func TestGateGoesOn(t *testing.T) {
	e, err := Open(t.Context(), Options{Dir: t.TempDir(), Port: -1, Sync: SyncAlways})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if e.gate == nil {
		t.Skip("no gate here")
	}
	hears := func(errs ...error) (string, error) {
		server, client := net.Pipe()
		defer client.Close()
		e.gate.serve(&oddListener{errs: errs, conns: []net.Conn{server}})
		return bufio.NewReader(client).ReadString('\n')
	}
	if line, err := hears(errors.New("too many open files"), errors.New("again")); !strings.HasPrefix(line, "INFO ") {
		t.Errorf("heard %q, %v", line, err)
	}
	if strings.HasSuffix(e.URL(), ":1") {
		t.Error("the port is not one that was free")
	}
	e.server.Shutdown()
	if line, err := hears(); !errors.Is(err, io.EOF) {
		t.Errorf("of a server that has ended: %q, %v", line, err)
	}
}
