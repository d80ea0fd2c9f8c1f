package verify

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"hindsight/internal/model"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/mem"
)

// recordForm reads and writes the records of one type in one topic.
type recordForm struct {
	parse  func(b []byte) (any, error) // a pointer to a struct
	append func(x any) []byte
}

func form[T any](parse func(b []byte) (T, error), write func(dst []byte, x *T) []byte) recordForm {
	return recordForm{func(b []byte) (any, error) { x, err := parse(b); return &x, err },
		func(x any) []byte { return write(nil, x.(*T)) }}
}

// into makes a function that parses into memory one that returns a value.
func into[T any](parse func(dst *T, b []byte) error) func(b []byte) (T, error) {
	return func(b []byte) (x T, err error) { err = parse(&x, b); return x, err }
}

// recordForms are those of all records that the service writes, by the topic without its name, and type.
var recordForms = map[string]recordForm{
	"decisions":      form(into(codec.ParseDecision), codec.AppendDecision),
	"decisions mark": form(codec.ParseDecisionMark, codec.AppendDecisionMark),
	"feedback":       form(into(codec.ParseFeedback), codec.AppendFeedback),
	"feedback cut":   form(into(codec.ParseCut), codec.AppendCut),
	"feedback mark":  form(codec.ParseFeedbackMark, codec.AppendFeedbackMark),
	"feedback epoch": form(codec.ParseEpoch, codec.AppendEpoch),
	"snapshots":      form(codec.ParseSnapshot, codec.AppendSnapshot),
	"rejects":        form(codec.ParseReject, codec.AppendReject),
}

// fieldChange changes one field of a record.
type fieldChange struct {
	path string // names of fields with dots between; [] is the last element of a list, + and - are one more and less
	zero bool   // the field says nothing before it is changed
	set  func() // once
}

// fieldChanges lists the changes of a value.
func fieldChanges(v reflect.Value, path string) (all []fieldChange) {
	add := func(path string, set func()) { all = append(all, fieldChange{path, v.IsZero(), set}) }
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			name := strings.TrimPrefix(path+"."+v.Type().Field(i).Name, ".")
			all = append(all, fieldChanges(v.Field(i), name)...)
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			add(path, func() { v.SetBytes(append(bytes.Clone(v.Bytes()), 0)) })
			break
		}
		add(path+"+", func() { v.Set(reflect.AppendSlice(v, reflect.MakeSlice(v.Type(), 1, 1))) })
		if n := v.Len(); n > 0 {
			add(path+"-", func() { v.SetLen(n - 1) })
			all = append(all, fieldChanges(v.Index(n-1), path+"[]")...)
		}
	case reflect.Int, reflect.Int64:
		add(path, func() { v.SetInt(v.Int() + 1) })
	case reflect.Uint8, reflect.Uint32:
		add(path, func() { v.SetUint(v.Uint() + 1) })
	case reflect.Float64:
		add(path, func() { v.SetFloat(v.Float()/2 + .125) })
	case reflect.String:
		add(path, func() { v.SetString(v.String() + "x") })
	case reflect.Bool:
		add(path, func() { v.SetBool(!v.Bool()) })
	default:
		panic(path + " is a " + v.Kind().String())
	}
	return all
}

// grow gives each list one element that says nothing.
func grow(v reflect.Value) {
	switch {
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			grow(v.Field(i))
		}
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() != reflect.Uint8:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		grow(v.Index(0))
	}
}

// written lists the fields of a kind of record that are in its bytes.
func (f *recordForm) written() (paths []string) {
	full := func() reflect.Value {
		x, _ := f.parse(nil)
		v := reflect.New(reflect.TypeOf(x).Elem()).Elem()
		grow(v)
		if m, ok := v.Addr().Interface().(*codec.FeedbackMark); ok {
			m.Limits.Heart = 1 // as those of this build, not of the forms before cuts
		}
		return v
	}
	was, _ := f.bytes(full())
	for k := range fieldChanges(full(), "") {
		x := full()
		c := fieldChanges(x, "")[k]
		c.set()
		if b, ok := f.bytes(x); ok && !bytes.Equal(was, b) {
			paths = append(paths, c.path)
		}
	}
	return paths
}

