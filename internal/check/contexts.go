package check

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"slices"

	"hindsight/pkg/codec"
)

// checkContexts checks that every context was either decided or rejected, and that
// what passes a rejected one was written after its reject.
func (c *checker) checkContexts() {
	if c.o.LostTails && !c.o.OneClock {
		return
	}
	for p := range c.n {
		var through int64
		passed := map[int64]int64{} // offset → order of the first record of decisions that passes it
		k, lost := 0, c.lostContexts(p)
		for i := range c.decisions[p] {
			r := &c.decisions[p][i]
			through = max(through, min(contextsThrough(r), lost[i]))
			for ; k < len(c.contexts[p]) && c.contexts[p][k].Offset < through; k++ {
				passed[c.contexts[p][k].Offset] = r.order
			}
		}
		for i := range c.contexts[p] {
			r := &c.contexts[p][i]
			if r.Type == "" {
				c.r.Contexts++
				c.checkContext(p, r, passed)
			}
		}
	}
}

func contextsThrough(r *record) int64 {
	switch r.Type {
	case "":
		var d codec.Decision
		if codec.ParseDecision(&d, r.Value) == nil {
			return d.ContextsThrough
		}
	case codec.TypeMark:
		if m, err := codec.ParseDecisionMark(r.Value); err == nil {
			return m.ContextsThrough
		}
	}
	return 0
}

func (c *checker) checkContext(p int, r *record, passed map[int64]int64) {
	where := fmt.Sprintf("contexts[%d]@%d", p, r.Offset)
	d, rej := c.source[p][r.Offset], c.refused[place{"contexts", p, r.Offset}]
	at, gone := passed[r.Offset]
	switch {
	case d != nil && rej != nil && c.o.LostTails && rej.Reason == codec.ReasonDuplicateID: // of a decision that is lost
	case d != nil && rej != nil:
		c.fail("%s was decided in round %d, and rejected: %s", where, d.N, rej.Reason)
	case d != nil:
	case rej == nil && gone:
		c.fail("%s was passed and neither decided nor rejected", where)
	case rej == nil:
		c.r.Unread++
		if !c.o.Unfinished {
			c.fail("%s was neither decided nor rejected", where)
		}
	case gone && rej.order > at:
		c.fail("%s was passed before its reject was stored", where)
	default:
		c.checkRefused(where, p, r, rej)
	}
}

// checkRefused checks the reason for which a context was rejected.
func (c *checker) checkRefused(where string, p int, r *record, rej *refusal) {
	var x codec.Context
	err := codec.ParseContext(&x, r.Value)
	if err == nil {
		err = x.Validate()
	}
	switch rej.Reason {
	case codec.ReasonMalformed:
		if err == nil && !c.refusable(&x) {
			c.fail("%s is good, and was rejected: %s", where, rej.Detail)
		}
	case codec.ReasonDuplicateID:
		id := x.ID
		if id == "" {
			id = headerID(r) // one that is minted repeats none
		}
		ok := slices.ContainsFunc(c.byID[id], func(d *round) bool {
			return d.Partition == p && d.Source != r.Offset && d.order <= rej.order
		})
		if err != nil || !ok && !c.o.LostTails {
			c.fail("%s was rejected as a repeat of %q, which was not decided before", where, id)
		}
	default:
		c.fail("%s was rejected for a reason that contexts do not have: %q", where, rej.Reason)
	}
}

// refusable reports whether some model refuses a context that the codec accepts.
func (c *checker) refusable(x *codec.Context) bool {
	for _, e := range c.order {
		r := e.rules
		if r == nil || len(x.Actions) == 0 && r.Actions == nil || r.MaxActions > 0 && len(x.Actions) > r.MaxActions {
			return true
		}
		for i := range x.Actions {
			if r.Actions != nil && !slices.Contains(r.Actions, x.Actions[i].Name) {
				return true
			}
		}
		if r.Sticky > 0 && (x.CheckUnit() != nil || x.Unit != "" && c.n > 1) { // it may belong to another partition
			return true
		}
		if len(x.Slots) > 0 { // of a topic
			return true
		}
		if x.Assigned.Action != "" && !assignable(x, r.Actions) {
			return true
		}
	}
	return false
}

// assignable reports whether a context that says what another system decided says it of its actions, or of the model's.
func assignable(x *codec.Context, names []string) bool {
	if len(x.Actions) > 0 {
		names = nil
	}
	for i := range x.Actions {
		names = append(names, x.Actions[i].Name)
	}
	a := &x.Assigned
	ok := x.ID != "" && slices.Contains(names, a.Action) && (len(names) > 1 || a.Propensity == 0 || a.Propensity == 1)
	for i := range a.Law {
		ok = ok && slices.Contains(names, a.Law[i].Name)
	}
	return ok
}

// checkSnapshots checks that snapshots after the same feedback are equal.
func (c *checker) checkSnapshots() {
	type partial struct {
		bytes []byte
		next  int
	}
	open := map[string]*partial{}
	sums := map[int64]string{}
	for i := range c.snapshots {
		r := &c.snapshots[i]
		where := fmt.Sprintf("snapshots@%d", r.Offset)
		s, err := codec.ParseSnapshot(r.Value)
		if err != nil {
			c.fail("%s: %v", where, err)
			continue
		}
		key := fmt.Sprintf("%d/%d/%s", s.Epoch, s.LearnedThrough, s.Nonce)
		p := open[key]
		if s.Part == 0 {
			p = &partial{}
			open[key] = p
		}
		if p == nil || p.next != s.Part {
			c.r.Partial++
			delete(open, key)
			continue
		}
		p.bytes = append(p.bytes, s.Bytes...)
		if p.next++; p.next < s.Parts {
			continue
		}
		delete(open, key)
		c.r.Snapshots++
		sum := fmt.Sprintf("%x", sha256.Sum256(p.bytes))
		if sum != s.SHA256 {
			c.fail("%s: the snapshot after feedback %d has SHA-256 %s, its record says %s", where, s.LearnedThrough,
				sum, s.SHA256)
		}
		if s.Era < c.lastEra { // it may be of feedback or an epoch that is lost
			continue
		}
		if was, ok := sums[s.LearnedThrough]; ok && was != sum {
			c.fail("%s: two snapshots after feedback %d differ", where, s.LearnedThrough)
		}
		sums[s.LearnedThrough] = sum
		if s.LearnedThrough > c.total {
			c.fail("%s: a snapshot after feedback %d, and the last is %d", where, s.LearnedThrough, c.total)
		}
		if c.epochs[s.Epoch] == nil {
			c.fail("%s: a snapshot of epoch %d, which was never announced", where, s.Epoch)
		}
	}
	for _, p := range open {
		c.r.Partial += p.next
	}
}

// checkReplies checks that every decision that somebody was told of is in the log as it was told.
func (c *checker) checkReplies() {
	told := map[string]bool{}
	for _, rounds := range c.rounds {
		for _, d := range rounds {
			for _, duplicate := range []bool{false, true} {
				told[string(codec.AppendDecisionJSON(nil, &d.Decision, "", duplicate))] = true
				told[string(codec.AppendDecisionReply(nil, &d.Decision, "", duplicate))] = true
			}
		}
	}
	for _, r := range c.o.Replies {
		if r.ID != "" && len(c.byID[r.ID]) == 0 {
			c.fail("the request %q was answered, and its decision is not in the log", r.ID)
		} else if !told[string(bytes.TrimSpace(r.Data))] && !told[string(r.Data)] {
			c.fail("the request %q was answered with a decision that is not in the log: %q", r.ID, r.Data)
		}
	}
}
