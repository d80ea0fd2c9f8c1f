package logs

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"

	"hindsight/internal/scan"
	"hindsight/internal/spill"
)

// Stdin is the path that stands for standard input.
const Stdin = "-"

// Files returns the files that are read of a path: itself, or of a folder those in it and below in
// byte order, hidden ones left out.
func Files(path string) ([]string, error) {
	if path == Stdin {
		return []string{path}, nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	var out []string
	path += string(filepath.Separator) // it may be a link
	err = filepath.WalkDir(path, func(name string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		is, hidden := d.Type(), name != path && strings.HasPrefix(d.Name(), ".")
		if !hidden && is&os.ModeSymlink != 0 {
			to, err := os.Stat(name)
			if err != nil {
				return err
			}
			if is = to.Mode().Type(); to.IsDir() {
				return fmt.Errorf("%s: a link to a folder is not followed: name that folder, or link its files", name)
			}
		}
		switch {
		case hidden && d.IsDir():
			return filepath.SkipDir
		case !hidden && is.IsRegular():
			out = append(out, name)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: there is no file in this folder", path)
	}
	slices.Sort(out)
	return out, nil
}

// input is an open file, decompressed.
type input struct {
	name    string
	r       *bufio.Reader
	bytes   int64 // read, after decompression
	file    *os.File
	closers []func()
}

func (in *input) close() {
	for _, f := range slices.Backward(in.closers) {
		f()
	}
}

// head returns the first bytes of what the file holds, which say what it is.
func (in *input) head() ([]byte, error) {
	head, err := in.r.Peek(detectBytes)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return head, err
}

// maxWindow is how far back zstd data may refer, which is held in memory: as far as zstd itself
// reads back without an option.
const maxWindow = 128 << 20

// maxLayers bounds a file that was compressed again and again.
const maxLayers = 4

// openInput opens a file; gzip and zstd are told by their first bytes.
func openInput(path string, stdin io.Reader) (*input, error) {
	in := &input{name: path}
	var r io.Reader
	if path == Stdin {
		in.name = "standard input"
		r = stdin
	} else {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		in.file, r = f, f
		in.closers = append(in.closers, func() { f.Close() })
	}
	if err := in.decompress(r); err != nil {
		in.close()
		return nil, err
	}
	return in, nil
}

func (in *input) decompress(r io.Reader) error {
	buffered := bufio.NewReaderSize(r, scan.BufferBytes)
	for range maxLayers {
		head, err := buffered.Peek(4)
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("%s: %w", in.name, err)
		}
		switch {
		case len(head) >= 2 && head[0] == 0x1f && head[1] == 0x8b:
			z, err := gzip.NewReader(buffered)
			if err != nil {
				return fmt.Errorf("%s: %w", in.name, (&layer{kind: "gzip"}).explain(err))
			}
			r = &layer{z, "gzip"}
		case string(head) == "\x28\xb5\x2f\xfd":
			z, err := zstd.NewReader(buffered, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(1<<30),
				zstd.WithDecoderMaxWindow(maxWindow))
			if err != nil {
				return fmt.Errorf("%s: zstd: %w", in.name, err)
			}
			in.closers = append(in.closers, z.Close)
			r = &layer{z, "zstd"}
		default:
			in.r = bufio.NewReaderSize(&counted{buffered, &in.bytes}, scan.BufferBytes)
			return nil
		}
		in.file = nil // what it holds are not the bytes that are read
		buffered = bufio.NewReaderSize(r, scan.BufferBytes)
	}
	return fmt.Errorf("%s: compressed more than %d times", in.name, maxLayers-1)
}

type counted struct {
	r io.Reader
	n *int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	*c.n += int64(n)
	return n, err
}

// unnamed copies a stream to a temporary file without a name.
func unnamed(pattern string, r io.Reader) (*os.File, error) {
	f, err := spill.Unnamed(pattern)
	if err != nil {
		return nil, err
	}
	if _, err = io.Copy(f, r); err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
