package fit

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"hindsight/pkg/oracle"
)

// treeOptions bound a tree.
type treeOptions struct {
	depth int     // splits on the way to a leaf, at most
	leaf  int     // rows of a leaf, at least
	try   float64 // share of the columns that each split looks at
}

// prior is how many rows of its parent's mean a leaf begins with, an action.
const prior = 1

// tree fits one regression tree for all actions at once, greedily (CART; Breiman et al.
// 1984): a split is the one that takes most from Σ_a Σ_t v_t·(y_ta − mean_a)², v the
// importance weights. A leaf's losses are drawn towards its parent's.
func (s *sample) tree(o treeOptions, rng *rand.Rand) oracle.Tree {
	g := &grower{sample: s, o: o, rng: rng, k: s.data.outputs()}
	var rows []int
	for t, c := range s.count {
		if c > 0 {
			rows = append(rows, t)
		}
	}
	above := make([]float64, g.k)
	for a := range above {
		above[a] = .5
	}
	g.grow(rows, above, o.depth)
	return g.tree
}

type grower struct {
	*sample
	o    treeOptions
	rng  *rand.Rand
	k    int
	tree oracle.Tree
}

// sums are Σv and Σv·y of each action over some rows.
type sums struct{ v, y []float64 }

func newSums(k int) sums { return sums{make([]float64, k), make([]float64, k)} }

// add counts a row, sign +1, or takes it back, −1.
func (g *grower) add(s sums, t int, sign float64) {
	v := sign * g.count[t] * g.data.Weight[t]
	for a, y := range g.data.Loss[t] {
		if !math.IsNaN(y) {
			s.v[a] += v
			s.y[a] += v * y
		}
	}
}

// fit is Σ_a (Σv·y)²/Σv: what means take from the sum of squares.
func (s sums) fit() float64 {
	f := 0.0
	for a, v := range s.v {
		if v > 1e-9 {
			f += s.y[a] * s.y[a] / v
		}
	}
	return f
}

// grow adds the node of some rows and what is below it, and returns its place: a split, or −1−i for leaf i.
func (g *grower) grow(rows []int, above []float64, depth int) int {
	all := newSums(g.k)
	for _, t := range rows {
		g.add(all, t, 1)
	}
	mean := make([]float64, g.k)
	for a := range mean {
		mean[a] = (all.y[a] + prior*above[a]) / (all.v[a] + prior)
	}
	column, at := -1, 0.0
	if depth > 0 && len(rows) >= 2*g.o.leaf {
		column, at = g.best(rows, all)
	}
	if column < 0 {
		for a, v := range mean {
			mean[a] = math.Round(v*1e6) / 1e6 // a class file need not be longer
		}
		g.tree.Leaves = append(g.tree.Leaves, mean)
		return -len(g.tree.Leaves)
	}
	var low, high []int
	for _, t := range rows {
		if g.data.X[t][column] <= at {
			low = append(low, t)
		} else {
			high = append(high, t)
		}
	}
	i := len(g.tree.Splits)
	g.tree.Splits = append(g.tree.Splits, oracle.Split{Column: column, At: at})
	l := g.grow(low, mean, depth-1)
	h := g.grow(high, mean, depth-1)
	g.tree.Splits[i].Low, g.tree.Splits[i].High = l, h
	return i
}

// best returns the column and the value to split at, −1 if no split is better than none.
func (g *grower) best(rows []int, all sums) (column int, at float64) {
	column = -1
	most := all.fit() + 1e-9
	tries := max(1, int(math.Round(g.o.try*float64(len(g.columns)))))
	for _, i := range g.rng.Perm(len(g.columns))[:min(tries, len(g.columns))] {
		j := g.columns[i]
		slices.SortFunc(rows, func(a, b int) int {
			return cmp.Or(cmp.Compare(g.data.X[a][j], g.data.X[b][j]), cmp.Compare(a, b))
		})
		low, high := newSums(g.k), sums{slices.Clone(all.v), slices.Clone(all.y)}
		for n, t := range rows[:len(rows)-1] {
			g.add(low, t, 1)
			g.add(high, t, -1)
			x, next := g.data.X[t][j], g.data.X[rows[n+1]][j]
			if x == next || n+1 < g.o.leaf || len(rows)-n-1 < g.o.leaf {
				continue
			}
			if f := low.fit() + high.fit(); f > most {
				most, column, at = f, j, x+(next-x)/2
				if at == next { // neighbours among floats
					at = x
				}
			}
		}
	}
	return column, at
}
