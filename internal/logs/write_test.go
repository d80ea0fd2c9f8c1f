package logs

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
	"pgregory.net/rapid"

	"hindsight/internal/scan"
	"hindsight/pkg/codec"
)

func writeAll(t rapid.TB, format string, all []Record) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := NewWriter(&b, format)
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		if err := w.Write(&all[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func readBack(t rapid.TB, format string, b []byte) []Record {
	t.Helper()
	r, err := Open(Stdin, Options{Stdin: bytes.NewReader(b), Inactive: true})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var out []Record
	var rec Record
	for {
		err := r.Next(&rec)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, clone(&rec))
	}
	if a := r.Account(); a.Malformed > 0 || a.Format != format {
		t.Fatalf("%s as %s: %q\n%s", format, a.Format, a.Errors(), b)
	}
	return out
}

var names = rapid.StringMatching(`[a-zé"\\][a-z ."é_#]{0,6}`)

func drawFeatures(t *rapid.T, label string) (out []codec.Feature) {
	for _, name := range rapid.SliceOfNDistinct(names, 0, 4, rapid.ID[string]).Draw(t, label) {
		f := codec.Feature{Name: name, Kind: codec.FeatureKind(rapid.IntRange(1, 3).Draw(t, "kind"))}
		switch f.Kind {
		case codec.Number:
			f.Value = rapid.Float64().Draw(t, "x")
		case codec.Text:
			f.Text = rapid.String().Draw(t, "text")
		default:
			f.Value = float64(rapid.IntRange(0, 1).Draw(t, "bool"))
		}
		out = append(out, f)
	}
	return out
}

// drawRecord draws what every format can hold.
func drawRecord(t *rapid.T, id string) Record {
	times := rapid.OneOf(rapid.Just(scan.NoTime), rapid.Int64Range(-1e18, 6e18))
	var r Record
	r.reset()
	r.ID = id
	if rapid.IntRange(0, 4).Draw(t, "outcome") == 0 {
		r.Kind, r.Outcome, r.Value, r.OutcomeTime = Outcome, codec.Reward, rapid.Float64().Draw(t, "v"),
			times.Draw(t, "at")
		return r
	}
	r.Time, r.Features = times.Draw(t, "time"), drawFeatures(t, "features")
	for _, name := range rapid.SliceOfNDistinct(names, 1, 4, rapid.ID[string]).Draw(t, "actions") {
		r.Actions = append(r.Actions, codec.Action{Name: name, Features: drawFeatures(t, "of "+name)})
	}
	k := len(r.Actions)
	r.Chosen = rapid.IntRange(0, k-1).Draw(t, "chosen")
	r.Action = r.Actions[r.Chosen].Name
	if rapid.Bool().Draw(t, "law") {
		for range k {
			r.Propensities = append(r.Propensities, 1/float64(k))
		}
		r.Propensity = 1 / float64(k)
	}
	if rapid.Bool().Draw(t, "came") {
		r.Outcome, r.Value, r.OutcomeTime = codec.Reward, rapid.Float64().Draw(t, "value"), times.Draw(t, "came at")
	}
	if rapid.Bool().Draw(t, "weighs") {
		r.Weight = 4
	}
	if rapid.Bool().Draw(t, "baseline") {
		r.Baseline = rapid.SliceOfN(rapid.IntRange(0, k-1), 1, 3).Draw(t, "ranks")
	}
	if rapid.IntRange(0, 3).Draw(t, "inactive") == 0 {
		r.Flags |= Inactive
	}
	return r
}

// TestRoundTrip: what is written in any format is read as it was, up to where it stood.
func TestRoundTrip(t *testing.T) {
	for _, format := range WriteFormats() {
		t.Run(format, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				var all []Record
				for i := range rapid.IntRange(1, 4).Draw(t, "records") {
					all = append(all, drawRecord(t, "id"+ordinal(i)))
				}
				got := readBack(t, format, writeAll(t, format, all))
				if len(got) != len(all) {
					t.Fatalf("%d of %d records", len(got), len(all))
				}
				for i := range all {
					same(t, &got[i], &all[i])
				}
			})
		})
	}
}

