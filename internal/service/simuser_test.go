package service

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/vmihailenco/msgpack/v5"

	"hindsight/internal/check"
	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// users write contexts and outcomes, read decisions, and ask.
type users struct {
	s       *sim
	rng     *rand.Rand
	serial  int
	past    [][]byte // contexts written or asked
	pastIDs []string // their ids, "" if they have none
	seen    []codec.Decision
	readers []stream.Reader
	asked   []*request
	stored  []string   // outcome ids whose outcomes are acknowledged
	quiet   bool       // no more guesses and mistakes
	greed   *rand.Rand // of those who use ids that are minted for others; nil: nobody does
	others  *rand.Rand // of those who decide themselves and tell; nil: nobody does
	units   *rand.Rand // of those who say whom a context is about; nil: nobody does
	pages   *rand.Rand // of those who ask for several slots; nil: nobody does
	filled  []check.Reply
}

// request is a request for a decision.
type request struct {
	id      string
	data    []byte
	headers []stream.Header
	replies []string
	failed  bool
}

// append writes as a user: again, until it is known to be stored.
func (u *users) append(topic string, p int, r *stream.Record) {
	for {
		stored := false
		w, err := u.s.log.Writer(u.s.ctx, topic, p, func(_ uint64, _ int64, err error) { stored = err == nil })
		if err != nil {
			u.s.fatal("%v", err)
			return
		}
		w.Append(u.s.ctx, r)
		w.Close()
		if stored {
			return
		}
	}
}

var actionNames = []string{"a", "b", "c", "d"}

// context makes the bytes of a context, and its id.
func (u *users) context(id string) []byte {
	r := u.rng
	c := codec.Context{ID: id}
	for _, name := range []string{"x", "y"} {
		if r.IntN(3) > 0 {
			c.Features = append(c.Features, codec.Feature{Name: name, Kind: codec.Number,
				Value: float64(r.IntN(3)) / 2})
		}
	}
	if r.IntN(4) == 0 {
		c.Features = append(c.Features, codec.Feature{Name: "t", Kind: codec.Text, Text: string(rune('p' + r.IntN(3)))})
	}
	for i := range 1 + r.IntN(len(actionNames)) {
		c.Actions = append(c.Actions, codec.Action{Name: actionNames[i]})
	}
	if u.others != nil && !u.quiet && u.others.IntN(3) == 0 && (id != "" || u.others.IntN(8) == 0) {
		c.Assigned = u.assigned(len(c.Actions))
	}
	u.ofUnit(&c)
	switch r.IntN(10) {
	case 0, 1, 2:
		return codec.AppendContext(nil, &c)
	case 3:
		c.ID = ""
		if id != "" { // a CloudEvent, whose id is the round's
			return fmt.Appendf(nil, `{"specversion":"1.0","type":"t","source":"s","id":%q,"data":%s}`, id,
				codec.AppendContextJSON(nil, &c))
		}
	}
	return codec.AppendContextJSON(nil, &c)
}

// assigned says what another system decided among the first k actions, sometimes one that is not among them.
func (u *users) assigned(k int) codec.Assigned {
	r := u.others
	a := codec.Assigned{Action: actionNames[r.IntN(k)], By: "router"}
	switch r.IntN(8) {
	case 0, 1, 2:
		a.Propensity = float64(1+r.IntN(10)) / 10
	case 3, 4, 5:
		left := 1.0
		for _, name := range actionNames[:k-1] {
			p := left * r.Float64()
			left -= p
			a.Law = append(a.Law, codec.Share{Name: name, P: p})
		}
		a.Law = append(a.Law, codec.Share{Name: actionNames[k-1], P: left})
	case 6:
		a.Action = actionNames[len(actionNames)-1]
	}
	return a
}

var badContexts = []string{"", "{", "garbage", `{"actions":[]}`, `{"actions":["a","a"]}`,
	`{"features":{"x":[1]},"actions":["a"]}`,
	`{"id":"no-actions"}`, `{"id":"` + strings.Repeat("x", 300) + `","actions":["a"]}`, "\x81\xa2id",
	`{"features":[1e999],"actions":["a"]}`}

