package replay

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"sync"

	"hindsight/internal/model"
)

// Journal is a file that keeps the results of trials and what a log says of policies as they finish, a JSON line each,
// so that a backtest that was stopped is taken up where it was. A result is found again by all that it depends on: the
// model with its files, the rounds with their losses, the delays, the seed, and the build of the program. It is safe
// for concurrent use.
type Journal struct {
	mu      sync.Mutex
	file    *os.File
	Version string
	done    map[string]json.RawMessage
	digests map[*Rounds]string
}

// journalLine is one line of the file.
type journalLine struct {
	Version *int            `json:"hindsight_run"`
	Key     string          `json:"key"` // SHA-256 of all that the result depends on
	Result  json.RawMessage `json:"result"`
}

const journalVersion = 1

// ErrDamaged is that of a journal whose results cannot be read.
var ErrDamaged = errors.New("a result that is kept is damaged")

// OpenJournal opens or makes the journal at path; version names the build of the program. A last line that was cut off
// by a crash is dropped; any other line that is none of a journal is an error, and the file stays as it is.
func OpenJournal(path, version string) (*Journal, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	j := &Journal{file: f, Version: version, done: map[string]json.RawMessage{}, digests: map[*Rounds]string{}}
	if err := j.read(path); err != nil {
		_ = f.Close()
		return nil, err
	}
	return j, nil
}

func (j *Journal) read(path string) error {
	r := bufio.NewReader(j.file)
	whole := int64(0) // bytes of lines that are complete
	for n := 1; ; n++ {
		text, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			if len(text) > 0 && !bytes.HasPrefix(text, []byte(`{"hindsight_run":`)[:min(len(text), 17)]) {
				return fmt.Errorf("%s:%d: no result of a run: name another file to resume from", path, n)
			}
			break
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		var l journalLine
		if err := json.Unmarshal(text, &l); err != nil || l.Version == nil {
			return fmt.Errorf("%s:%d: no result of a run: name another file to resume from", path, n)
		}
		if *l.Version != journalVersion {
			return fmt.Errorf("%s:%d: version %d, this program reads %d: name another file to resume from", path, n,
				*l.Version, journalVersion)
		}
		j.done[l.Key] = l.Result
		whole += int64(len(text))
	}
	if err := j.file.Truncate(whole); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	_, err := j.file.Seek(whole, io.SeekStart)
	return err
}

// Result returns what the journal keeps of a trial, nil if that is nothing.
func (j *Journal) Result(t *Trial) (*Result, error) { return Kept[Result](j, j.key(t)) }

// Keep writes the result of a trial, which is on disk when it returns.
func (j *Journal) Keep(t *Trial, r *Result) error { return j.Write(j.key(t), r) }

// Kept returns what is kept under a key, nil if that is nothing.
func Kept[T any](j *Journal, key string) (*T, error) {
	j.mu.Lock()
	kept, ok := j.done[key]
	j.mu.Unlock()
	if !ok {
		return nil, nil
	}
	v := new(T)
	if err := json.Unmarshal(kept, v); err != nil {
		return nil, fmt.Errorf("%s: %w: name another file to resume from (%v)", j.file.Name(), ErrDamaged, err)
	}
	return v, nil
}

// Write writes a line, which is on disk when it returns.
func (j *Journal) Write(key string, v any) error {
	result, err := json.Marshal(v)
	if err != nil {
		return err
	}
	version := journalVersion
	line, err := json.Marshal(journalLine{Version: &version, Key: key, Result: result})
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, err := j.file.Write(append(line, '\n')); err != nil {
		return err
	}
	j.done[key] = result
	return j.file.Sync()
}

// Close closes the file.
func (j *Journal) Close() error { return j.file.Close() }

