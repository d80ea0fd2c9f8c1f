package replay

import "hindsight/pkg/codec"

// labelledOf returns the labelled CSV beneath env, which may be in another row order, cut
// off or twisted, and the rows of its rounds, nil if round t is row t; b is nil if env is
// something else. Contexts of env are those of the rows.
func labelledOf(env Environment) (b *BanditLog, rows []int32) {
	for {
		switch e := env.(type) {
		case *BanditLog:
			if !e.labelled {
				return nil, nil
			}
			return e, rows
		case *head:
			env = e.Environment
		case *permuted:
			env = e.Environment
		case *noisy:
			env = e.Environment
		case *ordered:
			if rows != nil {
				return nil, nil
			}
			env, rows = e.Environment, e.rows
		default:
			return nil, nil
		}
	}
}

// again is features into what it returned for another row, or nil.
func (b *BanditLog) again(dst []codec.Feature, row int) []codec.Feature {
	k := len(b.columns)
	if len(dst) != k || b.texts {
		return b.features(dst[:0], row)
	}
	for i, v := range b.cells[row*k : (row+1)*k] { // there are all columns, and all are numbers
		if v == absent {
			return b.features(dst[:0], row)
		}
		dst[i].Value = v.number()
	}
	return dst
}

// fits reports whether all rounds of a labelled CSV surely fit into records: names, texts,
// actions and room for what is written with each.
func (b *BanditLog) fits() bool {
	const room = 64
	size := 1 << 14
	for i := range b.columns {
		text := 0
		for _, v := range b.columns[i].values {
			text = max(text, len(v))
		}
		size += len(b.columns[i].name) + text + room
	}
	for _, label := range b.actions {
		size += 3*len(label) + room
	}
	return size <= codec.MaxRecordBytes
}
