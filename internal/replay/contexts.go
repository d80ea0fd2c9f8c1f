package replay

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"hindsight/internal/ope"
	"hindsight/pkg/codec"
)

// Limits of the search for contexts in which a learner does badly.
const (
	worstShown     = 10
	contextSample  = 1000 // rounds from which the ranges of numbers are chosen
	contextParts   = 4    // ranges of a number that has more values than that
	contextGroups  = 4096 // at most
	contextMin     = 30   // rounds of a group, at least
	contextMinPart = 200  // at least one in so many rounds
)

// WorstContexts says in which contexts a learner did worst: all rounds in which a feature
// has some value, or a number is in some range, against the other rounds.
type WorstContexts struct {
	// what is compared: "regret" of the actions played where the truth is known, else "loss"
	Of        string         `json:"of"`
	Mean      ope.Figure     `json:"mean"`       // over all rounds
	Groups    int            `json:"groups"`     // that were looked at
	MinRounds int64          `json:"min_rounds"` // groups with fewer are left out
	Small     int            `json:"small"`      // groups that were
	Untracked int64          `json:"untracked"`  // values of features for which there was no room
	Worst     []ContextGroup `json:"worst"`      // by the lower end of what they are above the other rounds
}

// ContextGroup is the rounds of one context.
type ContextGroup struct {
	Context string     `json:"context"`
	Rounds  int64      `json:"rounds"`
	Share   float64    `json:"share"` // of all rounds
	Mean    ope.Figure `json:"mean"`
	SE      ope.Figure `json:"se"`
	Above   ope.Figure `json:"above"`    // mean less that of the other rounds
	AboveSE ope.Figure `json:"above_se"` // standard error of the difference
	Part    ope.Figure `json:"part"`     // of all that is lost
}

// contextTable groups rounds by their contexts, in memory that has a limit.
type contextTable struct {
	sample    []contextRound // until ranges are chosen
	numbers   map[string]*numberRanges
	texts     map[[2]string]*ope.Weighted
	untracked int64
	all       ope.Weighted

	ctx      codec.Context // used again
	features []codec.Feature
	places   []string // names of the places of a vector
}

// contextRound is one round: its features, what it weighs and what was lost in it.
type contextRound struct {
	features     []codec.Feature
	weight, loss float64
}

// numberRanges are the ranges of a number: below the first cut, from each cut to the next.
type numberRanges struct {
	cuts  []float64
	exact bool // each cut is a value that stands for itself
	of    []ope.Weighted
}

func newContextTable() *contextTable {
	return &contextTable{numbers: map[string]*numberRanges{}, texts: map[[2]string]*ope.Weighted{}}
}

// add adds a round; features may be used again by the caller.
func (c *contextTable) add(features []codec.Feature, weight, loss float64) {
	if c.sample != nil || c.all.N == 0 {
		own := slices.Clone(features)
		for i := range own {
			own[i].Name, own[i].Text = strings.Clone(own[i].Name), strings.Clone(own[i].Text)
		}
		c.sample = append(c.sample, contextRound{own, weight, loss})
		if c.all.Add(weight, loss); len(c.sample) == contextSample {
			c.choose()
		}
		return
	}
	c.all.Add(weight, loss)
	c.count(features, weight, loss)
}

// choose chooses ranges by the sample and counts it.
func (c *contextTable) choose() {
	values := map[string][]float64{}
	for i := range c.sample {
		for _, f := range c.sample[i].features {
			if f.Kind == codec.Number {
				values[f.Name] = append(values[f.Name], f.Value)
			}
		}
	}
	for name, v := range values {
		c.numbers[name] = rangesOf(v)
	}
	for i := range c.sample {
		c.count(c.sample[i].features, c.sample[i].weight, c.sample[i].loss)
	}
	c.sample = nil
}

// rangesOf chooses ranges: each value its own if there are few, else quarters.
func rangesOf(values []float64) *numberRanges {
	slices.Sort(values)
	if distinct := slices.Compact(slices.Clone(values)); len(distinct) <= contextParts {
		return &numberRanges{cuts: distinct, exact: true, of: make([]ope.Weighted, len(distinct)+1)}
	}
	r := &numberRanges{}
	for i := 1; i < contextParts; i++ {
		r.cuts = append(r.cuts, values[i*len(values)/contextParts])
	}
	r.cuts = slices.Compact(r.cuts)
	r.of = make([]ope.Weighted, len(r.cuts)+1)
	return r
}

// at returns the range of a value.
func (r *numberRanges) at(x float64) *ope.Weighted {
	i, found := slices.BinarySearch(r.cuts, x)
	switch {
	case r.exact && !found:
		return &r.of[len(r.cuts)] // a value that the sample has not
	case found && !r.exact:
		i++
	}
	return &r.of[i]
}