// drawNamed gives a record named outcomes, or makes it one of arms.
func drawNamed(t *rapid.T, r *Record) {
	outcomes := rapid.SliceOfNDistinct(names, 1, 3, rapid.ID[string]).Draw(t, "outcomes")
	if r.Kind != Outcome {
		r.Unit = rapid.SampledFrom([]string{"", "u", "another"}).Draw(t, "unit")
	}
	if r.Kind != Outcome && rapid.Bool().Draw(t, "arms") {
		*r = Record{Kind: Event, ID: r.ID, Unit: r.Unit, Time: r.Time, Features: r.Features, Actions: r.Actions,
			OutcomeTime: scan.NoTime, Chosen: -1, Weight: 1}
		for _, a := range r.Actions {
			arm := codec.Arm{Action: a.Name}
			for _, name := range outcomes {
				arm.Values = append(arm.Values, codec.Value{Name: name, X: rapid.Float64().Draw(t, "x")})
			}
			r.Arms = append(r.Arms, arm)
		}
		return
	}
	r.Outcome, r.Value = codec.Named, 0
	for _, name := range outcomes {
		v := codec.TimedValue{Value: codec.Value{Name: name}, Time: rapid.OneOf(rapid.Just(scan.NoTime),
			rapid.Int64Range(-1e18, 6e18)).Draw(t, "known at")}
		if v.Withdrawn = rapid.IntRange(0, 4).Draw(t, "withdrawn") == 0; !v.Withdrawn {
			v.X = rapid.Float64().Draw(t, "x")
		}
		r.Values = append(r.Values, v)
	}
}

// TestNamedRoundTrip: so are units and named outcomes, each with its time, and those of every action; dsjson refuses
// such outcomes.
func TestNamedRoundTrip(t *testing.T) {
	for _, format := range []string{JSONL, Msgpack, Parquet} {
		t.Run(format, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				var all []Record
				for i := range rapid.IntRange(1, 4).Draw(t, "records") {
					all = append(all, drawRecord(t, "id"+ordinal(i)))
					drawNamed(t, &all[i])
				}
				got := readBack(t, format, writeAll(t, format, all))
				if len(got) != len(all) {
					t.Fatalf("%d of %d records", len(got), len(all))
				}
				for i := range all {
					same(t, &got[i], &all[i])
				}
			})
		})
	}
	w, err := NewWriter(io.Discard, Dsjson)
	if err != nil {
		t.Fatal(err)
	}
	var cannot *UnwritableError
	if err := w.Write(&Record{Kind: Outcome, ID: "a", Values: []codec.TimedValue{{}}}); !errors.As(err, &cannot) {
		t.Error(err)
	}
}

// A file that tells what every action would have brought has features where --features names keys of its lines, and
// none of what is known afterwards only.
func TestArms(t *testing.T) {
	line :=
		`{"prompt":"p","best":1,"arms":{"a":{"reward":0.4,"cost":3e-05,"near":false},"b":{"reward":1,"cost":0}},"source":"s"}` + "\n"
	r, err := Open(Stdin, Options{Stdin: strings.NewReader(line + `{"arms":{"a":{"near":true}}}`),
		Keys: []string{"prompt", "source"}})
	if err != nil {
		t.Fatal(err)
	}
	all, err := readAll(t, r)
	if err != nil || len(all) != 1 || len(r.Account().Errors()) != 1 {
		t.Fatalf("%v %+v %q", err, all, r.Account().Errors())
	}
	want := []codec.Arm{{Action: "a", Values: []codec.Value{{Name: "reward", X: .4}, {Name: "cost", X: 3e-5}}},
		{Action: "b", Values: []codec.Value{{Name: "reward", X: 1}, {Name: "cost"}}}}
	if got := all[0]; !reflect.DeepEqual(got.Arms, want) || len(got.Actions) != 2 || len(got.Features) != 2 ||
		got.Features[0].Text != "p" || got.Features[1].Name != "source" {
		t.Errorf("%+v", got)
	}
}