// own is the id that a user gives: where some are greedy, often none, and as often one that
// will soon be minted for such a context.
func (u *users) own(id string) string {
	if u.greed == nil || u.quiet {
		return id
	}
	p := u.greed.IntN(u.s.o.partitions)
	d := u.s.deciderOf(p)
	switch u.greed.IntN(4) {
	case 0:
		return ""
	case 1:
		_, end, _ := u.s.log.Bounds(u.s.ctx, u.s.topics.Contexts, p)
		return fmt.Sprintf("%d-%d", p, end+u.greed.Int64N(6))
	case 2:
		if d != nil {
			return fmt.Sprintf("r-%d-%d", p, d.d.heart.Next()+u.greed.Int64N(4))
		}
	}
	return id
}

// writeContext appends one context.
func (u *users) writeContext() {
	r := u.rng
	var h []stream.Header
	var data []byte
	id := ""
	switch k := r.IntN(20); {
	case k == 0 && !u.quiet:
		data = []byte(badContexts[r.IntN(len(badContexts))])
	case k == 1 && len(u.past) > 0 && !u.quiet: // again, the same or with other content
		i := r.IntN(len(u.past))
		id, data = u.pastIDs[i], u.past[i]
		if r.IntN(2) == 0 {
			data = u.context(id)
		}
	case k == 2:
		u.serial++
		id = fmt.Sprintf("ce%d", u.serial)
		h = []stream.Header{{Key: "ce_specversion", Value: "1.0"}, {Key: "ce_id", Value: id}}
		data = u.context("")
	case k <= 5:
		data = u.context("")
	default:
		u.serial++
		id = u.own(fmt.Sprintf("c%d", u.serial))
		data = u.context(id)
		if u.pages != nil && u.pages.IntN(10) == 0 {
			data = u.page(id) // no topic takes slots
		}
		u.past, u.pastIDs = append(u.past, data), append(u.pastIDs, id)
	}
	p := u.placeOf(id, data)
	if u.rng.IntN(20) == 0 {
		p = u.rng.IntN(u.s.o.partitions)
	}
	u.append(u.s.topics.Contexts, p, &stream.Record{Key: []byte(id), Value: data, Headers: h})
}

// ask sends a request for a decision, a new one or a repeat.
func (u *users) ask() {
	r := u.rng
	var q *request
	switch k := r.IntN(10); {
	case k < 2 && len(u.asked) > 0: // again
		old := u.asked[r.IntN(len(u.asked))]
		q = &request{id: old.id, data: old.data, headers: old.headers}
		if r.IntN(4) == 0 && old.id != "" {
			q.data = u.context(old.id)
		}
	case k == 2:
		q = &request{data: u.context("")}
	case k == 3 && len(u.past) > 0: // what was written to contexts
		i := r.IntN(len(u.past))
		q = &request{id: u.pastIDs[i], data: u.past[i]}
	case k == 4:
		q = &request{data: []byte(badContexts[r.IntN(len(badContexts))])}
	default:
		u.serial++
		q = &request{id: u.own(fmt.Sprintf("q%d", u.serial))}
		q.data = u.context(q.id)
		if u.pages != nil && u.pages.IntN(3) == 0 {
			q.data = u.page(q.id)
		}
	}
	u.asked = append(u.asked, q)
	p := u.s.partitionOf(q.id)
	if minted, ok := loop.MintedBy(q.id); ok { // as the front does
		p = minted
	}
	p = u.placeOfUnit(p, q.data)
	d := u.s.deciderOf(p)
	if d == nil {
		return // nobody answers
	}
	d.d.Request(stream.Message{Data: q.data, Headers: q.headers,
		Respond: func(data []byte, headers ...stream.Header) error {
			if len(headers) > 0 {
				q.failed = true
				if q.id == "" && headers[len(headers)-1].Value == "409" {
					u.s.fatal("a request without an id was refused as a repeat: %s", data)
				}
			} else {
				q.replies = append(q.replies, string(data))
			}
			if len(headers) == 0 && bytes.Contains(q.data, []byte("slots")) {
				u.fill(data)
			}
			if len(q.replies) > 1 {
				u.s.fatal("the request %q was answered twice", q.id)
			}
			return nil
		}})
}

// replies returns the decisions that users were told of.
func (u *users) replies() (out []check.Reply) {
	for _, q := range u.asked {
		if bytes.Contains(q.data, []byte("slots")) {
			continue
		}
		for _, r := range q.replies {
			out = append(out, check.Reply{ID: q.id, Data: []byte(r)})
		}
	}
	return append(out, u.filled...)
}