// bytes writes a record, and reports whether that can be done.
func (f *recordForm) bytes(x reflect.Value) (b []byte, ok bool) {
	defer func() { ok = recover() == nil }()
	return f.append(x.Addr().Interface()), true
}

// unchecked are fields that verify does not check, and why.
var unchecked = map[string]string{
	"feedback mark: Limits.Pending":  "a limit that nothing comes near has no effect; TestReplayPlants has one",
	"feedback mark: Limits.Bytes":    "likewise",
	"feedback mark: Limits.Dedup":    "likewise",
	"feedback mark: LostTails[].Was": "what had been taken may be lost, too",
	"snapshots: FeedbackFrom":        "a hint, from where it is searched",
	"snapshots: Nonce":               "any is as good",
	"snapshots: Part":                "of a snapshot of which not all parts are there a part is passed over",
	"snapshots: Parts":               "likewise",
}

// otherNames are what changes of fields are named by that are not named by the field.
var otherNames = map[string]string{
	"decisions mark":            "decisions", // what it says of itself alone is under the sum of the cut that took it
	"decisions: Actions":        "propensities",
	"decisions: Unknown":        "propensities",
	"decisions: Epoch":          "learned_through",
	"decisions: Era":            "learned_through",
	"decisions: ID":             "key",
	"decisions: LearnedThrough": "learned propensities would gamma decisions", // of a feedback more
	"decisions: Source":         "decision",                                   // the context has none any more
	"feedback: Actions":         "propensities",
	"feedback: Unknown":         "propensities",
	"feedback: Action":          "propensities", // the order of the names
	"feedback cut: Decisions":   "time",         // nothing told it
	"feedback cut: Outcomes":    "time",
	"feedback mark: Era":        "eras",
	"feedback mark: LostTails":  "eras lost outcomes decisions",
	"feedback epoch: SHA256":    "files",
	"feedback epoch: Model":     "files",
	"feedback epoch: Mode":      "files", // the mode and its cause are in the sum of the model
	"feedback epoch: Cause":     "files bytes",
	"snapshots: Epoch":          "bytes",
	"snapshots: LearnedThrough": "bytes",
	"snapshots: Era":            "learned_through",
	"snapshots: SHA256":         "bytes",
	"rejects: Partition":        "offset",
	"rejects: Offset":           "time",
	"rejects: Cut":              "offset",
	"rejects: ID":               "key",
}

// ends are the errors of what cannot be verified behind a change.
var ends = map[string]string{
	"feedback epoch: SeedHash":     errSeed.Error(),
	"feedback epoch: Files-":       "the file is not there",
	"feedback epoch: Files[].Name": "the file is not there",
	"feedback mark: Limits.Heart":  codec.ErrVersion.Error(),
}

// TestVerifyFields changes each field of each record that the service writes, with valid bytes: verify finds it and
// names the field. A field that is new has to be checked, or stand in a list with the reason.
func TestVerifyFields(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine: nothing for the race detector")
	}
	p := fieldPlants{t, map[string]bool{}, map[string]bool{}}
	const named = "outcomes: {cost: {max: 2, window: 4 rounds}, quality: {window: 9 rounds}}\nreward: quality - " +
		"0.2*cost\nbudget: {spend: {of: cost, mean_at_most: 0.5, about: {a: 0.4, b: 1}}}"
	const early = "window: 9 rounds\nmissing: impute\nearly: {after: median}"
	for _, rules := range []string{named, early} {
		text := func(version, rest string) string {
			return "name: m\nversion: " + version + "\nactions: [a, b, c]\nbaseline: {fixed: b}\nguard: " +
				"{worse_by: 0.9, alpha: 0.1}\ncandidates: [baseline, uniform]\nhold_out: 0.2\n" + rules + "\n" + rest
		}
		s := newShop(t, mem.New(mem.Options{}), text("1", ""))
		s.named, s.others, s.rng = rules == named, true, rand.New(rand.NewPCG(5, 1))
		s.rounds(30)
		s.switchTo(codec.Shadow)
		s.rounds(20)
		src := s.source(text("2", "warm: keep\nmode: live"))
		_, err := s.j.Renew(s.ctx, src)
		s.no(err)
		s.jc.Source = src
		s.pump()
		s.rounds(30)
		s.end()
		p.plant(s.log.(*mem.Log), 1000)
		s.shut()
	}
	p.plant(liveWorld(t, 1, 3, 40).log, worldDedup)
	for _, seed := range []uint64{0, 6} { // eras, and tails that were lost
		w := newWorld(t, 1, seed)
		w.use(0)
		w.rounds(40)
		w.powerLoss()
		w.rounds(50)
		p.plant(w.log, worldDedup)
	}
	for kind, f := range recordForms {
		for _, path := range f.written() {
			if path = kind + ": " + path; !p.planted[path] && !p.refused[path] && unchecked[path] == "" {
				t.Error(path, "was not planted: no world here has it")
			}
		}
	}
	t.Log(len(p.planted), "fields")
}

