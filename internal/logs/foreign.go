package logs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"

	"github.com/klauspost/compress/zstd"
)

// foreigns are beginnings of files that are no log, with what they are and what to do.
var foreigns = []struct{ begins, is string }{
	{"\xff\xfe\x00\x00", "UTF-32 text" + recode("UTF-32")},
	{"\xff\xfe", "UTF-16 text" + recode("UTF-16")},
	{"\xfe\xff", "UTF-16 text" + recode("UTF-16")},
	{"PK\x03\x04", "a zip archive, or a workbook in one; unpack it, or save the sheet as CSV"},
	{"\xfd7zXZ\x00", "compressed by xz; gzip, zstd and plain files are read: xz -d FILE"},
	{"BZh", "compressed by bzip2; gzip, zstd and plain files are read: bzip2 -d FILE"},
	{"7z\xbc\xaf\x27\x1c", "a 7z archive; unpack it"},
	{"\x04\x22\x4d\x18", "compressed by lz4; gzip, zstd and plain files are read: lz4 -d FILE"},
	{"\xff\x06\x00\x00sNaPpY", "compressed by snappy; gzip, zstd and plain files are read"},
	{"Obj\x01", "an Avro file; write it as JSON lines or Parquet"},
	{"ORC", "an ORC file; write it as JSON lines or Parquet"},
	{"ARROW1", "an Arrow file; write it as JSON lines or Parquet"},
	{"SQLite format 3\x00", "an SQLite database; write its table as CSV"},
	{"%PDF", "a PDF"},
}

func recode(from string) string {
	return "; UTF-8 is read: iconv -f " + from + " -t UTF-8 FILE > NEW"
}

var (
	jsonArray = regexp.MustCompile(`^\s*\[\s*[{\]]`)
	otherText = regexp.MustCompile(`^(?:(slates) (?:shared|action|slot)\b|(ca) [-+.0-9]+:)`)
	markup    = regexp.MustCompile(`(?i)^\s*<(!doctype|html|\?xml)`)
)

// foreign returns an error that says what a file is that begins with head, if that is
// clearly no text that could be a log; head is long enough to hold lines of it.
func foreign(head []byte) error {
	for _, f := range foreigns {
		if bytes.HasPrefix(head, []byte(f.begins)) {
			return errors.New("this is " + f.is)
		}
	}
	switch nul := bytes.Count(head, []byte{0}); {
	case nul > 0 && nul >= len(head)*3/8:
		return errors.New("this is UTF-16 text" + recode("UTF-16LE") + " (or UTF-16BE)")
	case nul > 0:
		return errors.New("this is no text: byte " + fmt.Sprint(bytes.IndexByte(head,
			0)+1) + " is 0; was it cut off, or is it of another program?")
	case jsonArray.Match(head):
		return errors.New("this is a JSON array; an object a line is read: jq -c '.[]' FILE > NEW")
	case otherText.Match(head):
		at := otherText.FindSubmatch(head)
		return fmt.Errorf("this is text of Vowpal Wabbit with labels of %w", labelError(string(at[1])+string(at[2])))
	case markup.Match(head):
		return errors.New("this is HTML or XML, perhaps the message of a server that did not give the file; look at it")
	}
	return nil
}

// layer is what decompresses; its errors say what is wrong with the file.
type layer struct {
	r    io.Reader
	kind string // gzip or zstd
}

func (l *layer) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = l.explain(err)
	}
	return n, err
}

// explain says of an error in the middle of compressed data what it means.
func (l *layer) explain(err error) error {
	what := "the file is damaged, or something follows the compressed data"
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		what = "the file was cut off"
	case errors.Is(err, zstd.ErrWindowSizeExceeded):
		return fmt.Errorf("reading zstd: %w: it refers back over more than %d MiB; compress it again without --long: "+
			"zstd -dc --long=31 FILE | zstd > NEW", err, maxWindow>>20)
	}
	return fmt.Errorf("reading %s: %w: %s; copy it again, or take what can be read of it: %s -dc FILE > NEW",
		l.kind, err, what, l.kind)
}