// page makes the bytes of a context with slots, more of them than actions at times.
func (u *users) page(id string) []byte {
	r := u.pages
	c := codec.Context{ID: id, Features: []codec.Feature{{Name: "x", Kind: codec.Number, Value: float64(r.IntN(3))}}}
	for _, name := range actionNames {
		c.Actions = append(c.Actions, codec.Action{Name: name})
	}
	for i := range 1 + r.IntN(5) {
		c.Slots = append(c.Slots, codec.Slot{Name: fmt.Sprint(i)})
	}
	if r.IntN(2) == 0 {
		return codec.AppendContextJSON(nil, &c)
	}
	return codec.AppendContext(nil, &c)
}

// fill takes a reply to a context with slots: none has an action of another.
func (u *users) fill(data []byte) {
	var taken []string
	add := func(raw []byte) {
		var d codec.Round
		if err := codec.ParseRound(&d, raw); err != nil || slices.Contains(taken, d.Action) {
			u.s.fatal("the slots %v, then %s: %v", taken, raw, err)
		}
		taken = append(taken, d.Action)
		u.filled = append(u.filled, check.Reply{ID: strings.Clone(d.ID), Data: raw})
		u.s.counted["slots"]++
	}
	if codec.IsMap(data) {
		var reply struct {
			Slots map[string]msgpack.RawMessage `msgpack:"slots"`
		}
		if err := msgpack.Unmarshal(data, &reply); err != nil {
			u.s.fatal("%v: %q", err, data)
		}
		for _, name := range slices.Sorted(maps.Keys(reply.Slots)) {
			add(reply.Slots[name])
		}
		return
	}
	var reply struct{ Slots map[string]json.RawMessage }
	if err := json.Unmarshal(data, &reply); err != nil {
		u.s.fatal("%v: %q", err, data)
	}
	for _, name := range slices.Sorted(maps.Keys(reply.Slots)) {
		add(reply.Slots[name])
	}
}

// look reads new decisions.
func (u *users) look() {
	for p := range u.s.o.partitions {
		for {
			_, end, _ := u.s.log.Bounds(u.s.ctx, u.s.topics.Decisions, p)
			if u.readers[p].Position() >= end {
				break
			}
			batch, err := u.readers[p].Next(u.s.ctx, nil)
			if err != nil {
				u.s.fatal("%v", err)
				return
			}
			for _, r := range batch {
				var d codec.Decision
				if r.Type == "" && codec.ParseDecision(&d, append([]byte(nil), r.Value...)) == nil {
					u.seen = append(u.seen, d)
					if d.Mode == codec.External {
						u.s.counted[[]string{"assigned", "assigned without the rest", "assigned without a " +
							"propensity"}[d.Unknown]]++
					}
					if d.First.N > 0 {
						u.s.counted["repeats"]++
					}
					if d.Mode == codec.Shadow && !u.s.o.modes {
						u.s.counted["held back"]++
					}
					if strings.Count(strings.TrimPrefix(d.ID, "r-"), "-") == 2 {
						u.s.counted["minted anew"]++
					}
				}
			}
		}
	}
}

// writeOutcome appends an outcome of a decision, mostly of one of the last.
func (u *users) writeOutcome() {
	r := u.rng
	u.look()
	if len(u.seen) == 0 {
		return
	}
	back := min(len(u.seen), 1+int(r.ExpFloat64()*float64(u.s.o.delay)))
	d := &u.seen[len(u.seen)-back]
	o := u.outcome(d)
	u.creditUnit(&o, d)
	data := codec.AppendOutcomeJSON(nil, &o)
	switch r.IntN(6) {
	case 0:
		data = codec.AppendOutcome(nil, &o)
	case 1:
		data = fmt.Appendf(nil, `{"specversion":"1.0","type":"t","source":"s","id":"e%d","data":%s}`, u.serial, data)
	}
	if r.IntN(40) == 0 {
		data = [][]byte{[]byte("{"), nil, []byte(`{"id":"c1"}`), []byte(`{"id":"c1","loss":"x"}`)}[r.IntN(4)]
	}
	p := u.s.partitionOf(o.ID)
	if r.IntN(10) == 0 {
		p = r.IntN(u.s.o.partitions)
	}
	if u.s.o.coarse && r.IntN(3) == 0 { // the same and another one, anywhere
		u.append(u.s.topics.Outcomes, r.IntN(u.s.o.partitions), &stream.Record{Key: []byte(o.ID), Value: data})
		o.Value, o.Kind, o.Values = float64(r.IntN(5))/4, codec.Loss, nil
		data, p = codec.AppendOutcomeJSON(nil, &o), r.IntN(u.s.o.partitions)
	}
	if u.s.outcomes != nil && r.IntN(4) == 0 && r.IntN(3) > 0 {
		u.report(o.OutcomeID, data)
		return
	}
	for range 1 + r.IntN(8)/7 {
		u.append(u.s.topics.Outcomes, p, &stream.Record{Key: []byte(o.ID), Value: data})
	}
}

