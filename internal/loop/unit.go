package loop

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"hindsight/pkg/codec"
	"hindsight/pkg/oracle"
)

// In a model with sticky units a unit gets one draw for a time: a later context of the unit has its law, its action and
// its mode, and its decision names the draw. It is a function of the log: of the context, its time, and the first draw
// of its unit. A draw holds for [Rules.Sticky], until decisions for units of its partition tell of a later log time,
// and for as long as its learner is at work, the mode that applies to the unit is the one it was drawn in, and the
// eligible actions are the same. Otherwise the unit is drawn anew.
//
// For the joiner a repeat is the draw under another id: outcomes of its id, or of the unit, are those of the draw while
// that waits. The round itself is closed at once, and teaches nothing.

// Units remembers the draws of units that may hold, of one partition. It follows from the decisions alone.
type Units struct {
	draws *table[unitDraw]
	order ring[unitPlace] // of the draws, in the order of their rounds
	names []string        // the actions of the last draw: most have the same
	clock int64           // the latest log time that a decision for a unit told
}

// unitDraw is the draw of a unit.
type unitDraw struct {
	n, time, epoch int64
	mode           codec.Mode
	action         int
	gamma          float64
	actions        []string
	law, would     []float64
}

type unitPlace struct {
	slot    int32
	n, time int64
}

// NewUnits remembers nothing. seed is of the hashes of units.
func NewUnits(seed uint64) *Units { return &Units{draws: newTable[unitDraw](seed)} }

// Remember takes the next decision of the partition.
func (u *Units) Remember(d *codec.Decision) {
	if d.Unit != "" {
		u.clock = max(u.clock, d.Time)
	}
	if d.Unit == "" || d.First.N > 0 || d.Mode == codec.External {
		return
	}
	if !equalTexts(u.names, d.Actions) {
		u.names = u.names[:0:0]
		for _, name := range d.Actions {
			u.names = append(u.names, strings.Clone(name))
		}
	}
	s, _ := u.draws.add(d.Unit, unitDraw{})
	x := u.draws.value(s)
	if x.n != d.N {
		u.order.push(unitPlace{s, d.N, d.Time})
	}
	*x = unitDraw{n: d.N, time: d.Time, epoch: d.Epoch, mode: d.Mode, action: d.Action, gamma: d.Gamma,
		actions: u.names, law: append(x.law[:0], d.Propensities...), would: append(x.would[:0], d.Would...)}
}

// forget drops draws that hold no longer, the oldest first.
func (u *Units) forget(sticky int64) {
	for u.order.len() > 0 {
		at := *u.order.at(0)
		if u.clock-at.time < sticky {
			return
		}
		u.order.pop()
		if u.draws.slots[at.slot].v.n == at.n {
			u.draws.del(at.slot)
		}
	}
}

// Last returns the round in which a unit was drawn last; 0: that is not remembered.
func (u *Units) Last(unit string) int64 {
	if s := u.draws.get(unit); s >= 0 {
		return u.draws.value(s).n
	}
	return 0
}

// checkUnit checks the unit of a valid context.
func (d *Decider) checkUnit(c *codec.Context) error {
	if d.replica.epoch.Rules.Sticky == 0 || c.Unit == "" || d.Partitions < 2 {
		return nil
	}
	unit := unsafe.Slice(unsafe.StringData(c.Unit), len(c.Unit))
	if p := PartitionOf(unit, d.Partitions); p != d.partition {
		return codec.ContextError("unit", fmt.Errorf("belongs to partition %d, and the context came to %d: write the "+
			"contexts of a unit under the unit as key", p, d.partition))
	}
	return nil
}

// At makes a decider that only judges contexts one of another partition.
func (d *Decider) At(partition int) *Decider {
	d.partition = partition
	return d
}

// unitOf returns the unit of the parsed context that its draw holds for, "" if draws do not hold.
func (d *Decider) unitOf() string {
	if d.replica.epoch.Rules.Sticky == 0 {
		return ""
	}
	return d.replica.reader.ctx.Unit
}

// sticks fills in a decision what the draw of its unit has, if that holds, and reports whether it does.
func (d *Decider) sticks(dst *codec.Decision, in *oracle.Input, now int64) bool {
	if dst.Unit == "" {
		return false
	}
	e, u := d.replica.epoch, d.Units
	now = max(now, u.clock)
	s := u.draws.get(dst.Unit)
	if s < 0 {
		return false
	}
	x := u.draws.value(s)
	if now-x.time >= e.Rules.Sticky || x.n >= d.next || x.epoch < cmp.Or(d.Since, e.since()) ||
		x.mode != d.mode(dst.Unit) || !sameNames(in.Actions, x.actions) {
		return false
	}
	dst.First = codec.RoundRef{Partition: d.partition, N: x.n}
	dst.Mode, dst.Would, dst.Prices, dst.Unknown = x.mode, append(dst.Would[:0], x.would...), dst.Prices[:0], 0
	dst.Action, dst.Gamma = x.action, x.gamma
	d.law = append(d.law[:0], x.law...)
	return true
}

// unitName returns the name under which the joiner knows the draw of a unit: no id has it. It is valid until the next.
func (j *Joiner) unitName(unit string) string {
	j.unit = append(append(j.unit[:0], 0), unit...)
	return unsafe.String(unsafe.SliceData(j.unit), len(j.unit))
}

// admitUnit ties a new round that waits to its unit: a draw is the unit's last, and a repeat has what is said of its
// draw.
func (j *Joiner) admitUnit(p *pending) {
	if p.d.Unit == "" || p.d.Mode == codec.External {
		return
	}
	name := j.unitName(p.d.Unit)
	if p.d.First.N == 0 {
		slot, _ := j.rounds.add(name, knownRound{})
		*j.rounds.value(slot) = knownRound{p: p}
		p.unit = slot + 1
		return
	}
	if s := j.rounds.get(name); s >= 0 && p.rules != nil {
		if first := j.rounds.value(s).p; first != nil && first.d.N == p.d.First.N {
			p.first = first
			first.repeats = append(first.repeats, p)
		}
	}
}

// leaveUnit unties a round that leaves. What is known of it is known of its unit.
func (j *Joiner) leaveUnit(p *pending, k knownRound) {
	for _, r := range p.repeats {
		r.first = nil
	}
	if p.first != nil { // a repeat may be closed before its draw
		p.first.repeats = slices.DeleteFunc(p.first.repeats, func(r *pending) bool { return r == p })
	}
	if s := p.unit - 1; s >= 0 && j.rounds.value(s).p == p {
		if p.over {
			j.rounds.del(s)
		} else {
			j.remember(s, k)
		}
	}
}
