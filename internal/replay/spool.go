package replay

import (
	"bufio"
	"fmt"
	"os"
)

// spool takes bytes that are read later in any order: in memory as long as they are few,
// else in a temporary file, which the system may drop from memory and read again.
type spool struct {
	data []byte
	file *os.File
	w    *bufio.Writer
	n    int64
	most int // bytes in memory
}

// spoolBytes is what a spool holds in memory.
const spoolBytes = 64 << 20

// add appends b and returns where it begins.
func (s *spool) add(b []byte) (at int64, err error) {
	at = s.n
	s.n += int64(len(b))
	if s.file == nil {
		if len(s.data)+len(b) <= s.most {
			s.data = append(s.data, b...)
			return at, nil
		}
		if err := s.toFile(); err != nil {
			return at, err
		}
	}
	if _, err := s.w.Write(b); err != nil {
		return at, fmt.Errorf("temporary file of contexts: %w", err)
	}
	return at, nil
}

// toFile moves what is there to a file.
func (s *spool) toFile() error {
	f, err := unnamedFile("hindsight-*.contexts")
	if err == nil {
		s.file, s.w = f, bufio.NewWriterSize(f, 1<<20)
		_, err = s.w.Write(s.data)
	}
	if err != nil {
		return fmt.Errorf("temporary file of contexts: %w", err)
	}
	s.data = nil
	return nil
}

// bytes returns all that was added; nothing may be added any more.
func (s *spool) bytes() ([]byte, error) {
	if s.file == nil {
		return s.data, nil
	}
	defer s.file.Close()
	err := s.w.Flush()
	if err == nil {
		s.data, err = mapFile(s.file, s.n)
	}
	if err != nil {
		return nil, fmt.Errorf("temporary file of contexts: %w", err)
	}
	return s.data, nil
}