// key returns the SHA-256 of all that the result of a trial depends on.
func (j *Journal) key(t *Trial) string {
	h := sha256.New()
	HashPart(h, []byte(j.Version))
	HashPart(h, []byte(t.Label))
	HashModel(h, t.Model, t.Files)
	HashPart(h, []byte(t.Delays.Spec))
	for _, words := range t.Delays.Recorded {
		HashWords(h, words)
	}
	looks := int64(0)
	if t.Contexts {
		looks = 1
	}
	HashWords(h, []int64{int64(t.Order), int64(t.Seed), looks})
	HashPart(h, []byte(j.digest(t.Rounds)))
	return hex.EncodeToString(h.Sum(nil))
}

// digest returns that of rounds, which is computed once.
func (j *Journal) digest(r *Rounds) string {
	j.mu.Lock()
	defer j.mu.Unlock()
	digest, ok := j.digests[r]
	if !ok {
		digest = r.Digest()
		j.digests[r] = digest
	}
	return digest
}

// HashPart adds bytes, and how many they are.
func HashPart(h hash.Hash, b []byte) {
	_, _ = h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(b))))
	_, _ = h.Write(b)
}

// HashModel adds a model with the files that it names.
func HashModel(h hash.Hash, m *model.Model, files map[string][]byte) {
	HashPart(h, m.Canonical())
	for _, name := range slices.Sorted(maps.Keys(files)) {
		HashPart(h, []byte(name))
		HashPart(h, files[name])
	}
}

// HashWords adds numbers, and how many they are.
func HashWords(h hash.Hash, words []int64) {
	buf := binary.BigEndian.AppendUint64(make([]byte, 0, 4096), uint64(len(words)))
	for _, w := range words {
		if len(buf)+8 > cap(buf) {
			_, _ = h.Write(buf)
			buf = buf[:0]
		}
		buf = binary.BigEndian.AppendUint64(buf, uint64(w))
	}
	_, _ = h.Write(buf)
}

// Digest returns the SHA-256 of all that a run reads of the rounds: names, contexts,
// the loss and the truth of every action, and what a log recorded.
func (r *Rounds) Digest() string {
	h := sha256.New()
	_, _ = io.WriteString(h, r.Name+"\x00")
	for _, a := range r.Actions {
		_, _ = io.WriteString(h, a+"\x00")
	}
	k := len(r.Actions)
	truth, row := make([]float64, k), make([]int64, 0, 2*k+4)
	number := func(x float64) { row = append(row, int64(math.Float64bits(x))) }
	rounds := r.Reader()
	for t := range r.n {
		if t&(1<<14-1) == 0 {
			r.drop()
		}
		_, _ = io.WriteString(h, rounds.ID(t)+"\x00")
		_, _ = h.Write(rounds.Bytes(t))
		row = row[:0]
		if r.named != nil {
			row = r.named.appendRow(row, r, t)
		}
		if r.Log != nil {
			row = r.appendRecorded(row, t)
			number(r.Loss(t, r.Log.Slot(r.Row(t))))
			HashWords(h, row)
			continue
		}
		for a := range k {
			number(r.Loss(t, a))
		}
		r.Truth(truth, t)
		for _, v := range truth {
			number(v)
		}
		HashWords(h, row)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// appendRecorded appends what is recorded of round t, but for its loss.
func (r *Rounds) appendRecorded(dst []int64, t int) []int64 {
	b, row := r.Log, r.Row(t)
	dst = append(dst, int64(b.Slot(row)))
	if b.Decided != nil {
		dst = append(dst, r.Time(t))
	}
	if b.Props != nil {
		dst = append(dst, int64(math.Float64bits(b.Props[row])), int64(math.Float64bits(b.Weight(row))))
	}
	if b.Weights != nil {
		dst = append(dst, int64(math.Float64bits(b.Stands(row))))
	}
	if b.Unit != nil {
		dst = append(dst, int64(b.Unit[row]))
	}
	if b.Played(row, b.Slot(row)) { // or it is not accepted
		dst = append(dst, 1)
	}
	return dst
}
