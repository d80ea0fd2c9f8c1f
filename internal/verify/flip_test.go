package verify

import (
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"hindsight/internal/envelope"
	"hindsight/internal/follow"
	"hindsight/internal/model"
	"hindsight/internal/testkit/daily"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// leaf is one value of a MessagePack record, or its key.
type leaf struct {
	path     string
	from, to int
}

// leaves lists all keys and values of a record. It is written for the forms that
// the codec writes.
func leaves(t testing.TB, b []byte) []leaf {
	w := walker{t: t, b: b}
	w.value("")
	if w.i != len(b) {
		t.Fatalf("walked %d of %d bytes", w.i, len(b))
	}
	return w.out
}

type walker struct {
	t   testing.TB
	b   []byte
	i   int
	out []leaf
}

// size returns the number of bytes of a scalar, or of entries of a map or list
// behind its head.
func (w *walker) size() (n int, entries int, isMap bool) {
	b := w.b[w.i:]
	switch c := b[0]; {
	case c < 0x80 || c >= 0xe0 || c == 0xc0 || c == 0xc2 || c == 0xc3:
		return 1, -1, false
	case c < 0x90:
		return 1, int(c & 15), true
	case c < 0xa0:
		return 1, int(c & 15), false
	case c < 0xc0:
		return 1 + int(c&31), -1, false
	case c == 0xc4 || c == 0xd9:
		return 2 + int(b[1]), -1, false
	case c == 0xc5 || c == 0xda:
		return 3 + int(binary.BigEndian.Uint16(b[1:])), -1, false
	case c == 0xc6:
		return 5 + int(binary.BigEndian.Uint32(b[1:])), -1, false
	case c == 0xcc || c == 0xd0:
		return 2, -1, false
	case c == 0xcd || c == 0xd1:
		return 3, -1, false
	case c == 0xca || c == 0xce || c == 0xd2:
		return 5, -1, false
	case c == 0xcb || c == 0xcf || c == 0xd3:
		return 9, -1, false
	case c == 0xdc:
		return 3, int(binary.BigEndian.Uint16(b[1:])), false
	case c == 0xde:
		return 3, int(binary.BigEndian.Uint16(b[1:])), true
	default:
		w.t.Fatalf("byte %#x", c)
	}
	return
}

func (w *walker) value(path string) {
	n, entries, isMap := w.size()
	w.out = append(w.out, leaf{path, w.i, w.i + n})
	w.i += n
	for k := range max(entries, 0) {
		name := fmt.Sprint(k)
		if isMap {
			n, _, _ := w.size()
			name = string(w.b[w.i+1 : w.i+n])
			w.out = append(w.out, leaf{path + "." + name + " (key)", w.i, w.i + n})
			w.i += n
		}
		w.value(path + "." + name)
	}
}

// flip is one bit of one record.
type flip struct {
	topic     string
	partition int
	offset    int64
	kind      string // of record
	path      string
	change    func(r *stream.Record)
}

func (w *world) edit(topic string, p int, offset int64, change func(r *stream.Record)) (restore func()) {
	var was []stream.Record
	w.no(w.log.Edit(topic, p, func(recs []stream.Record) []stream.Record {
		was = slices.Clone(recs)
		for i := range recs {
			if recs[i].Offset == offset {
				r := recs[i]
				r.Value, r.Key, r.Headers = slices.Clone(r.Value), slices.Clone(r.Key), slices.Clone(r.Headers)
				change(&r)
				recs[i] = r
			}
		}
		return recs
	}))
	return func() { w.no(w.log.Edit(topic, p, func([]stream.Record) []stream.Record { return was })) }
}

// records returns all records of a partition.
func (w *world) records(topic string, p int) (out []stream.Record) {
	w.no(w.log.Edit(topic, p, func(recs []stream.Record) []stream.Record {
		out = slices.Clone(recs)
		return recs
	}))
	return out
}

// recordKey is a context or an outcome.
type recordKey struct {
	outcomes  bool
	partition int
	offset    int64
}

// fateOf tells what became of each outcome and context that was rejected or decided.
type fateOf map[recordKey]string

// fatesOf also returns what became of each round, by its id.
func (w *world) fatesOf() (fateOf, map[string]string) {
	m, rounds := fateOf{}, map[string]string{}
	for p := range w.parts {
		for _, r := range w.records(w.ts.Decisions, p) {
			var d codec.Decision
			if r.Type == "" {
				w.no(codec.ParseDecision(&d, r.Value))
				m[recordKey{false, p, d.Source}] = "decided"
			}
		}
	}
	for _, r := range w.records(w.ts.Feedback, 0) {
		var f codec.Feedback
		if r.Type == "" {
			w.no(codec.ParseFeedback(&f, r.Value))
			if f.Reason != codec.ReasonDuplicateID {
				rounds[string([]byte(f.ID))] = fmt.Sprintf("counted in a round of epoch %d: %v %s", f.Epoch, f.Fate,
					f.Reason)
			}
			if f.OutcomeOffset >= 0 {
				m[recordKey{true, f.OutcomePartition, f.OutcomeOffset}] = fmt.Sprint("decides, epoch ", f.Epoch)
			}
		}
	}
	for _, r := range w.records(w.ts.Rejects, 0) {
		if r.Type != "" {
			continue
		}
		rej, err := codec.ParseReject(r.Value)
		w.no(err)
		if key := (recordKey{rej.Topic == outcomesTopic, rej.Partition, rej.Offset}); m[key] == "" {
			m[key] = "rejected: " + rej.Reason
		}
	}
	return m, rounds
}

// kindOf says of which kind a record is: one of each is damaged in each field.
func (w *world) kindOf(topic string, p int, r *stream.Record, fates fateOf, rounds map[string]string) string {
	if r.Type != "" {
		return topic + " " + r.Type
	}
	form := "msgpack"
	if codec.IsJSON(r.Value) {
		form = "json"
	}
	switch topic {
	case w.ts.Decisions:
		var d codec.Decision
		w.no(codec.ParseDecision(&d, r.Value))
		return fmt.Sprintf("%s epoch %d, by request %v", topic, d.Epoch, d.Source < 0)
	case w.ts.Feedback:
		var f codec.Feedback
		w.no(codec.ParseFeedback(&f, r.Value))
		return fmt.Sprintf("%s epoch %d %v %s", topic, f.Epoch, f.Fate, f.Reason)
	case w.ts.Contexts:
		return fmt.Sprint(topic, " ", form, " ", len(r.Headers), " ", fates[recordKey{false, p, r.Offset}])
	case w.ts.Outcomes:
		o := codec.Outcome{}
		codec.ParseOutcome(&o, r.Value)
		fate := fates[recordKey{true, p, r.Offset}]
		if fate == "" {
			fate = rounds[o.ID]
		}
		if o.Kind == codec.Loss && o.Value > 3 {
			form += " beyond the range"
		}
		return fmt.Sprint(topic, " ", form, " ", o.Kind, " ", fate)
	case w.ts.Rejects:
		rej, err := codec.ParseReject(r.Value)
		w.no(err)
		return fmt.Sprint(topic, " ", rej.Topic, " ", rej.Reason)
	}
	return topic
}

// invisible says why nothing can show a change, "" if something must.
//
// Contexts and outcomes are the users' own: Hindsight answers for what it made of
// them, and a change that could not have changed that shows nowhere. The log times
// of what only the service reads tell nothing: no window runs by them. Everything
// else is copied, recomputed or under a checksum.
func (f *flip) invisible() string {
	is := func(part string) bool { return strings.Contains(f.kind, part) }
	outcome, context := is(".outcomes"), is(".contexts")
	first := is("epoch 1") || is("epoch 3") || is("epoch 5") // the others aggregate
	counted := is("counted") || is("decides")
	switch {
	case f.path == "header "+envelope.ContentType || f.path == "header "+envelope.EventTime:
		return "the bytes say it, and nothing of ours reads the header"
	case f.path == "time" && !context && !is(".decisions epoch") && !outcome:
		return "no window runs by the log time of what only the service reads"
	case f.path == "key" && (outcome || context):
		return "records of users lie under any key"
	case f.path == ".contexts_through" && is("by request true"):
		return "a request may as well have been decided before the contexts rejected just before it"
	case !outcome || !counted:
		return ""
	case is("counted") && (is("withdrawn") || is("inactive")):
		return "what an outcome said of a round that was withdrawn after all is not kept"
	case f.path == "time" && (is("counted") || !first && !is("withdrawn")):
		return "an outcome was in time, that is all that its time tells unless it ended its round"
	case is("beyond the range") && is("epoch 4") && (f.path == ".loss" || strings.HasPrefix(f.path, "json")):
		return "that model clips: all values beyond the range are the same"
	case strings.Contains(f.path, "outcome_id"):
		return "an id that no other outcome of the round has may be any other, or none"
	case f.path == ".v (key)" || f.path == ".action (key)":
		return "a version and an action need not be said"
	}
	return ""
}

// flips lists the changes of one record.
func (w *world) flips(topic string, p int, r *stream.Record, kind string) (out []flip) {
	add := func(path string, change func(r *stream.Record)) {
		out = append(out, flip{topic, p, r.Offset, kind, path, change})
	}
	bit := func(path string, i int, b byte) {
		add(path, func(r *stream.Record) { r.Value[i] ^= b })
	}
	if r.Type == codec.TypeOpen || r.Type == "noise" {
		return nil // the log's own record, and what is none of ours
	}
	add("type", func(r *stream.Record) { r.Type = "x" + r.Type })
	add("time", func(r *stream.Record) { r.Time ^= 1 << 40 })
	add("key", func(r *stream.Record) { r.Key = append(r.Key, 'x') })
	for i, h := range r.Headers {
		add("header "+h.Key, func(r *stream.Record) {
			v := []byte(r.Headers[i].Value)
			v[len(v)-1] ^= 1
			r.Headers[i].Value = string(v)
		})
	}
	if codec.IsJSON(r.Value) {
		id, action := strings.Index(string(r.Value), `"outcome_id"`), strings.Index(string(r.Value), `"action"`)
		for i := 0; i < len(r.Value); i += every(3) {
			path := fmt.Sprint("json byte ", i)
			if id >= 0 && i >= id && i < len(r.Value)-1 {
				path = "json outcome_id"
			} else if action >= 0 && i >= action && i < action+len(`"action"`) {
				path = ".action (key)"
			}
			bit(path, i, 1<<(i%7))
		}
		return out
	}
	for _, l := range leaves(w, r.Value) {
		if strings.Contains(topic, "outcomes") && r.Value[l.from] == 0xcb { // its last bits may be lost in rounding
			bit(l.path, l.from+2, 1)
			continue
		}
		places := [...]int{l.to - 1, l.from, (l.from + l.to) / 2}
		for k := (l.from + l.to) % every(3); k < 3; k += every(3) {
			bit(l.path, places[k], 1<<((l.from+k)%7))
		}
	}
	return out
}

// every is n, or 1 for the long tests.
func every(n int) int {
	if os.Getenv("HINDSIGHT_LONG") != "" {
		return 1
	}
	return n
}

// One bit flipped in any field of a record of any kind is found.
func TestVerifyFlips(t *testing.T) {
	if testing.Short() {
		t.Skip("pure and long: the race detector has nothing to find here")
	}
	for parts := every(2); parts <= 2; parts++ { // the long test has one partition too
		t.Run(fmt.Sprint(parts, " partitions"), func(t *testing.T) { testFlips(t, codec.MessagePack, parts, 16) })
	}
	t.Run("JSON", func(t *testing.T) { testFlips(t, codec.JSON, 1, 120) })
}

func testFlips(t *testing.T, encoding codec.Encoding, parts, step int) {
	w := encodedWorld(t, encoding, parts, 1, 50)
	if r := w.verify(); r.ExitCode() != Identical {
		t.Fatal(r.text())
	}
	fates, rounds := w.fatesOf()
	kinds := map[string]bool{}
	var all []flip
	for _, topic := range []string{w.ts.Contexts, w.ts.Decisions, w.ts.Outcomes, w.ts.Feedback, w.ts.Snapshots,
		w.ts.Rejects} {
		n, err := w.log.Partitions(w.ctx, topic)
		w.no(err)
		for p := range n {
			for _, r := range w.records(topic, p) {
				if kind := w.kindOf(topic, p, &r, fates, rounds); !kinds[kind] {
					kinds[kind] = true
					all = append(all, w.flips(topic, p, &r, kind)...)
				}
			}
		}
	}
	found, excused := 0, map[string]int{}
	for i, f := range all {
		if !daily.Turn(t, i, step) {
			continue
		}
		restore := w.edit(f.topic, f.partition, f.offset, f.change)
		r, err := Run(w.ctx, Config{Log: w.log, Name: worldName, Seed: worldSeed(), Build: model.Epoch,
			Dedup: worldDedup})
		restore()
		switch {
		case follow.Newer(err) && strings.HasSuffix(f.path, ".v"):
			found++
		case err != nil:
			t.Errorf("%s[%d]@%d %s: %s: %v", f.topic, f.partition, f.offset, f.kind, f.path, err)
		case r.Differences > 0:
			found++
		case f.invisible() != "":
			excused[f.invisible()]++
		default:
			t.Errorf("%s[%d]@%d %s: %s went unnoticed", f.topic, f.partition, f.offset, f.kind, f.path)
		}
	}
	t.Logf("%d kinds of records, %d changes, one in %d tried, %d found, excused: %v", len(kinds), len(all), step,
		found, excused)
	for _, want := range []string{"observed", "imputed", "skipped", "withdrawn", "inactive", "overflow", "duplicate-id",
		"late", "orphan", "mismatch", "malformed"} {
		if !slices.ContainsFunc(sortedKeys(kinds), func(k string) bool { return strings.Contains(k, want) }) {
			t.Errorf("no record is of the kind %q: %q", want, sortedKeys(kinds))
		}
	}
}

func sortedKeys(m map[string]bool) (out []string) {
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
