package oracletest

import (
	"math"
	"slices"
	"unsafe"

	"hindsight/pkg/oracle"
)

// clobberable is a copy of an input whose strings lie in memory that can be
// overwritten, as the strings of a parsed record do.
type clobberable struct {
	input *oracle.Input
	bytes [][]byte
}

func clobbered(x *oracle.Input) *clobberable {
	c := &clobberable{}
	features := func(xs []oracle.Feature) (out []oracle.Feature) {
		for _, f := range xs {
			f.Name, f.Text = c.copy(f.Name), c.copy(f.Text)
			out = append(out, f)
		}
		return out
	}
	c.input = &oracle.Input{Features: features(x.Features), Vector: append([]float64(nil), x.Vector...)}
	c.input.Terms = slices.Clone(x.Terms)
	for _, own := range x.ActionTerms {
		c.input.ActionTerms = append(c.input.ActionTerms, slices.Clone(own))
	}
	for _, a := range x.Actions {
		c.input.Actions = append(c.input.Actions, oracle.Action{Name: c.copy(a.Name), Features: features(a.Features)})
	}
	return c
}

func (c *clobberable) copy(s string) string {
	if s == "" {
		return ""
	}
	b := []byte(s)
	c.bytes = append(c.bytes, b)
	return unsafe.String(&b[0], len(b))
}

func (c *clobberable) clobber() {
	for _, b := range c.bytes {
		for i := range b {
			b[i] = '#'
		}
	}
	for i := range c.input.Vector {
		c.input.Vector[i] = math.NaN()
	}
	clear(c.input.Features)
	clear(c.input.Terms)
	for _, own := range c.input.ActionTerms {
		clear(own)
	}
	clear(c.input.Actions)
}
