package replay

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"hindsight/internal/bounded"
	"hindsight/internal/logs"
	"hindsight/internal/loop"
	"hindsight/pkg/codec"
)

// Open Bandit data (Saito et al., 2020, arXiv:2008.07146): a CSV file of impressions,
// beside it one of the items that are the actions.
const (
	obdItems     = "item_context.csv"
	obdAction    = "item_id"
	obdReward    = "click"
	obdTime      = "timestamp"
	obdPosition  = "position"
	obdUsers     = "user_feature_"
	obdAffinity  = "user-item_affinity_"
	obdItemParts = "item_feature_"
)

// obdPropensity is what the propensity is called: in the files, and in the paper.
var obdPropensity = []string{"propensity_score", "action_prob"}

// IsOpenBandit reports whether columns are those of an Open Bandit file.
func IsOpenBandit(columns []string) bool {
	has := func(name string) bool { return slices.Contains(columns, name) }
	return has(obdAction) && has(obdReward) && slices.ContainsFunc(obdPropensity, has)
}

// FindOpenBandit returns the files of Open Bandit data: path is its file of impressions
// or a folder that holds one CSV file but for the items'. items is "" if there is none.
func FindOpenBandit(path string) (rows, items string, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", "", fmt.Errorf("open bandit data: %w", err)
	}
	rows = path
	if info.IsDir() {
		if rows, err = onlyLog(path); err != nil {
			return "", "", err
		}
	}
	items = filepath.Join(filepath.Dir(rows), obdItems)
	if _, err := os.Stat(items); errors.Is(err, os.ErrNotExist) {
		return rows, "", nil
	} else if err != nil {
		return "", "", fmt.Errorf("open bandit data: %w", err)
	}
	return rows, items, nil
}

// onlyLog returns the one CSV file of a folder that is not the items'.
func onlyLog(folder string) (string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return "", fmt.Errorf("open bandit data: %w", err)
	}
	var found []string
	for _, e := range entries {
		if !e.IsDir() && strings.EqualFold(filepath.Ext(e.Name()), ".csv") && e.Name() != obdItems {
			found = append(found, e.Name())
		}
	}
	switch len(found) {
	case 1:
		return filepath.Join(folder, found[0]), nil
	case 0:
		return "", fmt.Errorf("open bandit data: %s holds no CSV file beside %s", folder, obdItems)
	}
	return "", fmt.Errorf("open bandit data: %s holds %s: name one of them", folder, strings.Join(found, ", "))
}

// SniffOpenBandit reports whether path is surely Open Bandit data: a file with its
// columns, or a folder with one such file.
func SniffOpenBandit(path string) bool {
	rows, _, err := FindOpenBandit(path)
	if err != nil {
		return false
	}
	t, err := logs.OpenTables(rows, nil)
	if err != nil {
		return false
	}
	defer t.Close()
	_, head, err := t.Peek()
	return err == nil && SniffOpenBanditHead(head)
}

// SniffOpenBanditHead does so for the first bytes of a file.
func SniffOpenBanditHead(head []byte) bool {
	header, err := newCSVFile("", bytes.NewReader(head)).row()
	return err == nil && IsOpenBandit(header)
}

// OpenOpenBandit reads Open Bandit data from a file or a folder. Of the options the
// range of the rewards and the ledger count.
func OpenOpenBandit(path string, o LogOptions) (*BanditLog, error) {
	t, features, err := OpenBanditTables(path)
	if err != nil {
		return nil, err
	}
	return OpenBanditOfTables(t, features, o)
}

// OpenBanditTables opens Open Bandit data, a file or a folder, with the features of its
// items, nil where they are not known.
func OpenBanditTables(path string) (t *logs.Tables, items [][]codec.Feature, err error) {
	rows, file, err := FindOpenBandit(path)
	if err != nil {
		return nil, nil, err
	}
	if file != "" {
		f, err := bounded.Open(file, bounded.Any)
		if err != nil {
			return nil, nil, fmt.Errorf("open bandit items: %w", err)
		}
		defer f.Close()
		if items, err = ReadItems(file, f); err != nil {
			return nil, nil, err
		}
	}
	if t, err = logs.OpenTables(rows, nil); err != nil {
		return nil, nil, fmt.Errorf("open bandit data: %w", err)
	}
	return t, items, nil
}

// OpenBanditOfTables reads Open Bandit data from tables, and closes them; see
// [ReadOpenBandit].
func OpenBanditOfTables(t *logs.Tables, items [][]codec.Feature, o LogOptions) (*BanditLog, error) {
	defer t.Close()
	f, err := openTables(t)
	if err != nil {
		return nil, err
	}
	return readOpenBandit(f, items, o)
}