type fieldPlants struct {
	*testing.T
	planted, refused map[string]bool // refused: the codec reads no such record
}

// plant changes each field that was not yet: where it says something, if it does so anywhere.
func (p *fieldPlants) plant(log *mem.Log, dedup int) {
	verify := func() (*Report, error) {
		return Run(p.Context(), Config{Log: log, Name: "m", Seed: worldSeed(), Build: model.Epoch, Dedup: dedup})
	}
	if r, err := verify(); err != nil || r.First != nil {
		p.Fatal(err, r.text())
	}
	for _, kind := range slices.Sorted(maps.Keys(recordForms)) {
		topic, typ, _ := strings.Cut(kind, " ")
		topic = "m." + topic
		var records []stream.Record
		put := func(other []stream.Record) {
			if err := log.Edit(topic, 0, func(was []stream.Record) []stream.Record {
				records = was
				return other
			}); err != nil {
				p.Fatal(err)
			}
		}
		put(nil)
		was := records
		for _, zero := range []bool{false, true} {
			for i := len(was) / 8; i < len(was); i++ {
				if was[i].Type != typ {
					continue
				}
				for _, c := range p.changed(was[i].Value, kind, zero) {
					changed := slices.Clone(was)
					changed[i].Value = c.value
					put(changed)
					r, err := verify()
					p.check(r, err, topic, was[i].Offset, &c)
				}
			}
		}
		put(was)
	}
}

// head returns the field of the record that a path begins with.
func head(path string) string { return path[:strings.IndexAny(path+".", ".[+-")] }

type changedRecord struct {
	kind, path, name string // of the field, and as it is called in the record
	value            []byte
}

// changed returns valid records that each differ from one in one field, and takes those fields for planted.
func (p *fieldPlants) changed(value []byte, kind string, zero bool) (all []changedRecord) {
	f := recordForms[kind]
	parsed := func() reflect.Value {
		x, err := f.parse(bytes.Clone(value))
		if err != nil {
			p.Fatal(err)
		}
		return reflect.ValueOf(x).Elem()
	}
	for k, c := range fieldChanges(parsed(), "") {
		path := kind + ": " + c.path
		if c.zero != zero || p.planted[path] || unchecked[path] != "" {
			continue
		}
		x := parsed()
		fieldChanges(x, "")[k].set()
		b, ok := f.bytes(x)
		if _, err := f.parse(b); !ok || err != nil {
			p.refused[path] = true
		} else if !bytes.Equal(b, value) {
			p.planted[path] = true
			top, _ := x.Type().FieldByName(head(c.path))
			all = append(all, changedRecord{kind, path, wireName(top), b})
		}
	}
	return all
}

// check reports an error unless a change was found, and named by the field.
func (p *fieldPlants) check(r *Report, err error, topic string, offset int64, c *changedRecord) {
	if err != nil {
		if why := ends[c.path]; why == "" || !strings.Contains(err.Error(), why) {
			p.Errorf("%s: %v", c.path, err)
		}
		return
	}
	d := r.First
	if d == nil {
		p.Errorf("%s@%d: %s: not found", topic, offset, c.path)
		return
	}
	field := head(c.path)
	name := " " + c.name + " " + otherNames[c.kind] + " " + otherNames[field] + " "
	got := head(d.Field)
	elsewhere := otherNames[c.kind]+otherNames[field] == "" && (d.Topic != topic || d.Offset != offset)
	if elsewhere || !strings.Contains(name, " "+got+" ") {
		p.Errorf("%s@%d: %s: %+v", topic, offset, c.path, *d)
	}
}
