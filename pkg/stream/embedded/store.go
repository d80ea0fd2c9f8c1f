package embedded

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"time"

	"github.com/minio/highwayhash"
)

// What is known here of the files of a stream in the server's store (filestore.go of nats-server): its configuration in
// meta.inf, with a checksum beside it, and blocks of records.

// checksum returns the hash that the server uses for a stream's configuration, by the
// stream's name, and for a block, by that name and the block's number.
func checksum(name string) hash.Hash64 {
	key := sha256.Sum256([]byte(name))
	h, err := highwayhash.New64(key[:])
	if err != nil {
		panic(err) // only a key of another length is an error
	}
	return h
}

// Sizes in a block. A record is its length with its checksum, sequence, time and the length of the subject; the
// subject; the length of the headers if it has any; headers; data; checksum.
const (
	recordHead     = 4 + 8 + 8 + 2
	recordSum      = 8
	headersLength  = 4
	withHeaders    = 1 << 31 // in the length of a record
	maxRecordBytes = 32 << 20
)

// blockName is what the checksums of a block's records begin with.
func blockName(stream string, number int64) string {
	return stream + "-" + strconv.FormatInt(number, 10)
}

// stored is a record in a block.
type stored struct {
	length         int   // in the block
	sequence, time int64 // negative, or very large: it says that one was deleted
	headers, data  []byte
}

// recordLength returns the length of the record that begins in data, 0 if its head is not there.
func recordLength(data []byte) int {
	if len(data) < recordHead {
		return 0
	}
	return int(binary.LittleEndian.Uint32(data) &^ withHeaders)
}

func sequence(head []byte) int64 { return int64(binary.LittleEndian.Uint64(head[4:])) }

// cutStored returns the record at the beginning of data, if it is whole and has its checksum.
func cutStored(data []byte, h hash.Hash64) (r stored, ok bool) {
	r.length = recordLength(data)
	if r.length < recordHead+recordSum || r.length > min(len(data), maxRecordBytes) {
		return r, false
	}
	subject := int(binary.LittleEndian.Uint16(data[recordHead-2:]))
	body, end := data[recordHead:r.length-recordSum], data[r.length-recordSum:r.length]
	if subject > len(body) {
		return r, false
	}
	subjects, rest := body[:subject], body[subject:]
	headers := 0
	if binary.LittleEndian.Uint32(data)&withHeaders != 0 {
		if len(rest) < headersLength {
			return r, false
		}
		headers, rest = int(binary.LittleEndian.Uint32(rest)), rest[headersLength:]
	}
	if headers > len(rest) {
		return r, false
	}
	h.Reset()
	_, _ = h.Write(data[4:20])
	_, _ = h.Write(subjects)
	_, _ = h.Write(rest)
	if h.Sum64() != binary.LittleEndian.Uint64(end) {
		return r, false
	}
	r.sequence, r.time = sequence(data), int64(binary.LittleEndian.Uint64(data[12:]))
	r.headers, r.data = rest[:headers], rest[headers:]
	return r, true
}

// wholeBlock reports whether a server takes a block as it is: all its records are whole
// and have their checksum. A compressed or encrypted block is not known as whole.
func wholeBlock(data []byte, stream string, number int64) bool {
	h := checksum(blockName(stream, number))
	for len(data) > 0 {
		r, ok := cutStored(data, h)
		if !ok {
			return false
		}
		data = data[r.length:]
	}
	return true
}

// copyMeta copies the configuration of a stream, which then keeps its records for ever
// and takes no new ones. One without its checksum stays as it is: the server says so.
func copyMeta(from, to, stream string) error {
	meta, sum, err := readMeta(from)
	if err != nil {
		return err
	}
	if sum != nil && string(sum) == metaSum(meta, stream) {
		if meta, err = changeMeta(meta, map[string]string{"max_age": "0", "sealed": "true"}); err != nil {
			return fmt.Errorf("%s: %w", from, err)
		}
		sum = []byte(metaSum(meta, stream))
	}
	return writeMeta(to, meta, sum)
}

