package replay

import (
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"

	"hindsight/internal/logs"
	"hindsight/internal/loop"
	"hindsight/pkg/codec"
)

// OpenLog reads a bandit log from a CSV file, or from those of a folder, one after the
// other.
func OpenLog(path string, o LogOptions) (*BanditLog, error) {
	t, err := logs.OpenTables(path, nil)
	if err != nil {
		return nil, fmt.Errorf("bandit log: %w", err)
	}
	return LogOfTables(t, o)
}

// LogOfTables reads a bandit log from tables, and closes them.
func LogOfTables(t *logs.Tables, o LogOptions) (*BanditLog, error) {
	defer t.Close()
	if err := o.Mapping.Validate(); err != nil {
		return nil, err
	}
	f, err := openTables(t)
	if err != nil {
		return nil, err
	}
	return readLog(f, o)
}

// ReadLog reads a bandit log; file is its name in errors, which are [*CSVError] but for
// those of r and of the mapping.
func ReadLog(file string, r io.Reader, o LogOptions) (*BanditLog, error) {
	if err := o.Mapping.Validate(); err != nil {
		return nil, err
	}
	return readLog(newCSVFile(file, r), o)
}

func readLog(f *csvFile, o LogOptions) (*BanditLog, error) {
	p, err := banditHeader(f, o)
	if err != nil {
		return nil, err
	}
	if err := p.rest(); err != nil {
		return nil, err
	}
	return p.log, nil
}

// banditHeader reads the header of a log whose columns are named.
func banditHeader(f *csvFile, o LogOptions) (*logParser, error) {
	p := newLogParser(f, o)
	f.keepAccount(o.Ledger, "bandit")
	if o.Mapping.Reward != "" {
		p.log.kind = codec.Reward
	}
	return p, p.header()
}

func newLogParser(f *csvFile, o LogOptions) *logParser {
	if o.Range == (loop.Range{}) {
		o.Range = loop.Range{Min: 0, Max: 1}
	}
	files := o.files
	if files == nil {
		files = &rowFiles{}
	}
	p := &logParser{csvFile: f, o: o, actions: map[string]int32{}, ids: logs.NewRecent[int32](o.Dedup),
		log: &BanditLog{name: filepath.Base(f.file), kind: codec.Loss, scale: o.Range, files: files}}
	indices, numbers, times := column[int32]{of: files}, column[float64]{of: files}, column[int64]{of: files}
	p.kept = tableColumns{action: indices, value: numbers, props: numbers, decided: times, came: times,
		ids: texts{column[byte]{of: files}, times}, cells: column[cell]{of: files}, long: column[byte]{of: files}}
	return p
}

// rest reads all rows below the header.
func (p *logParser) rest() error {
	for {
		row, err := p.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = p.row(row)
		}
		if err != nil {
			if err := p.pass(err); err != nil {
				return err
			}
			continue
		}
		p.took()
	}
	if p.rows == 0 {
		return p.noRows()
	}
	p.ledger.Forgotten = p.ids.Forgot()
	p.finish()
	p.log.intake = p.intake(p.rows, len(p.log.actions))
	return p.log.files.err
}

// pass accounts for a row that cannot be read, or returns an error that ends the log.
func (p *logParser) pass(err error) error {
	class := logs.IsMalformed
	if p.again {
		class = logs.IsDuplicate
	}
	if err := p.leave(err, class); err != nil {
		return err
	}
	p.undo()
	return nil
}

// name returns the name of an action of the rows so far.
func (p *logParser) name(a int32) string {
	if int(a) < len(p.names) {
		return p.names[a]
	}
	return ""
}

// idKey returns an id as it is looked for.
func (p *logParser) idKey(id string) []byte {
	p.key = append(p.key[:0], id...)
	return p.key
}

// took accounts for the row last read.
func (p *logParser) took() {
	p.rows++
	p.known = len(p.names)
	if p.id >= 0 {
		p.ids.Put(0, p.idKey(p.kept.ids.at(p.rows-1)), int32(p.line(p.id)))
	}
	rec := logs.Record{Time: noTime}
	if p.time >= 0 {
		rec.Time = p.kept.decided.s[p.rows-1]
	}
	if p.value >= 0 && !math.IsNaN(p.kept.value.s[p.rows-1]) {
		rec.Outcome = p.log.kind
	}
	p.ledger.Took(&rec)
}

// undo forgets what of a row was kept before it turned out to be wrong.
func (p *logParser) undo() {
	for _, name := range p.names[p.known:] {
		delete(p.actions, name)
	}
	p.names = p.names[:p.known]
	p.cut(p.rows)
}

// cut keeps the first n rows.
func (p *logParser) cut(n int) {
	k := &p.kept
	k.action.cut(n)
	k.value.cut(n)
	k.props.cut(n)
	k.decided.cut(n)
	k.came.cut(n)
	k.ids.cut(n)
	k.cells.cut(n * len(p.log.columns))
}
