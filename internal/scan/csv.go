package scan

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"unsafe"
)

// CSV reads the rows of a CSV file, whose columns commas, semicolons or tabs separate and whose first
// line may begin with a byte order mark. Before the first quote, a row is a line split at the separator;
// encoding/csv reads what follows.
type CSV struct {
	File   string
	comma  byte
	lines  *Lines      // until the first quote
	csv    *csv.Reader // from there on
	tap    tap
	before int64 // lines before those that csv reads
	line   []byte
	cells  []string
}

// separatorBytes of a file say what separates its columns.
const separatorBytes = 4 << 10

// NewCSV returns the rows of r; file is its name in errors.
func NewCSV(file string, r io.Reader) *CSV {
	buffered, ok := r.(*bufio.Reader)
	if !ok {
		buffered = bufio.NewReaderSize(r, BufferBytes)
	}
	start, _ := buffered.Peek(separatorBytes) // an error comes again when it is read
	start = bytes.TrimLeft(bytes.TrimPrefix(start, []byte("\ufeff")), "\r\n")
	header, _, _ := bytes.Cut(start, []byte("\n"))
	return &CSV{File: file, comma: cmp.Or(Separator(header), ','), lines: NewLines(buffered)}
}

// Row returns the cells of the next row that is not blank, valid until the next call, or io.EOF. A
// [*LineError] says that this row cannot be read.
func (c *CSV) Row() ([]string, error) {
	for c.lines != nil {
		line, tooLong, err := c.lines.Next()
		switch {
		case err != nil:
			return nil, err
		case tooLong:
			return nil, c.Errorf(c.lines.N, "", "%s", ErrTooLong)
		case len(line) == 0:
		case bytes.IndexByte(line, '"') < 0:
			c.line = line
			c.cells = splitCells(c.cells[:0], unsafe.String(unsafe.SliceData(line), len(line)), c.comma)
			return c.cells, nil
		default:
			c.quoted(line)
		}
	}
	c.tap.forget(c.csv.InputOffset())
	row, err := c.csv.Read()
	var bad *csv.ParseError
	if errors.As(err, &bad) {
		return nil, c.Errorf(c.before+int64(bad.Line), "", "not CSV: %v", bad.Err)
	}
	return row, err
}

// quoted leaves a line and the rest of the file to encoding/csv.
func (c *CSV) quoted(line []byte) {
	c.before = c.lines.N - 1
	c.tap = tap{r: io.MultiReader(bytes.NewReader(append(bytes.Clone(line), '\n')), c.lines.r)}
	c.csv = csv.NewReader(&c.tap)
	c.csv.Comma, c.csv.ReuseRecord, c.csv.FieldsPerRecord = rune(c.comma), true, -1
	c.lines = nil
}

// Line returns the line of a cell of the row last read.
func (c *CSV) Line(cell int) int64 {
	if c.lines != nil {
		return c.lines.N
	}
	line, _ := c.csv.FieldPos(cell)
	return c.before + int64(line)
}

// Errorf returns a [*LineError]; column is the name of a column, or "".
func (c *CSV) Errorf(line int64, column, format string, args ...any) error {
	return &LineError{File: c.File, Line: line, Name: column, Msg: fmt.Sprintf(format, args...)}
}

// Raw returns the bytes of the row last read, without its end.
func (c *CSV) Raw() []byte {
	if c.lines != nil {
		return c.line
	}
	return bytes.TrimRight(c.tap.kept[:c.csv.InputOffset()-c.tap.from], "\r\n")
}

// tap keeps what was read and not yet forgotten.
type tap struct {
	r    io.Reader
	kept []byte
	from int64 // offset of kept
}

func (t *tap) Read(p []byte) (int, error) {
	n, err := t.r.Read(p)
	t.kept = append(t.kept, p[:n]...)
	return n, err
}

// forget drops what lies before an offset.
func (t *tap) forget(before int64) {
	t.kept = t.kept[:copy(t.kept, t.kept[before-t.from:])]
	t.from = before
}

// splitCells appends the cells of a line without quotes to dst. It looks at eight bytes at once: how long cells are is
// not foreseen, and a branch for each byte would cost more.
func splitCells(dst []string, line string, comma byte) []string {
	const ones, lows = 0x0101010101010101, 0x7f7f7f7f7f7f7f7f
	from, i, text := 0, 0, unsafe.Slice(unsafe.StringData(line), len(line))
	for ; i+8 <= len(text); i += 8 {
		differ := binary.LittleEndian.Uint64(text[i:]) ^ ones*uint64(comma)
		for at := ^(differ&lows + lows | differ | lows); at != 0; at &= at - 1 { // bit 7 of each byte that is a comma
			to := i + bits.TrailingZeros64(at)/8
			dst, from = append(dst, line[from:to]), to+1
		}
	}
	for ; i < len(line); i++ {
		if line[i] == comma {
			dst, from = append(dst, line[from:i]), i+1
		}
	}
	return append(dst, line[from:])
}

// Separator returns what separates the columns of a CSV file by its header: a comma, else
// a semicolon or a tab; 0 where there is none of these outside of quotes.
func Separator(header []byte) byte {
	var bare []byte // what is outside of quotes
	for i, part := range bytes.Split(header, []byte{'"'}) {
		if i%2 == 0 {
			bare = append(bare, part...)
		}
	}
	for _, c := range []byte(",;\t") {
		if bytes.IndexByte(bare, c) >= 0 {
			return c
		}
	}
	return 0
}
