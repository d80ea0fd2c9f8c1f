package service

import (
	"fmt"
	"math/rand/v2"

	"hindsight/internal/loop"
	"hindsight/pkg/codec"
)

// sticks gives some simulations a model whose draws hold for their units. It draws from numbers of its own.
func (o *simOptions) sticks(seed int64) {
	if seed%7 != 6 {
		return
	}
	rng := rand.New(rand.NewPCG(uint64(seed), 0x571c))
	o.rules.Early, o.rules.Sticky = false, 1+rng.Int64N(2000)*millisecond
}

// ofUnit says whom a context is about, most of the time.
func (u *users) ofUnit(c *codec.Context) {
	if u.units != nil && u.units.IntN(5) > 0 {
		c.Unit = fmt.Sprint("unit", u.units.IntN(12))
		c.Actions = c.Actions[:min(len(c.Actions), 2)] // draws hold for one list of them
	}
}

// placeOf returns where a context is written: in the partition of its unit, else of its id.
func (u *users) placeOf(id string, data []byte) int { return u.placeOfUnit(u.s.partitionOf(id), data) }

func (u *users) placeOfUnit(p int, data []byte) int {
	var c codec.Context
	if u.units != nil && codec.ParseContext(&c, data) == nil && c.Unit != "" {
		return loop.PartitionOf([]byte(c.Unit), u.s.o.partitions)
	}
	return p
}

// creditUnit has an outcome name the unit of a decision now and then.
func (u *users) creditUnit(o *codec.Outcome, d *codec.Decision) {
	if u.units != nil && d.Unit != "" && o.ID == d.ID && u.units.IntN(3) == 0 {
		o.ID, o.Unit = "", d.Unit
	}
}