func (c *contextTable) count(features []codec.Feature, weight, loss float64) {
	for i := range features {
		f := &features[i]
		if f.Kind == codec.Number {
			if r := c.numbers[f.Name]; r != nil {
				r.at(f.Value).Add(weight, loss)
			} else {
				c.untracked++
			}
			continue
		}
		key := [2]string{f.Name, f.Text}
		switch {
		case f.Kind == codec.Vector || len(f.Text) > codec.MaxTextBytes:
			c.untracked++
			continue
		case f.Kind != codec.Text:
			key[1] = strconv.FormatBool(f.Value != 0)
		}
		g := c.texts[key]
		if g == nil {
			if len(c.texts) == contextGroups {
				c.untracked++
				continue
			}
			g = &ope.Weighted{}
			c.texts[[2]string{strings.Clone(key[0]), strings.Clone(key[1])}] = g
		}
		g.Add(weight, loss)
	}
}

// report returns the worst groups; nil if no round was added, or there is no table.
func (c *contextTable) report(of string) *WorstContexts {
	if c == nil || c.all.N == 0 {
		return nil
	}
	if c.sample != nil {
		c.choose()
	}
	r := &WorstContexts{Of: of, Mean: seven(c.all.Mean()), MinRounds: max(contextMin, c.all.N/contextMinPart),
		Untracked: c.untracked, Worst: []ContextGroup{}}
	c.each(func(name string, g *ope.Weighted) {
		switch {
		case g.N == 0 || g.N == c.all.N: // no group, or all
		case g.N < r.MinRounds:
			r.Small++
		default:
			r.Groups++
			if x := c.group(name, g); float64(x.Above) > 0 {
				r.Worst = append(r.Worst, x)
			}
		}
	})
	slices.SortFunc(r.Worst, func(a, b ContextGroup) int {
		return cmp.Or(cmp.Compare(b.Above-2*b.AboveSE, a.Above-2*a.AboveSE), cmp.Compare(a.Context, b.Context))
	})
	r.Worst = r.Worst[:min(len(r.Worst), worstShown)]
	return r
}

// each calls f with every group that there may be.
func (c *contextTable) each(f func(name string, g *ope.Weighted)) {
	for key, g := range c.texts {
		f(key[0]+" = "+key[1], g)
	}
	for name, r := range c.numbers {
		for i := range r.of {
			f(r.name(name, i), &r.of[i])
		}
	}
}

func (r *numberRanges) name(of string, i int) string {
	text := func(x float64) string { return strconv.FormatFloat(x, 'g', 4, 64) }
	last := len(r.cuts)
	switch {
	case r.exact && i == last:
		return of + " = any other"
	case r.exact:
		return of + " = " + text(r.cuts[i])
	case i == 0:
		return fmt.Sprintf("%s < %s", of, text(r.cuts[0]))
	case i == last:
		return fmt.Sprintf("%s ≥ %s", of, text(r.cuts[last-1]))
	}
	return fmt.Sprintf("%s ≤ %s < %s", text(r.cuts[i-1]), of, text(r.cuts[i]))
}

// group compares a group with the other rounds.
func (c *contextTable) group(name string, g *ope.Weighted) ContextGroup {
	rest := c.all
	rest.Merge(g, -1)
	return ContextGroup{Context: name, Rounds: g.N, Share: float64(seven(float64(g.N) / float64(c.all.N))),
		Mean: seven(g.Mean()), SE: seven(g.SE()),
		Above: seven(g.Mean() - rest.Mean()), AboveSE: seven(math.Hypot(g.SE(), rest.SE())),
		Part: seven(g.WL / c.all.WL)}
}

// addContext adds a round by its context, of which it takes a vector as features x0, x1, ….
func (c *contextTable) addContext(ctx *codec.Context, weight, loss float64) {
	c.features = append(c.features[:0], ctx.Features...)
	for i, x := range ctx.Vector {
		if i == len(c.places) {
			c.places = append(c.places, "x"+strconv.Itoa(i))
		}
		c.features = append(c.features, codec.Feature{Name: c.places[i], Kind: codec.Number, Value: x})
	}
	c.add(c.features, weight, loss)
}

// lost returns what round t lost, in which action a was played: its regret where the truth
// is known, else its loss, with its weight; ok is false where neither is known.
func (m *Match) lost(t, a int) (weight, loss float64, ok bool) {
	switch log, row := m.rounds.Log, m.rounds.Row(t); {
	case m.rounds.Known:
		m.rounds.Truth(m.truth, t)
		return 1, m.truth[a] - slices.Min(m.truth), true
	case !log.Played(row, a) || math.IsNaN(m.rounds.Loss(t, a)):
		return 0, 0, false
	default:
		return log.Weight(row), m.rounds.Loss(t, a), true
	}
}

// look adds a round to the table of contexts.
func (m *Match) look(t, a int) {
	if weight, loss, ok := m.lost(t, a); ok {
		m.rounds.Context(&m.contexts.ctx, t)
		m.contexts.addContext(&m.contexts.ctx, weight, loss)
	}
}

// WorstContexts returns what the table of contexts says; nil if there is none.
func (m *Match) WorstContexts() *WorstContexts {
	of := "loss"
	if m.rounds.Known {
		of = "regret"
	}
	return m.contexts.report(of)
}
