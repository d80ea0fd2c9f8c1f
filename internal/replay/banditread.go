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
	return &logParser{csvFile: f, o: o, log: &BanditLog{name: filepath.Base(f.file), kind: codec.Loss, scale: o.Range}, actions: map[string]int32{}, ids: map[string]int{}}
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
	p.finish()
	p.log.intake = p.intake(p.rows, len(p.log.actions))
	return nil
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

// took accounts for the row last read.
func (p *logParser) took() {
	p.rows++
	p.known = len(p.names)
	rec := logs.Record{Time: noTime}
	if p.time >= 0 {
		rec.Time = p.log.decided[p.rows-1]
	}
	if p.value >= 0 && !math.IsNaN(p.log.value[p.rows-1]) {
		rec.Outcome = p.log.kind
	}
	p.ledger.Took(&rec)
}

// undo forgets what of a row was kept before it turned out to be wrong.
func (p *logParser) undo() {
	b, n := p.log, p.rows
	if len(b.ids) > n {
		delete(p.ids, b.ids[n])
	}
	for _, name := range p.names[p.known:] {
		delete(p.actions, name)
	}
	p.names = p.names[:p.known]
	b.ids, b.action, b.props = b.ids[:min(n, len(b.ids))], b.action[:min(n, len(b.action))], b.props[:min(n, len(b.props))]
	b.value, b.decided, b.came = b.value[:min(n, len(b.value))], b.decided[:min(n, len(b.decided))], b.came[:min(n, len(b.came))]
	b.cells = b.cells[:n*len(b.columns)]
}