// outcome says what a decision was worth, or something that is of no use.
func (u *users) outcome(d *codec.Decision) codec.Outcome {
	r := u.rng
	u.serial++
	o := codec.Outcome{ID: d.ID, Kind: codec.Loss, Value: float64(r.IntN(5)) / 4, OutcomeID: fmt.Sprintf("o%d",
		u.serial)}
	if r.IntN(3) == 0 {
		o.Action = d.Actions[d.Action]
	}
	if r.IntN(4) == 0 {
		o.Kind = codec.Reward
	}
	if u.s.o.rules.Named != nil && r.IntN(20) > 0 {
		u.named(&o)
	}
	switch k := r.IntN(30); {
	case k == 0:
		o.Kind, o.Value, o.Values = codec.Withdrawn, 0, nil
	case k == 1 && o.Kind != codec.Named:
		o.Value = 2
	case k == 2:
		o.Action = "another"
	case k == 3:
		o.ID = fmt.Sprintf("nobody%d", u.serial)
	case k == 4:
		o.Kind, o.Value, o.Values = codec.Activated, 0, nil
	case k == 5 && u.s.o.guesses:
		o.ID = fmt.Sprintf("c%d", u.serial+1+r.IntN(4))
	case k < 12 && u.s.o.guesses && u.s.o.coarse && len(u.pastIDs) > 0: // perhaps not decided yet
		o.ID, o.Action = u.pastIDs[len(u.pastIDs)-1-r.IntN(min(4, len(u.pastIDs)))], ""
	}
	return o
}

// report sends an outcome by request.
func (u *users) report(id string, data []byte) {
	u.s.outcomes.s.Store(stream.Message{Data: data, Respond: func(_ []byte, headers ...stream.Header) error {
		if len(headers) == 0 {
			u.stored = append(u.stored, id)
		}
		return nil
	}})
}

// settle gives every decision that was seen an outcome, so that nothing waits.
func (u *users) settle() {
	u.look()
	for i := range u.seen {
		d := &u.seen[i]
		o := codec.Outcome{ID: d.ID, Kind: codec.Loss, Value: .5}
		if u.s.o.rules.Named != nil { // a round waits for its window where the last outcome counts
			o.Kind, o.Value = codec.Withdrawn, 0
		}
		u.append(u.s.topics.Outcomes, u.s.partitionOf(d.ID), &stream.Record{Value: codec.AppendOutcomeJSON(nil, &o)})
	}
	u.seen = nil
}

func (s *sim) partitionOf(id string) int {
	if id == "" {
		return s.rng.IntN(s.o.partitions)
	}
	return loop.PartitionOf([]byte(id), s.o.partitions)
}

func newUsers(s *sim) *users {
	u := &users{s: s, rng: s.rng}
	if s.seed%4 == 2 {
		u.greed = rand.New(rand.NewPCG(uint64(s.seed), 4)) // not of rng, as whim
	}
	if s.seed%4 == 1 {
		u.pages = rand.New(rand.NewPCG(uint64(s.seed), 6))
	}
	if s.seed%4 == 3 {
		u.others = rand.New(rand.NewPCG(uint64(s.seed), 5))
	}
	if s.o.rules.Sticky > 0 {
		u.units = rand.New(rand.NewPCG(uint64(s.seed), 6))
	}
	for p := range s.o.partitions {
		r, err := s.log.Read(context.Background(), s.topics.Decisions, p, stream.Earliest)
		if err != nil {
			s.fatal("%v", err)
		}
		u.readers = append(u.readers, r)
	}
	return u
}
