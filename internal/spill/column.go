// Package spill keeps columns of values that have no pointers: on the heap, and once they are large in
// unnamed temporary files whose memory the system may take and read again.
package spill

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"unsafe"
)

// Files are the temporary files in which columns of a log lie: what is kept of every row, in memory that the system may
// drop and read again. They are there until the process ends, for what aliases them is handed out, and have no name:
// nothing is left of them however it ends. Where no such file can be made columns are on the heap; a full disk is an
// error.
type Files struct {
	Most  int // bytes of a column on the heap; 0: columnBytes
	files []*rowFile
	Err   error // the first; what was added then is on the heap
}

const (
	columnBytes = 1 << 20
	fileStep    = 1 << 20 // by which a file grows, a multiple of every page
)

// Drop lets the system take the memory of all columns, whose content stays. It is safe for concurrent use with readers.
func (s *Files) Drop() {
	if s == nil {
		return
	}
	for _, f := range s.files {
		dropPages(f.data[:f.size])
	}
}

// DropBeyond does so if the columns take more than so many bytes.
func (s *Files) DropBeyond(most int64) {
	for _, f := range s.files {
		most -= f.size
	}
	if most < 0 {
		s.Drop()
	}
}

// dropEvery is after how many rows of a pass columns are dropped.
const dropEvery = 1 << 14

// Pass is called with each row of a pass over columns.
func (s *Files) Pass(t int) {
	if t%dropEvery == dropEvery-1 {
		s.Drop()
	}
}

// Column is what is kept of every row. T has no pointers. The zero value is on the heap.
type Column[T any] struct {
	All []T // all that is kept; in a file not beyond the next add
	In  *Files
	f   *rowFile // nil: on the heap
}

// Add appends values.
func (c *Column[T]) Add(v ...T) {
	if len(c.All)+len(v) > cap(c.All) {
		c.grow(len(v))
	}
	c.All = append(c.All, v...)
}

// Pick returns the values of some rows, in their order.
func (c *Column[T]) Pick(rows []int32) Column[T] {
	out := Column[T]{In: c.In}
	for i, t := range rows {
		c.In.Pass(i)
		out.Add(c.All[t])
	}
	return out
}

// Cut drops all values but the first n, if there are more.
func (c *Column[T]) Cut(n int) { c.All = c.All[:min(n, len(c.All))] }

// grow makes room for n more values in the file, if they are not on the heap, where append
// does. After an error append does, too, and [Files.Err] says what it was.
func (c *Column[T]) grow(n int) {
	var cell T
	size := int(unsafe.Sizeof(cell))
	if c.In == nil || c.f == nil && (len(c.All)+n)*size <= c.In.onHeap() {
		return
	}
	was := c.All
	inFile := c.f != nil
	if !inFile {
		c.f = c.In.open()
	}
	if c.f == nil || !c.In.room(c.f, (len(was)+n)*size) {
		c.In, c.All = nil, was[:len(was):len(was)]
		return
	}
	room := unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(c.f.data))), c.f.size/int64(size))
	if c.All = room[:len(was)]; !inFile {
		copy(c.All, was)
	}
	c.In.Drop()
}

// Texts are a text a row.
type Texts struct {
	bytes Column[byte]
	ends  Column[int64]
}

func NewTexts(files *Files) Texts { return Texts{Column[byte]{In: files}, Column[int64]{In: files}} }

func (x *Texts) Add(text string) {
	x.bytes.Add(unsafe.Slice(unsafe.StringData(text), len(text))...)
	x.ends.Add(int64(len(x.bytes.All)))
}

// At returns text i, which is valid until the next add.
func (x *Texts) At(i int) string {
	from := int64(0)
	if i > 0 {
		from = x.ends.All[i-1]
	}
	b := x.bytes.All[from:x.ends.All[i]]
	return unsafe.String(unsafe.SliceData(b), len(b))
}

// Unnamed makes a temporary file whose name is gone at once: nothing is left of it however the process ends.
func Unnamed(pattern string) (*os.File, error) {
	f, err := os.CreateTemp("", pattern)
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, fmt.Errorf("unnamed temporary file: %w", err)
	}
	return f, nil
}

// rowFile is one temporary file and its memory.
type rowFile struct {
	file *os.File
	data []byte // mapped, beyond the end of the file
	size int64  // of the file
}

// onHeap returns how many bytes a column has on the heap.
func (s *Files) onHeap() int { return cmp.Or(s.Most, columnBytes) }

// open makes another file; nil if that cannot be here.
func (s *Files) open() *rowFile {
	file, err := Unnamed("hindsight-*.rows")
	if err != nil {
		return nil
	}
	f := &rowFile{file: file}
	if err := f.grow(fileStep); err != nil {
		if _ = file.Close(); !errors.Is(err, errors.ErrUnsupported) {
			s.Err = err
		}
		return nil
	}
	s.files = append(s.files, f)
	return f
}

// room makes a file hold n bytes, and reports whether it does.
func (s *Files) room(f *rowFile, n int) bool {
	if err := f.grow(int64(n)); err != nil {
		s.Err = err
	}
	return s.Err == nil
}

// Floats returns room for n numbers, and what gives it back.
func (s *Files) Floats(n int) (room []float64, free func(), err error) {
	size := 8 * n
	if size > s.onHeap() {
		if f := s.open(); f != nil && s.room(f, size) {
			return unsafe.Slice((*float64)(unsafe.Pointer(unsafe.SliceData(f.data))), n), func() {
				s.files = slices.DeleteFunc(s.files, func(o *rowFile) bool { return o == f })
				f.close()
			}, nil
		}
	}
	if s.Err != nil {
		return nil, nil, s.Err
	}
	return make([]float64, n), func() {}, nil
}

// grow makes the file hold at least n bytes. What is new is written, so that a full disk is
// an error here and not a fault later.
func (f *rowFile) grow(n int64) error {
	n = (n + fileStep - 1) / fileStep * fileStep
	zeros := make([]byte, 64<<10)
	for ; f.size < n; f.size += int64(len(zeros)) {
		if _, err := f.file.WriteAt(zeros, f.size); err != nil {
			return fmt.Errorf("temporary file of rows in %s, of %d MB so far: %w; TMPDIR names another folder",
				os.TempDir(), f.size>>20, err)
		}
	}
	if n <= int64(len(f.data)) {
		return nil
	}
	was := f.data
	m, err := mapPages(f.file, 0, int(max(n, 2*int64(len(was)))))
	if err != nil {
		return fmt.Errorf("temporary file of rows in %s: %w", os.TempDir(), err)
	}
	if f.data = m; was != nil {
		unmapPages(was)
	}
	return nil
}

// close gives the file and its memory back.
func (f *rowFile) close() {
	unmapPages(f.data)
	_ = f.file.Close()
}