func metaSum(meta []byte, stream string) string {
	h := checksum(stream)
	_, _ = h.Write(meta)
	return hex.EncodeToString(h.Sum(nil))
}

func changeMeta(meta []byte, values map[string]string) ([]byte, error) {
	var config map[string]json.RawMessage
	if err := json.Unmarshal(meta, &config); err != nil {
		return nil, err
	}
	for key, value := range values {
		config[key] = json.RawMessage(value)
	}
	return json.Marshal(config)
}

// readMeta returns a configuration and its checksum, nil if there is none.
func readMeta(path string) (meta, sum []byte, err error) {
	if meta, err = os.ReadFile(path); err != nil {
		return nil, nil, err
	}
	sum, err = os.ReadFile(filepath.Join(filepath.Dir(path), sumFile))
	if errors.Is(err, fs.ErrNotExist) {
		return meta, nil, nil
	}
	return meta, sum, err
}

func writeMeta(path string, meta, sum []byte) error {
	if err := os.WriteFile(path, meta, 0o600); err != nil || sum == nil {
		return err
	}
	return os.WriteFile(filepath.Join(filepath.Dir(path), sumFile), sum, 0o600)
}

// streamFiles returns the files below the folders of all streams that match a pattern.
func streamFiles(dir, pattern string) ([]string, error) {
	names, err := fs.Glob(os.DirFS(dir), path.Join(storeFolder, "*", streamsFolder, "*", pattern))
	for i := range names {
		names[i] = filepath.Join(dir, names[i])
	}
	return names, err
}

// eachStream calls f for the streams in a folder, with their configuration, its checksum if it
// has one, and the path of the file with the configuration.
func eachStream(dir string, f func(stream, path string, meta, sum []byte) error) error {
	paths, err := streamFiles(dir, metaFile)
	for i := 0; i < len(paths) && err == nil; i++ {
		path := paths[i]
		meta, sum, e := readMeta(path)
		if e == nil {
			e = f(filepath.Base(filepath.Dir(path)), path, meta, sum)
		}
		if e != nil {
			err = fmt.Errorf("%s: %w", path, e)
		}
	}
	return err
}

// completeStreams writes the checksums that a server killed while it made a stream did not come to write, or that a
// power cut took. The next server would make the stream anew, but not its checksum, and the one after that would leave
// the stream out with all that was stored in the meantime. A configuration that a power cut took is removed: its stream
// is made anew with the records that it holds.
func completeStreams(dir string) error {
	return eachStream(dir, func(stream, path string, meta, sum []byte) error {
		switch whole := filepath.Join(filepath.Dir(path), sumFile); {
		case blank(meta):
			return os.Remove(path)
		case blank(sum) && json.Valid(meta):
			if err := os.WriteFile(whole+".tmp", []byte(metaSum(meta, stream)), 0o600); err != nil {
				return err
			}
			return os.Rename(whole+".tmp", whole)
		}
		return nil
	})
}

// blank reports whether a file has lost its content: a power cut leaves it empty or zeros.
func blank(data []byte) bool { return len(bytes.Trim(data, "\x00")) == 0 }

// SetAge changes how long the topics in a folder that nobody serves keep records, 0 meaning for ever.
func SetAge(dir string, age time.Duration) error {
	return eachStream(dir, func(stream, path string, meta, _ []byte) error {
		meta, err := changeMeta(meta, map[string]string{"max_age": strconv.FormatInt(int64(age), 10)})
		if err != nil {
			return err
		}
		return writeMeta(path, meta, []byte(metaSum(meta, stream)))
	})
}

// Config returns the configuration of a stream in a folder, as the server's interface takes it.
func Config(dir, stream string) (config map[string]any, err error) {
	err = eachStream(dir, func(name, _ string, meta, _ []byte) error {
		if name != stream {
			return nil
		}
		return json.Unmarshal(meta, &config)
	})
	if err == nil && config == nil {
		err = fmt.Errorf("folder %s holds no stream %s", dir, stream)
	}
	delete(config, "Created") // not of the configuration
	return config, err
}
