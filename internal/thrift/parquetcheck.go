// Package thrift checks what a file of Parquet says of its sizes before the library believes it.
package thrift

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// The library allocates whatever sizes a file of Parquet names, so that a few damaged bytes would take all memory. What
// it takes on trust is checked here, at the cost of reading the headers of all pages once more.

var errNoParquet = errors.New("not Parquet, or cut: PAR1 and the footer are not where they should be")

const parquetMagic = "PAR1"

// CheckFooter checks the ends of a file and the size of the footer.
func CheckFooter(f io.ReaderAt, size int64) error {
	const ends = 8 // the size of the footer and the magic
	head, tail := make([]byte, len(parquetMagic)), make([]byte, ends)
	if size < int64(len(parquetMagic)+ends) {
		return errNoParquet
	}
	if _, err := f.ReadAt(head, 0); err != nil {
		return err
	}
	if _, err := f.ReadAt(tail, size-ends); err != nil {
		return err
	}
	footer := int64(binary.LittleEndian.Uint32(tail))
	if string(head) != parquetMagic || string(tail[4:]) != parquetMagic || footer > size-ends-int64(len(parquetMagic)) {
		return errNoParquet
	}
	metadata := make([]byte, footer)
	if _, err := f.ReadAt(metadata, size-ends-footer); err != nil {
		return err
	}
	_, err := checkThrift(metadata)
	return err
}

const (
	maxPageBytes  = 256 << 20 // of a page, unpacked
	maxPageValues = 1 << 24
	headerBytes   = 64 << 10 // of a page's header, with its statistics
)

// CheckPages checks the headers of all pages against the file and these limits.
func CheckPages(f io.ReaderAt, size int64, md *format.FileMetaData) error {
	buf := make([]byte, headerBytes)
	for g := range md.RowGroups {
		for c := range md.RowGroups[g].Columns {
			m := &md.RowGroups[g].Columns[c].MetaData
			if err := checkColumn(f, size, m, buf); err != nil {
				return fmt.Errorf("row group %d, column %d: %w", g, c, err)
			}
		}
	}
	return nil
}

func checkColumn(f io.ReaderAt, size int64, m *format.ColumnMetaData, buf []byte) error {
	switch m.Codec {
	case format.Uncompressed, format.Snappy, format.Gzip, format.Zstd:
	default:
		return fmt.Errorf("compressed by %v, which is not read; write it with zstd, gzip or snappy", m.Codec)
	}
	at := m.DataPageOffset
	if d := m.DictionaryPageOffset; d > 0 && d < at {
		at = d
	}
	end := at + m.TotalCompressedSize
	if at < int64(len(parquetMagic)) || m.TotalCompressedSize < 0 || end < at || end > size {
		return errors.New("its pages do not lie in the file")
	}
	for at < end {
		n, err := f.ReadAt(buf[:min(int64(len(buf)), size-at)], at)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		n, err = checkThrift(buf[:n])
		var protocol thrift.CompactProtocol
		var h format.PageHeader
		if err == nil {
			err = thrift.Unmarshal(&protocol, buf[:n], &h)
		}
		if err != nil {
			return fmt.Errorf("the header of a page at byte %d: %w", at, err)
		}
		at += int64(n)
		values := max(h.DataPageHeader.V.NumValues, h.DataPageHeaderV2.V.NumValues,
			h.DictionaryPageHeader.V.NumValues, h.DataPageHeaderV2.V.NumRows)
		if h.CompressedPageSize < 0 || int64(h.CompressedPageSize) > end-at || h.UncompressedPageSize < 0 ||
			h.UncompressedPageSize > maxPageBytes || values > maxPageValues {
			return fmt.Errorf("the header of the page before byte %d: %d bytes, %d unpacked, %d values: more than "+
				"there can be", at, h.CompressedPageSize, h.UncompressedPageSize, values)
		}
		at += int64(h.CompressedPageSize)
	}
	return nil
}