// ReadOpenBandit reads a file of impressions row by row; items are the features of each
// item, nil where they are not known: then there are as many items as columns of
// affinities, or without those as the largest number says. Features of a round are the
// position (a category), the user's features and affinities. Propensities are those of
// the item at its position, as the file has them. Times that go back stand still.
// Errors are [*CSVError] but for those of r.
func ReadOpenBandit(file string, r io.Reader, items [][]codec.Feature, scale loop.Range) (*BanditLog, error) {
	return readOpenBandit(newCSVFile(file, r), items, LogOptions{Range: scale})
}

func readOpenBandit(f *csvFile, items [][]codec.Feature, o LogOptions) (*BanditLog, error) {
	p, err := openBanditHeader(f, items, o)
	if err != nil {
		return nil, err
	}
	if err := p.rest(); err != nil {
		return nil, err
	}
	return p.log, nil
}

// openBanditHeader reads the header of Open Bandit data.
func openBanditHeader(f *csvFile, items [][]codec.Feature, o LogOptions) (*logParser, error) {
	o.numbered, o.backward = true, true
	p := newLogParser(f, o)
	f.keepAccount(o.Ledger, "obd")
	p.log.kind, p.log.items = codec.Reward, items
	columns, err := p.head()
	if errors.Is(err, io.EOF) {
		return nil, p.errorf(1, "", "the file is empty; its first line names the columns")
	}
	if err != nil {
		return nil, err
	}
	if !IsOpenBandit(columns) {
		return nil, p.errorf(p.line(0), "", "not Open Bandit data: the columns %s, %s and %s must be there; there are %s", obdAction, obdReward, strings.Join(obdPropensity, " or "), strings.Join(columns, ", "))
	}
	n := len(items)
	if p.o.Mapping, n = obdMapping(columns, n); n > 0 {
		p.o.Actions = names(n)
	}
	return p, p.columns(columns)
}

// obdMapping names the columns of an Open Bandit file, and returns the number of items,
// which it takes from the affinities if n is 0; 0: not known.
func obdMapping(columns []string, n int) (Mapping, int) {
	m := Mapping{Action: obdAction, Reward: obdReward}
	affinities := 0
	for _, c := range columns {
		switch {
		case slices.Contains(obdPropensity, c):
			m.Propensity = c
		case c == obdTime:
			m.Time = c
		case c == obdPosition || strings.HasPrefix(c, obdUsers):
			m.Features = append(m.Features, c+":text")
		case strings.HasPrefix(c, obdAffinity):
			m.Features = append(m.Features, c+":number")
			affinities++
		}
	}
	if n == 0 {
		n = affinities
	}
	return m, n
}

// names are those of n items.
func names(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = strconv.Itoa(i)
	}
	return out
}

// itemNames are those of all items up to the largest that occurs.
func itemNames(occur []string) []string {
	n := 0
	for _, name := range occur {
		i, _ := strconv.Atoi(name) // isItem said that it is one
		n = max(n, i+1)
	}
	return names(n)
}

// isItem reports whether a name is that of one of n items; n = 0: of any.
func isItem(name string, n int) bool {
	i, err := strconv.Atoi(name)
	return err == nil && i >= 0 && strconv.Itoa(i) == name && i < codec.MaxActions && (n == 0 || i < n)
}

func itemHint(name string, n int) string {
	if n == 0 {
		return fmt.Sprintf("%q is not an item: expected a whole number from 0 to %d", name, codec.MaxActions-1)
	}
	return fmt.Sprintf("%q is not an item: there are %d, numbered 0 to %d", name, n, n-1)
}

// ReadItems reads the features of the items, which must be numbered 0, 1, … without a
// gap, in any order of rows. Errors are [*CSVError] but for those of r.
func ReadItems(file string, r io.Reader) ([][]codec.Feature, error) {
	o := LogOptions{Mapping: Mapping{Action: obdAction, ID: obdAction, FeaturePrefix: obdItemParts}, numbered: true}
	p := newLogParser(newCSVFile(file, r), o)
	p.keepAccount(nil, "items")
	if err := p.header(); err != nil {
		return nil, err
	}
	if err := p.rest(); err != nil {
		return nil, err
	}
	log := p.log
	items := make([][]codec.Feature, len(log.actions))
	var c codec.Context
	for t := range log.Len() {
		c.Features = []codec.Feature{}
		log.Context(&c, t)
		items[log.action[t]] = c.Features
	}
	if a := slices.IndexFunc(items, func(f []codec.Feature) bool { return f == nil }); a >= 0 {
		return nil, p.errorf(1, obdAction, "there are %d items, but the item %d is missing", log.Len(), a)
	}
	return items, nil
}
