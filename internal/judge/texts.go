package judge

import (
	"hindsight/internal/dataset"
	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/oracle"
)

// texts makes of features what the reward model sees of them: of a text of which the words count its statistics, since
// as a category it would be another column in every row. The words themselves narrowed intervals by less than 1 % on
// 15,000 prompts.
type texts struct {
	log   *dataset.Table
	makes oracle.Texts
	terms []oracle.Term // scratch
}

func (x *texts) append(dst []oracle.Feature, from []codec.Feature) []oracle.Feature {
	for i := range from {
		f := &from[i]
		switch {
		case f.Kind == codec.Vector:
		case f.Kind != codec.Text || !x.log.Words(f.Name):
			dst = append(dst, oracle.Feature{Name: f.Name, Kind: oracle.FeatureKind(f.Kind), Value: f.Value,
				Text: f.Text})
		default:
			var s [oracle.TextStatistics]float64
			x.terms = x.makes.Append(x.terms[:0], &s, 0, f.Text)
			for k, v := range s {
				dst = append(dst, oracle.Feature{Name: loop.StatisticName(f.Name, k), Kind: oracle.Number, Value: v})
			}
		}
	}
	return dst
}
