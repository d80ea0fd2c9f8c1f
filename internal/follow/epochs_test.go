package follow

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"hindsight/internal/join"
	"hindsight/internal/loop"
	"hindsight/internal/model"
	"hindsight/pkg/codec"
	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/mem"
)

// build makes a learner of one regression an action, whatever the model says.
func build(rec *codec.Epoch, _ map[string][]byte) (loop.Epoch, error) {
	if string(rec.Model) == "bad" {
		return loop.Epoch{}, errors.New("bad model")
	}
	reg, err := oracle.NewLinear(oracle.LinearOptions{Beta: .5, Lambda: 1, MaxFeatures: 8})
	if err != nil {
		return loop.Epoch{}, err
	}
	return loop.Epoch{Number: rec.Epoch, Learner: learner.NewDAFA(reg, learner.Root{C: 20}),
			Rules: &loop.Rules{MaxActions: 10, Range: loop.Range{Max: 1}, Window: loop.Window{Rounds: 20},
				Mode: rec.Mode}},
		nil
}

// record is that of an epoch with files, by turns of name and content.
func record(n int64, files ...string) *Definition {
	d := &Definition{Rec: codec.Epoch{V: codec.Version, Epoch: n, Name: "m", Version: n, Partitions: 1,
		Model: []byte("model " + string(rune('0'+n)) + "\n")}, Files: map[string][]byte{}}
	for i := 0; i < len(files); i += 2 {
		b := []byte(files[i+1])
		d.Files[files[i]] = b
		d.Rec.Files = append(d.Rec.Files, codec.FileRef{Name: files[i], Size: int64(len(b)), SHA256: hexSum(b)})
	}
	d.Rec.SHA256 = hexSum(d.Rec.LoggedModel())
	return d
}

// read gives records to what reads a log.
func read(e *Epochs, records []stream.Record) (ep loop.Epoch, err error) {
	for _, r := range records {
		if r.Type == codec.TypeClass {
			err = e.AddClass(r.Value)
		} else {
			ep, err = e.AddEpoch(r.Value)
		}
		if err != nil {
			return ep, err
		}
	}
	return ep, nil
}

