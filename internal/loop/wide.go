package loop

import (
	"hindsight/pkg/codec"
	"hindsight/pkg/oracle"
)

// wide makes terms and statistics of the texts and vectors that a model declares, of the context and of
// actions. All that decide, learn or check read contexts through it.
type wide struct {
	rules    map[string]*wideRule
	texts    oracle.Texts
	terms    []oracle.Term
	features []oracle.Feature // of actions
	own      [][]oracle.Term  // terms by action
}

// wideRule is that of a feature with terms.
type wideRule struct {
	FeatureRule
	first      int32                         // its first place
	statistics [oracle.TextStatistics]string // their names
}

// newWide returns nil if no feature has terms.
func newWide(rules []FeatureRule) *wide {
	w := &wide{rules: map[string]*wideRule{}}
	first := 0
	for _, f := range rules {
		if f.places() == 0 {
			continue
		}
		r := &wideRule{FeatureRule: f, first: int32(first)}
		for i := range r.statistics {
			r.statistics[i] = StatisticName(f.Name, i)
		}
		w.rules[f.Name] = r
		first += f.places()
	}
	if first == 0 {
		return nil
	}
	return w
}

// StatisticName returns the name under which a learner sees the i-th statistic of a text.
func StatisticName(text string, i int) string { return text + "." + oracle.TextStatistic(i).Name }

// checkAction checks the features of an action that have terms.
func (w *wide) checkAction(a *codec.Action) error {
	for i := range a.Features {
		f := &a.Features[i]
		if rule, ok := w.rules[f.Name]; ok {
			if err := rule.check(f); err != nil {
				return codec.ContextError("actions."+a.Name+".features."+f.Name, err)
			}
		}
	}
	return nil
}

// begin forgets the terms of the context before.
func (w *wide) begin() { w.terms, w.features, w.own = w.terms[:0], w.features[:0], w.own[:0] }

// append appends what a learner sees of a feature to dst, and its terms to the others. A value that is not
// what the rule says, which contexts of earlier epochs may have, is left out.
func (w *wide) append(dst []oracle.Feature, f *codec.Feature) []oracle.Feature {
	rule := w.rules[f.Name]
	switch {
	case rule.check(f) != nil:
	case rule.Kind == VectorFeature:
		w.terms = oracle.AppendVector(w.terms, rule.first, f.Len(), f.At)
	default:
		var s [oracle.TextStatistics]float64
		w.terms = w.texts.Append(w.terms, &s, rule.first, f.Text)
		for i, v := range s {
			dst = append(dst, oracle.Feature{Name: rule.statistics[i], Kind: oracle.Number, Value: v})
		}
	}
	return dst
}

// action returns what a learner sees of the features of an action, and keeps its terms.
func (w *wide) action(fs []codec.Feature) []oracle.Feature {
	from, first := len(w.features), len(w.terms)
	for i := range fs {
		if w.rules[fs[i].Name] != nil {
			w.features = w.append(w.features, &fs[i])
		} else {
			w.features = append(w.features, asOracle(fs[i : i+1])[0])
		}
	}
	w.own = append(w.own, w.terms[first:])
	return w.features[from:]
}