func same(t rapid.TB, got, want *Record) {
	t.Helper()
	g, w := clone(got), clone(want)
	g.Line, g.File, w.Line, w.File = 0, "", 0, ""
	for _, r := range [...]*Record{&g, &w} { // -0 is written as 0 by dsjson, which negates
		if r.Value == 0 {
			r.Value = 0
		}
	}
	if !reflect.DeepEqual(g, w) {
		t.Fatalf("\n got %+v\nwant %+v", g, w)
	}
}

// A published log goes through every format and comes back as the same events.
func TestSampleThroughAll(t *testing.T) {
	all, _ := readSample(t, "dsjson_cb.json")
	now := all
	for _, format := range []string{JSONL, Parquet, Msgpack, Dsjson} {
		now = readBack(t, format, writeAll(t, format, now))
	}
	if len(now) != len(all) {
		t.Fatalf("%d of %d", len(now), len(all))
	}
	for i := range all {
		same(t, &now[i], &all[i])
	}
}

// Compression, folders and files within them are all the same to a reader.
func TestPlaces(t *testing.T) {
	text := []byte("{\"id\":\"a\",\"features\":{},\"action\":\"x\",\"propensity\":1,\"loss\":0.5}\n")
	var zipped, zstded bytes.Buffer
	g := gzip.NewWriter(&zipped)
	_, _ = g.Write(bytes.ReplaceAll(text, []byte(`"a"`), []byte(`"b"`)))
	g.Close()
	z, _ := zstd.NewWriter(&zstded)
	_, _ = z.Write(bytes.ReplaceAll(text, []byte(`"a"`), []byte(`"c"`)))
	z.Close()
	dir := t.TempDir()
	for name, b := range map[string][]byte{"1": text, "2.gz": zipped.Bytes(), "sub/3.zst": zstded.Bytes(),
		".hidden": []byte("?")} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	rest, link := t.TempDir(), filepath.Join(t.TempDir(), "logs")
	blank := filepath.Join(rest, "blank")
	if err := errors.Join(os.WriteFile(blank, []byte("\n \r\n"), 0o644), os.Symlink(blank, filepath.Join(dir, "0")),
		os.Symlink(filepath.Join(dir, "1"), filepath.Join(dir, "4")), os.Symlink(dir, link)); err != nil {
		t.Fatal(err)
	}
	r, err := Open(link, Options{})
	if err != nil {
		t.Fatal(err)
	}
	all, err := readAll(t, r)
	if err != nil || len(all) != 3 || all[0].ID != "a" || all[1].ID != "b" || all[2].ID != "c" {
		t.Errorf("%v %+v", err, all)
	}
	if a := r.Account(); a.Files != 5 || a.Duplicates != 1 || a.Bytes != 4*int64(len(text)) {
		t.Errorf("%+v", a)
	}
	if err := os.Symlink(rest, filepath.Join(dir, "more")); err != nil {
		t.Fatal(err)
	}
	if _, err := Files(link); err == nil || !strings.Contains(err.Error(), "more: a link to a folder is not followed") {
		t.Errorf("a folder with a link to another: %v", err)
	}
	layered := []byte(oneEvent)
	for layers := 1; layers <= maxLayers; layers++ {
		var b bytes.Buffer
		g := gzip.NewWriter(&b)
		_, _ = g.Write(layered)
		g.Close()
		layered = b.Bytes()
		if _, err = Open(Stdin, Options{Stdin: bytes.NewReader(layered)}); (err == nil) != (layers < maxLayers) ||
			err != nil && !strings.Contains(err.Error(), "compressed more than 3 times") {
			t.Errorf("compressed %d times: %v", layers, err)
		}
	}
	mixed := t.TempDir()
	if _, err := Files(mixed); err == nil || !strings.Contains(err.Error(), "there is no file in this folder") {
		t.Errorf("an empty folder: %v", err)
	}
	for _, name := range []string{"0", "1"} {
		if err := os.WriteFile(filepath.Join(mixed, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(mixed, Options{}); !errors.Is(err, errEmpty) || !strings.HasPrefix(err.Error(), mixed) {
			t.Errorf("a folder of empty files: %v", err)
		}
	}
	if err := errors.Join(os.Remove(filepath.Join(mixed, "0")), os.Remove(filepath.Join(mixed, "1")),
		os.Mkdir(filepath.Join(mixed, ".git"), 0o700),
		os.WriteFile(filepath.Join(mixed, ".git", "config"), []byte("?"), 0o600),
		os.WriteFile(filepath.Join(mixed, "a"), text, 0o600),
		os.WriteFile(filepath.Join(mixed, "b"), []byte("1:0:1 | a\n"), 0o600),
		os.WriteFile(filepath.Join(mixed, "c"), []byte("what is this"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if r, err = Open(mixed, Options{}); err != nil {
		t.Fatal(err)
	}
	all, err = readAll(t, r)
	if a := r.Account(); err == nil || !strings.Contains(err.Error(), "c: the format is not known") || len(all) != 2 ||
		a.Format != "several" || a.Files != 2 {
		t.Errorf("files of several formats: %v, %+v", err, a)
	}
	cut := zipped.Bytes()[:zipped.Len()-6]
	for _, format := range []string{JSONL, Msgpack} {
		r, err = Open(Stdin, Options{Stdin: bytes.NewReader(cut), Format: format})
		if err == nil {
			_, err = readAll(t, r)
		}
		if !errors.Is(err, io.ErrUnexpectedEOF) && format == JSONL || err == nil {
			t.Errorf("%s: a cut file ended with %v", format, err)
		}
	}
}

func TestWithoutFormat(t *testing.T) {
	for _, c := range []struct{ text, want string }{{"", "empty"}, {"\n\n", "empty"},
		{"a,b\n1,2\n", "columns must be named"}, {"hello", "--format"}} {
		if _, err := Open(Stdin, Options{Stdin: strings.NewReader(c.text)}); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v", c.text, err)
		}
	}
	for text, want := range map[string]string{"1:0:0.5 | a": CB, "{\n": JSONL, "\n{}": JSONL} {
		r, err := Open(Stdin, Options{Stdin: strings.NewReader(text)})
		if err == nil {
			_, err = readAll(t, r)
		}
		if err != nil || r.Account().Format != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// TestWaitingContexts: the oldest are forgotten where too many wait, or too many bytes; a repeat changes nothing.
func TestWaitingContexts(t *testing.T) {
	var d rounds
	for i := range maxWaiting {
		d.wait(strconv.Itoa(i), []byte("{}"))
	}
	for _, id := range []string{"0", "more", "more"} {
		if first, _ := strconv.Atoi(d.order[0]); len(d.order) != maxWaiting || d.held != 2*maxWaiting || first > 1 {
			t.Errorf("%d wait with %d bytes, the first %d", len(d.order), d.held, first)
		}
		d.wait(id, []byte("{}"))
	}
	if _, ok := d.waiting["0"]; ok || d.order[0] != "1" || len(d.waiting) != maxWaiting {
		t.Errorf("%d wait, the first %q", len(d.waiting), d.order[0])
	}
	d = rounds{held: maxWaitingBytes - 5}
	for i, id := range []string{"a", "b", "c"} {
		d.wait(id, []byte([]string{"{ }", "{}", "{}"}[i]))
	}
	if len(d.waiting) != 2 || d.order[0] != "b" || d.held != maxWaitingBytes-1 {
		t.Errorf("of three contexts that are too long %q are left, %d bytes", d.order, d.held)
	}
}

// TestWaitingContext: a context is known that waited for its decision while more was read than is held at once.
func TestWaitingContext(t *testing.T) {
	const context = `{"id":"a","features":{"x":1},"actions":["p","q"]}`
	const other = `{"id":"b","features":{"x":2},"actions":["p","q"]}`
	text := context + "\n" + strings.Repeat(other+"\n", 2*scan.BufferBytes/len(other)) +
		`{"id":"a","action":"p","propensity":0.5}` + "\n"
	r, err := Open(Stdin, Options{Format: JSONL, Stdin: strings.NewReader(text)})
	if err != nil {
		t.Fatal(err)
	}
	all, err := readAll(t, r)
	if err != nil || len(all) != 1 || len(all[0].Features) != 1 || all[0].Features[0].Value != 1 {
		t.Errorf("%+v, %v", all, err)
	}
}

func FuzzParquet(f *testing.F) {
	var r Record
	r.reset()
	r.ID, r.Action, r.Features = "a", "x", []codec.Feature{{Name: "f", Kind: codec.Number, Value: 1}}
	fuzzFormat(f, Parquet, string(writeAll(f, Parquet, []Record{r, r})))
}

// A damaged file names sizes that are not there: it is refused before anything is
// allocated for them.
func TestParquetSizes(t *testing.T) {
	var r Record
	r.reset()
	r.ID, r.Action, r.Features = "a", "x", []codec.Feature{{Name: "f", Kind: codec.Number, Value: 1}}
	good := writeAll(t, Parquet, []Record{r, r})
	for name, damage := range map[string]func(b []byte) []byte{
		"cut":         func(b []byte) []byte { return b[:len(b)-1] },
		"footer":      func(b []byte) []byte { copy(b[len(b)-8:], "\xff\xff\xff\x7f"); return b },
		"short":       func(b []byte) []byte { return b[:8] },
		"page header": func(b []byte) []byte { copy(b[4:], "\xff\xff\xff\xff\xff\xff"); return b },
	} {
		_, err := Open(Stdin, Options{Stdin: bytes.NewReader(damage(bytes.Clone(good))), Format: Parquet})
		if err == nil {
			t.Errorf("%s: it opens", name)
		}
	}
}

// TestParquetRows: what the columns of a row say must fit each other; rows that do not are malformed, each by itself.
func TestParquetRows(t *testing.T) {
	one, nan, x := 1., math.NaN(), "x"
	var rows []row
	var want []string
	for _, c := range []struct {
		change func(r *row)
		want   string // "": it is read
	}{
		{func(r *row) {}, ""},
		{func(r *row) { r.Kind = "both" }, `kind "both": expected event or outcome`},
		{func(r *row) { r.Outcome = "gain" }, `outcome "gain": expected`},
		{func(r *row) { r.Value = &nan }, errCost.Error()},
		{func(r *row) { r.Action = "" }, "an event without the action"},
		{func(r *row) { r.Propensities = []float64{1} }, errLawOfWhat.Error()},
		{func(r *row) { r.Propensities = []float64{.25, .75} }, ""},
		{func(r *row) { r.Baseline = []int32{1, 0} }, ""},
		{func(r *row) { r.Baseline = []int32{2} }, "baseline names an action that is not there"},
		{func(r *row) { r.Baseline = []int32{-1} }, "baseline names an action that is not there"},
		{func(r *row) { r.Features = []cell{{Name: "f", Number: &one, Text: &x}} }, `feature "f": expected one of`},
		{func(r *row) { r.Actions[1].Features = []cell{{Name: "g"}} }, `feature "g": expected one of`},
		{func(r *row) { r.Actions[1].Features = []cell{{Name: "g", Text: &x}} }, ""},
		{func(r *row) { r.Outcome, r.Outcomes = "named", []came{{Name: "o", Value: &nan}} }, errCost.Error()},
		{func(r *row) { r.Outcome, r.Outcomes = "named", []came{{Name: "o"}} }, ""}, // withdrawn
		{func(r *row) { r.Arms = []arm{{Action: "x", Outcomes: []came{{Name: "o"}}}} }, errCost.Error()},
		{func(r *row) { r.Arms = []arm{{Action: "x", Outcomes: []came{{Name: "o", Value: &nan}}}} }, errCost.Error()},
		{func(r *row) { r.Arms = []arm{{Action: "x", Outcomes: []came{{Name: "o", Value: &one}}}} }, ""},
		{func(r *row) { r.Weight = math.Inf(1) }, "weight is less than 1, or not finite"},
	} {
		r := row{Kind: "event", Action: "x", Propensity: &one, Weight: 1, Actions: []choice{{Name: "y"}, {Name: "x"}}}
		if c.change(&r); len(r.Propensities) == 2 {
			r.Propensity = nil
		}
		rows, want = append(rows, r), append(want, c.want)
	}
	var b bytes.Buffer
	w := parquet.NewGenericWriter[row](&b)
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var rejects strings.Builder
	r, err := Open(Stdin, Options{Stdin: &b, Rejects: &rejects})
	if err != nil {
		t.Fatal(err)
	}
	all, err := readAll(t, r)
	said := map[int64]string{}
	for line := range strings.Lines(rejects.String()) {
		var at Reject
		if err := json.Unmarshal([]byte(line), &at); err != nil {
			t.Fatal(err)
		}
		said[at.Line] = at.Reason
	}
	events := map[int64]bool{}
	for i := range all {
		events[all[i].Line] = true
	}
	for i, text := range want {
		if got := said[int64(i+1)]; err != nil || !strings.HasPrefix(got, text) || events[int64(i+1)] != (text == "") {
			t.Errorf("row %d: %q, want %q; %v", i+1, got, text, err)
		}
	}
}

// TestVectorsWritten: decision-service JSON has lists of numbers, files of Parquet have none; what is no format of
// those that are written is named.
func TestVectorsWritten(t *testing.T) {
	var b bytes.Buffer
	r := Record{Kind: Event, Action: "1", Time: scan.NoTime, OutcomeTime: scan.NoTime, Features: []codec.Feature{
		codec.VectorOf("v", []float64{1, -.5})}, Actions: []codec.Action{{Name: "1", Features: []codec.Feature{
		{Name: "_x", Kind: codec.Number}}}}}
	w, _ := NewWriter(&b, Dsjson)
	if err := w.Write(&r); err == nil || !strings.Contains(err.Error(), `"_x"`) {
		t.Errorf("a feature of an action that begins with _: %v", err)
	}
	r.Actions[0].Features = nil
	if err := errors.Join(w.Write(&r), w.Close()); err != nil || !strings.Contains(b.String(), `"c":{"v":[1,-0.5],`) {
		t.Errorf("%v: %s", err, b.String())
	}
	w, _ = NewWriter(&b, Parquet)
	if err := w.Write(&r); err == nil || !strings.Contains(err.Error(), `the feature "v" is a vector`) {
		t.Errorf("Parquet: %v", err)
	}
	if _, err := NewWriter(&b, CB); err == nil || !strings.Contains(err.Error(), "expected one of jsonl, msgpack, ") {
		t.Errorf("the text of Vowpal Wabbit: %v", err)
	}
}

// A file whose features and actions are JSON, as earlier versions wrote it, is read as before.
func TestParquetOfJSON(t *testing.T) {
	var got []Record
	r, err := Open("testdata/json.parquet", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for {
		var rec Record
		if err := r.Next(&rec); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		got = append(got, clone(&rec))
	}
	if len(got) != 2 || len(got[0].Features) != 3 || got[0].Actions[0].Features[0].Value != .5 ||
		got[0].Action != "x" || got[1].Actions[1].Name != "y" {
		t.Errorf("%+v", got)
	}
	again := readBack(t, Parquet, writeAll(t, Parquet, got))
	for i := range got {
		same(t, &again[i], &got[i])
	}
}

// clone returns a copy of r that shares no memory with it.
func clone(r *Record) Record {
	c := *r
	c.ID, c.Unit, c.Action = strings.Clone(r.ID), strings.Clone(r.Unit), strings.Clone(r.Action)
	c.Features = cloneFeatures(r.Features)
	c.Actions = nil
	for _, a := range r.Actions {
		c.Actions = append(c.Actions, codec.Action{Name: strings.Clone(a.Name), Features: cloneFeatures(a.Features)})
	}
	c.Baseline = append([]int(nil), r.Baseline...)
	c.Propensities = append([]float64(nil), r.Propensities...)
	c.Values, c.Arms = nil, nil
	for _, v := range r.Values {
		v.Name = strings.Clone(v.Name)
		c.Values = append(c.Values, v)
	}
	for _, a := range r.Arms {
		own := codec.Arm{Action: strings.Clone(a.Action)}
		for _, v := range a.Values {
			own.Values = append(own.Values, codec.Value{Name: strings.Clone(v.Name), X: v.X})
		}
		c.Arms = append(c.Arms, own)
	}
	return c
}