// TestEpochRecords: a model with large files is read back from its records, also when a sequence was cut off or
// begins again, and not when one of its records is missing or damaged.
func TestEpochRecords(t *testing.T) {
	large := strings.Repeat("x", 2*chunkBytes) + "y"
	d := record(3, "large", large, "exact", large[:chunkBytes], "empty", "")
	records := d.Records()
	if len(records) != 3+1+1+1 {
		t.Fatalf("%d records", len(records))
	}
	damaged := slices.Clone(records)
	c, err := codec.ParseClass(records[1].Value)
	must(t, err)
	c.Bytes[9] ^= 1
	damaged[1].Value = codec.AppendClass(nil, &c)
	for name, c := range map[string]struct {
		records []stream.Record
		ok      bool
	}{
		"whole":           {records, true},
		"begins again":    {append(slices.Clone(records[:2]), records...), true},
		"twice":           {append(slices.Clone(records[:5]), records...), true},
		"first missing":   {records[1:], false},
		"second missing":  {append(slices.Clone(records[:1]), records[2:]...), false},
		"last missing":    {append(slices.Clone(records[:2]), records[3:]...), false},
		"file missing":    {append(slices.Clone(records[:3]), records[4:]...), false},
		"damaged":         {damaged, false},
		"one chunk twice": {append(slices.Clone(records[:2]), records[1:]...), false},
	} {
		e := NewEpochs(build)
		ep, err := read(e, c.records)
		if !c.ok {
			if !errors.Is(err, codec.ErrCorrupt) || e.Last != nil || e.Rules(3) != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil || ep.Number != 3 || ep.Learner == nil || e.Last == nil || e.Rules(3) != e.Last.Rules {
			t.Errorf("%s: %+v, %v", name, ep, err)
			continue
		}
		if got := e.Last.Files; string(got["large"]) != large || len(got) != 3 || len(got["exact"]) != chunkBytes {
			t.Errorf("%s: files of %d bytes", name, len(got["large"]))
		}
		if again, err := read(e, records); err != nil || again.Learner != nil || again.Rules != e.Rules(3) {
			t.Errorf("%s: a repeat: %+v, %v", name, again, err)
		}
	}
	e := NewEpochs(build)
	if _, err := read(e, records); err != nil {
		t.Fatal(err)
	}
	if _, err := read(e, record(4, "empty", "", "exact", large[:chunkBytes]).Records()[2:]); !errors.Is(err,
		codec.ErrCorrupt) {
		t.Errorf("an epoch takes the files of the one before it: %v", err)
	}
	e = NewEpochs(build)
	bad := record(1)
	bad.Rec.Model = []byte("bad")
	bad.Rec.SHA256 = hexSum(bad.Rec.Model)
	if _, err := read(e, bad.Records()); err == nil || !strings.Contains(err.Error(), "epoch 1: bad model") {
		t.Error(err)
	}
	bad.Rec.SHA256 = ""
	if _, err := read(e, bad.Records()); !errors.Is(err, codec.ErrCorrupt) {
		t.Error(err)
	}
	if e.AddClass([]byte("x")) == nil {
		t.Error("a class record that is none")
	}
}

// TestLastEpoch: the last epoch is that of the highest number, and one that is not to be is forgotten.
func TestLastEpoch(t *testing.T) {
	e := NewEpochs(build)
	for _, n := range []int64{2, 1, 3} {
		if _, err := read(e, record(n).Records()); err != nil {
			t.Fatal(err)
		}
	}
	if e.Last.Rec.Epoch != 3 {
		t.Errorf("the last is %d", e.Last.Rec.Epoch)
	}
	e.Undo(e.Last)
	if e.Rules(3) == nil {
		t.Error("the last is undone to itself")
	}
	e.Undo(e.byNum[2])
	if e.Last.Rec.Epoch != 2 || e.Rules(3) != nil || e.Rules(1) == nil {
		t.Errorf("the last is %d", e.Last.Rec.Epoch)
	}
	first, goesOn := record(1), record(5)
	goesOn.Rec.Continues = 1
	if first.Lineage() != 1 || goesOn.Lineage() != 1 {
		t.Errorf("lineages %d, %d", first.Lineage(), goesOn.Lineage())
	}
	if ep, err := read(e, goesOn.Records()); err != nil || ep.Since != 1 {
		t.Errorf("%+v, %v", ep, err)
	}
}

// TestFollows: which model may run on a log, and whether it begins an epoch.
func TestFollows(t *testing.T) {
	last := record(3, "a", "1", "b", "2")
	last.Rec.SeedHash, last.Rec.Partitions = "seed", 2
	same := func() *Source {
		s := last.source()
		return &s
	}
	for name, c := range map[string]struct {
		change func(s *Source)
		fresh  bool
		says   string
	}{
		"the same":         {func(*Source) {}, false, ""},
		"a higher version": {func(s *Source) { s.Version, s.Model = 4, []byte("other") }, true, ""},
		"another name":     {func(s *Source) { s.Name = "n" }, false, `belongs to the model "m", this one is "n"`},
		"a lower version":  {func(s *Source) { s.Version = 2 }, false, "this file says version 2"},
		"another model": {func(s *Source) { s.Model = []byte("model 4\n") }, false,
			`The log has "model 3" where this has "model 4"`},
		"another file":      {func(s *Source) { s.Files["b"] = []byte("3") }, false, "a file that the model names"},
		"a file more":       {func(s *Source) { s.Order = append(s.Order, "c") }, false, "a file that the model names"},
		"files in an order": {func(s *Source) { s.Order = []string{"b", "a"} }, false, "a file that the model names"},
	} {
		s := same()
		s.Files = map[string][]byte{"a": []byte("1"), "b": []byte("2")}
		c.change(s)
		fresh, err := s.Follows(last, 2, "seed")
		if fresh != c.fresh || (c.says == "") != (err == nil) || err != nil && (!errors.Is(err, ErrModel) ||
			!strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: fresh %v, %v", name, fresh, err)
		}
	}
	if _, err := same().Follows(last, 3, "seed"); !errors.Is(err, ErrModel) ||
		!strings.Contains(err.Error(), "with 2 partitions, not 3") {
		t.Error(err)
	}
	if _, err := same().Follows(last, 2, "other"); !errors.Is(err, ErrModel) || !strings.Contains(err.Error(), "seed") {
		t.Error(err)
	}
	if fresh, err := same().Follows(nil, 9, "any"); !fresh || err != nil {
		t.Error(fresh, err)
	}
	rec := same().Record(7, 2, "seed", 99)
	if rec.Epoch != 7 || rec.Through != 99 || rec.Partitions != 2 || rec.SeedHash != "seed" || rec.V != codec.Version ||
		!slices.Equal(rec.Files, last.Rec.Files) || !bytes.Equal(rec.Model, last.Rec.Model) || rec.Version != 3 {
		t.Errorf("%+v", rec)
	}
}

// TestGoOn: a model whose oracle got a later version goes on as its learner began.
func TestGoOn(t *testing.T) {
	const was, is = "oracle: {kind: auto, version: 1}\n", "oracle: {kind: auto, version: 2}\n"
	const more, other = "max_features: 9\n" + was, "oracle: {kind: linear, version: 1}\n"
	for _, c := range []struct {
		model, earlier, logged string
		version                int64
		keep, goesOn           bool
	}{
		{is, was, was, 1, false, true},
		{is, was, was, 2, false, false}, // a new learner begins
		{is, was, was, 2, true, true},
		{is, was, is, 1, false, false},
		{is, was, other, 1, false, false},
		{is, more, was, 2, true, true}, // but for the oracle the new version counts
		{was, more, was, 2, true, false},
		{was, was, was, 1, false, true},
		{is, "", was, 1, false, false},
	} {
		last := record(1)
		last.Rec.Model = []byte(c.logged)
		s := &Source{Version: c.version, Model: []byte(c.model), Warm: model.Warm{Keep: c.keep}}
		if c.earlier != "" {
			s.Earlier = []byte(c.earlier)
		}
		if s.goOn(last); (string(s.Model) == c.earlier && s.Earlier == nil) != c.goesOn {
			t.Errorf("%+v: %q", c, s.Model)
		}
	}
}

// logOf is a model's log in memory, with records in its feedback.
func logOf(t *testing.T, feedback ...stream.Record) (*mem.Log, join.Topics) {
	t.Helper()
	log, topics := mem.New(mem.Options{}), join.TopicsOf("m")
	for _, topic := range []string{topics.Contexts, topics.Outcomes, topics.Decisions, topics.Rejects} {
		must(t, log.Create(t.Context(), topic, 1, stream.TopicOptions{}))
	}
	for _, topic := range []string{topics.Feedback, topics.Snapshots} {
		must(t, log.Create(t.Context(), topic, 1, stream.TopicOptions{Trimmable: true}))
	}
	put(t, log, topics.Feedback, feedback...)
	return log, topics
}

func put(t *testing.T, log stream.Log, topic string, records ...stream.Record) {
	t.Helper()
	w, err := log.Writer(t.Context(), topic, 0, nil)
	must(t, err)
	defer w.Close()
	for i := range records {
		_, err := w.Append(t.Context(), &records[i])
		must(t, err)
	}
	must(t, w.Flush(t.Context()))
}

func feedbackOf(n, epoch int64, loss float64) stream.Record {
	f := codec.Feedback{N: n, Round: n, ID: "r", Epoch: epoch, LearnedThrough: n - 1, Gamma: 3,
		Actions:      []string{"a", "b"},
		Propensities: []float64{.5, .5}, Action: int(n % 2), Fate: codec.Observed, Loss: loss,
		Context: []byte(`{"id":"r","features":{"x":1},"actions":["a","b"]}`)}
	return stream.Record{Key: []byte(f.ID), Value: codec.AppendFeedback(nil, &f)}
}

// dropping is a log that drops something whenever somebody has asked for bounds.
type dropping struct {
	stream.Log
	drop func()
}

func (l *dropping) Bounds(ctx context.Context, topic string, partition int) (first, next int64, err error) {
	defer l.drop()
	return l.Log.Bounds(ctx, topic, partition)
}

// TestLoggedEpochs: what was read is known by the place of its first record, and what a mark names is read there.
func TestLoggedEpochs(t *testing.T) {
	var records []stream.Record
	one, two := record(1, "f", "x"), record(2, "f", "y")
	two.Rec.Continues = 1
	records = append(append(append(records, one.Records()...), feedbackOf(1, 1, .5)), two.Records()...)
	log, topics := logOf(t, records...)
	fresh := func() *LoggedEpochs { return NewLoggedEpochs(log, topics, build, slog.New(slog.DiscardHandler)) }
	first := int64(0)
	all := fresh()
	must(t, stream.Scan(t.Context(), log, topics.Feedback, 0, stream.Earliest, 1<<40, func(r *stream.Record) error {
		if first = r.Offset; r.Type == "" {
			return nil
		}
		return all.Read(r)
	}))
	refs := all.Refs()
	if len(refs) != 2 || refs[0] != (codec.EpochRef{Epoch: 1, Offset: first - 4}) ||
		refs[1] != (codec.EpochRef{Epoch: 2, Offset: first - 1}) || all.Newest() != 2 {
		t.Fatalf("%v, the newest is %d", refs, all.Newest())
	}
	found := fresh()
	must(t, found.Find(t.Context(), refs))
	if !slices.Equal(found.Refs(), refs) || found.Rules(1) == nil || found.Rules(2) == nil {
		t.Errorf("found %v", found.Refs())
	}
	found.Began(7, 99)
	if found.Newest() != 7 || fresh().Newest() != 0 {
		t.Error("a newer one is not known")
	}
	if s := all.Renewed(&Source{Name: "m", Version: 1}, refs[1].Offset); s == nil || s.Version != 2 ||
		string(s.Files["f"]) != "y" || !slices.Equal(s.Order, []string{"f"}) {
		t.Errorf("renewed: %+v", s)
	}
	for name, s := range map[string]*Source{"of the same version": {Name: "m", Version: 2}, "of another": {Name: "n"}} {
		if got := all.Renewed(s, 0); got != nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if s := all.Renewed(&Source{Name: "m", Version: 1}, refs[1].Offset+1); s != nil {
		t.Errorf("one that began before: %+v", s)
	}
	delete(all.offsets, 2)
	if s := all.Renewed(&Source{Name: "m", Version: 1}, 0); s != nil {
		t.Errorf("one that is not in the log: %+v", s)
	}
	at := 0
	overtaken := fresh()
	overtaken.log = &dropping{Log: log, drop: func() {
		if at++; at == 2 { // between the bounds of a scan and its reader
			must(t, log.Trim(t.Context(), topics.Feedback, 0, refs[1].Offset))
		}
	}}
	if err := overtaken.Find(t.Context(), refs[:1]); err != nil || overtaken.Rules(1) != nil || at < 2 {
		t.Errorf("a record that is dropped while it is looked for: %v, asked %d times", err, at)
	}
	reads := at
	if must(t, overtaken.readAt(t.Context(), refs[0].Offset)); at != reads+1 {
		t.Error("a record that is gone is looked for in all that follows")
	}
	s := Snapshot{Through: 1, Rec: one.Rec, Files: one.Files}
	must(t, s.encode(func(b []byte) ([]byte, error) { return b, nil }))
	put(t, log, topics.Snapshots, stream.Record{Value: codec.AppendSnapshot(nil, &chunks(&s, "x", 1<<20)[0])})
	if kept := fresh(); kept.Find(t.Context(), refs) != nil || kept.Rules(1) == nil || kept.Rules(2) == nil {
		t.Error("an epoch whose record is dropped is not read from a snapshot")
	}
	if kept := fresh(); kept.Find(t.Context(), refs[:1]) != nil || kept.Rules(1) == nil {
		t.Error("the only epoch is not read from a snapshot")
	}
	bad := record(3)
	bad.Rec.Model = []byte("bad")
	bad.Rec.SHA256 = hexSum(bad.Rec.Model)
	_, end, err := log.Bounds(t.Context(), topics.Feedback, 0)
	must(t, err)
	put(t, log, topics.Feedback, bad.Records()...)
	if err := fresh().Find(t.Context(), []codec.EpochRef{{Epoch: 3, Offset: end}}); err == nil ||
		!strings.Contains(err.Error(), "epoch 3: bad model") {
		t.Errorf("an epoch that cannot be built: %v", err)
	}
	if fresh().Renewed(&Source{Name: "m"}, 0) != nil {
		t.Error("a log without a model renews it")
	}
}

// TestTaught: a log is taught one version of a model, and only if it has lost nothing.
func TestTaught(t *testing.T) {
	log, topics := logOf(t, append(record(1).Records(), feedbackOf(1, 1, 0))...)
	must(t, CheckTaught(t.Context(), log, "m", 1))
	must(t, CheckTaught(t.Context(), log, "none", 1))
	if err := CheckTaught(t.Context(), log, "m", 2); !errors.Is(err, ErrModel) {
		t.Error(err)
	}
	for _, topic := range []string{topics.Contexts, topics.Outcomes, topics.Feedback} {
		log, _ := logOf(t, record(1).Records()...)
		for range 4 {
			put(t, log, topic, stream.Record{Type: "x"})
		}
		_, end, err := log.Bounds(t.Context(), topic, 0)
		must(t, err)
		must(t, log.Truncate(topic, 0, end-1))
		if err := CheckTaught(t.Context(), log, "m", 1); !errors.Is(err, ErrModel) ||
			!strings.Contains(err.Error(), topic) {
			t.Errorf("%s: %v", topic, err)
		}
	}
}
