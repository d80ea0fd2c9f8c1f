package logs

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"hindsight/internal/scan"
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

// itemMapping names the columns of the items.
var itemMapping = Mapping{Action: obdAction, FeaturePrefix: obdItemParts}

// obdPropensity is what the propensity is called: in the files, and in the paper.
var obdPropensity = []string{"propensity_score", "action_prob"}

// isOpenBandit reports whether columns are those of an Open Bandit file.
func isOpenBandit(columns []string) bool {
	has := func(name string) bool { return slices.Contains(columns, name) }
	return has(obdAction) && has(obdReward) && slices.ContainsFunc(obdPropensity, has)
}

// findOpenBandit returns the files of Open Bandit data: path is its file of impressions
// or a folder that holds one CSV file but for the items'. items is "" if there is none.
func findOpenBandit(path string) (rows, items string, err error) {
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

// isOpenBanditLog reports whether path is surely Open Bandit data: a file with its
// columns, or a folder with one such file.
func isOpenBanditLog(path string) bool {
	path, _, err := findOpenBandit(path)
	if err != nil {
		return false
	}
	in, err := openInput(path, nil)
	if err != nil {
		return false
	}
	defer in.close()
	head, err := in.head()
	return err == nil && isOpenBandit(columnsOf(head))
}

// columnsOf returns the columns of a file in CSV by its first bytes, nil if it is none.
func columnsOf(head []byte) []string {
	header, err := scan.NewCSV("", bytes.NewReader(head)).Row()
	if err != nil {
		return nil
	}
	return header
}

// openBandit reads the header of impressions. Without a file of items there are as many items as columns
// of affinities, or without those as the largest number says. Features of a round are the position (a
// category), the user's features and affinities. Propensities are those of the item at its position, as
// the file has them. Times that go back stand still.
func (t *table) openBandit(c *scan.CSV) error {
	if !isOpenBandit(t.header) {
		return c.Errorf(c.Line(0), "", "not Open Bandit data: the columns %s, %s and %s must be there; there are %s",
			obdAction, obdReward, strings.Join(obdPropensity, " or "), strings.Join(t.header, ", "))
	}
	n := len(t.Items)
	if t.m, n = obdMapping(t.header, n); n > 0 {
		t.Actions = ItemNames(n)
	}
	for a, features := range t.Items {
		t.items = append(t.items, codec.Action{Name: strconv.Itoa(a), Features: features})
	}
	return t.columns(c)
}

// columnsOfItems reads the header of items.
func (t *table) columnsOfItems(c *scan.CSV) error {
	t.m = itemMapping
	return t.columns(c)
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

// ItemNames are those of n items.
func ItemNames(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = strconv.Itoa(i)
	}
	return out
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

// readItems reads the features of the items, which must be numbered 0, 1, … without a gap, in any order of rows.
func readItems(file string) ([][]codec.Feature, error) {
	r, err := Open(file, Options{Format: itemRows, Typed: true, Strict: true})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	lines, items := map[int]int64{}, map[int][]codec.Feature{}
	err = r.Each(func(rec *Record) error {
		if !isItem(rec.Action, 0) {
			return &scan.LineError{File: file, Line: rec.Line, Name: obdAction, Msg: itemHint(rec.Action, 0)}
		}
		a, _ := strconv.Atoi(rec.Action)
		if before, again := lines[a]; again {
			return &scan.LineError{File: file, Line: rec.Line, Name: obdAction,
				Msg: fmt.Sprintf("the id %q is that of line %d, too", rec.Action, before)}
		}
		lines[a], items[a] = rec.Line, cloneFeatures(rec.Features)
		return nil
	})
	if err != nil {
		return nil, err
	}
	out := make([][]codec.Feature, len(items))
	for a := range out {
		if _, ok := items[a]; !ok {
			return nil, &scan.LineError{File: file, Line: 1, Name: obdAction,
				Msg: fmt.Sprintf("there are %d items, but the item %d is missing", len(items), a)}
		}
		out[a] = items[a]
	}
	if len(out) == 0 {
		return nil, scan.NoRows(file)
	}
	return out, nil
}
