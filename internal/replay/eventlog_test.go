package replay

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"hindsight/internal/dataset"
	"hindsight/internal/dataset/testkit"
	"hindsight/internal/delay"
	"hindsight/internal/logs"
	"hindsight/internal/loop"
	"hindsight/internal/model"
	"hindsight/internal/random"
	"hindsight/pkg/codec"
)

// Observations find their events before and behind them; the first counts, and an
// activation brings back an event that was skipped.
func TestEventsJoin(t *testing.T) {
	const event = `,"_label_Action":1,"a":[1],"p":[1],"c":{"_multi":[{}]}}` + "\n"
	b := readEvents(t, `{"RewardValue":0.5,"EnqueuedTimeUtc":"2020-01-01T00:00:05Z","EventId":"early"}`+"\n"+
		`{"EventId":"early","_label_cost":0`+event+
		`{"EventId":"has","_label_cost":-1,"o":[{"v":1}]`+event+
		`{"EventId":"has","RewardValue":0.25}`+"\n"+
		`{"EventId":"asleep","_skipLearn":true,"_label_cost":0`+event+
		`{"EventId":"woken","_skipLearn":true,"_label_cost":0`+event+
		`{"EventId":"woken","DeferredAction":false,"RewardValue":0.75,"Observations":[{"v":null,"DeferredAction":false},`+
		`{"v":0.75,"DeferredAction":true}]}`+"\n"+
		`{"EventId":"nobody","RewardValue":0.5}`+"\n", dataset.Options{}, logs.Options{Format: logs.Dsjson})
	in := b.Intake
	if in.Joined != 2 || in.Extra != 1 || in.Unmatched != 1 || in.Activated != 1 || in.Rows != 3 || in.Read != 8 ||
		in.Events != 2 || in.Dangling != 4 || in.Skipped != 2 {
		t.Fatalf("%+v", in)
	}
	for i, want := range []struct {
		id    string
		value float64
	}{{"early", .5}, {"has", 1}, {"woken", .75}} {
		if id := b.table.ID(i); id != want.id || b.table.Value[i] != want.value {
			t.Errorf("%s %v, want %+v", id, b.table.Value[i], want)
		}
	}
	if len(in.Notes()) == 0 || !strings.Contains(strings.Join(in.Notes(), "\n"), "outcomes without an event: 1") {
		t.Errorf("%q", in.Notes())
	}
}

// TestDroppedRowsSayNothing: rows that are withdrawn or inactive set neither the scale of losses, nor
// the number of columns, nor whether actions have features.
func TestDroppedRowsSayNothing(t *testing.T) {
	const kept = `{"id":"a","features":{"x":1},"actions":["p","q"],"action":"p","loss":1}` + "\n"
	for _, dropped := range []string{
		`{"id":"b","features":{"y":1},"actions":["p",{"name":"q","features":{"z":1}}],"action":"p","loss":9,` +
			`"inactive":true}` + "\n",
		`{"id":"b","features":{"y":1},"actions":["p",{"name":"q","features":{"z":1}}],"action":"p"}` + "\n" +
			`{"id":"b","withdrawn":true}` + "\n",
	} {
		b := readEvents(t, kept+dropped, dataset.Options{}, logs.Options{Format: logs.JSONL})
		if b.Len() != 1 || b.Columns != 2 || b.Intake.Featured || b.table.Scale != (loop.Range{Min: 0, Max: 1}) {
			t.Errorf("%d rows, %d columns, features of actions %v, range %v", b.Len(), b.Columns, b.Intake.Featured,
				b.table.Scale)
		}
	}
}

// Rounds keep their own actions, with their features and their law, whatever the order of
// rows; rows are sorted by time.
func TestEventsActionSets(t *testing.T) {
	b := readEvents(t, `{"id":"late","time":"2020-01-01T00:00:09Z","features":{"x":1},"actions":["c",{"name":"a",`+
		`"features":{"f":2}}],"action":"a","propensities":{"a":0.75,"c":0.25},"reward":3,`+
		`"outcome_time":"2020-01-01T00:00:10Z"}
{"id":"soon","time":"2020-01-01T00:00:01Z","features":{"t":"u"},"actions":["a","b","c"],"action":"b",`+
		`"propensity":0.5,"reward":1,"weight":2,"outcome_time":"2020-01-01T00:00:20Z"}
`, dataset.Options{}, logs.Options{})
	if got := b.Actions; !slices.Equal(got, []string{"c", "a", "b"}) || b.Columns != 3 {
		t.Errorf("actions %v, %d columns", got, b.Columns)
	}
	if b.table.Scale != (loop.Range{Min: 1, Max: 3}) || !b.Intake.Sorted || !b.Intake.Sets || !b.Intake.Featured ||
		b.Intake.Weighted != 1 {
		t.Errorf("%+v, intake %+v", b.table.Scale, b.Intake)
	}
	shuffled := b.Pick([]int32{1, 0})
	for i, v := range []*Rounds{b, shuffled} {
		soon, late, v := v.Row(i), v.Row(1-i), v.Log
		if v.ID(soon) != "soon" || v.ID(late) != "late" || v.Slot(soon) != 1 || v.Action[soon] != 2 ||
			v.Slot(late) != 1 || v.Action[late] != 1 || v.Stands(soon) != 2 {
			t.Errorf("view %d: %v %v", i, v.Slot(soon), v.Action[soon])
		}
		if got := v.Eligible(nil, soon); !slices.Equal(got, []int32{1, 2, 0}) {
			t.Errorf("eligible %v", got)
		}
	}
	if b.Loss(0, 1) != 1 || b.Loss(1, 1) != 0 || !math.IsNaN(b.Loss(0, 0)) {
		t.Errorf("losses %v %v %v", b.Loss(0, 1), b.Loss(1, 1), b.Loss(0, 0))
	}
	var c codec.Context
	if err := codec.ParseContext(&c, shuffled.Reader().Bytes(0)); err != nil || c.ID != "late" ||
		c.Actions[1].Features[0].Name != "f" {
		t.Errorf("%v, %+v", err, c)
	}
}

// freshActions is a log in which every round has three new actions, of which the one with
// the feature good earns 1; they were played at random.
func freshActions(n int) string {
	var text strings.Builder
	s := random.New(5, "fresh")
	for i := range n {
		good, played := int(s.Uint64(uint64(i), 0)%3), int(s.Uint64(uint64(i), 1)%3)
		fmt.Fprintf(&text,
			`{"_label_cost":%d,"_label_probability":0.3333333333333333,"_label_Action":%d,"_labelIndex":%d,"o":[{"v":1}],`+
				`"EventId":"e%d","a":[%d],"p":[0.3333333333333333],"c":{"_multi":[`,
			map[bool]int{true: -1, false: 0}[good == played], played+1, played, i, played+1)
		for a := range 3 {
			if a > 0 {
				text.WriteByte(',')
			}
			fmt.Fprintf(&text, `{"_tag":"ad%d-%d","g":{"good":%d}}`, i, a, map[bool]int{true: 1, false: 0}[a == good])
		}
		text.WriteString("]}}\n")
	}
	return text.String()
}

// TestActionFeaturesReachLearners: where actions are new in every round, their features
// alone tell which is good: an oracle that shares what it learned finds it, one regression
// an action cannot.
func TestActionFeaturesReachLearners(t *testing.T) {
	env := readEvents(t, freshActions(1500), dataset.Options{}, logs.Options{})
	loss := func(oracle string) float64 {
		m, files := ModelFor(env, "replay", model.Learner{Kind: model.DAFA}, loop.Window{Rounds: 50})
		if m.Actions != nil || m.MaxActions != 3 || m.Oracle.Kind != model.Hybrid {
			t.Fatalf("the model of %d actions that come and go: %d listed, at most %d, oracle %s", len(env.Actions),
				len(m.Actions), m.MaxActions, m.Oracle.Kind)
		}
		var err error
		if m.Oracle, err = model.ParseOracle(oracle); err != nil {
			t.Fatal(err)
		}
		m.Resolve(env.Columns, 3)
		d, err := delay.Parse("constant:5", env.DelayOptions(1))
		if err != nil {
			t.Fatal(err)
		}
		r, err := (&Trial{Rounds: env.For(m), Delays: d, Model: m, Files: files, Label: "dafa", Seed: 1}).Run(
			t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		return float64(r.Replay.SNIPS.Value)
	}
	if shared, alone := loss("hybrid"), loss("linear"); shared > 0.2 || alone < 0.5 {
		t.Errorf("loss %v with features of actions, %v without", shared, alone)
	}
}

// TestEventsKeepAll: what is written as events is replayed as it was.
func TestEventsKeepAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var text []byte
		var want []codec.Context
		n := rapid.IntRange(1, 6).Draw(t, "rows")
		for i := range n {
			c := codec.Context{ID: fmt.Sprint("e", i)}
			for j := range rapid.IntRange(0, 3).Draw(t, "features") {
				c.Features = append(c.Features, codec.Feature{Name: fmt.Sprint("x", j), Kind: codec.Number,
					Value: rapid.Float64().Draw(t, "x")})
			}
			for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"p", "q", "r", "s"}), 1, 4,
				rapid.ID[string]).Draw(t, "actions") {
				c.Actions = append(c.Actions, codec.Action{Name: name,
					Features: []codec.Feature{{Name: "f", Kind: codec.Number, Value: rapid.Float64().Draw(t, "f")}}})
			}
			o := codec.Round{Context: c, Decided: true, Action: c.Actions[0].Name, Propensity: .5, Time: codec.NoTime,
				OutcomeTime: codec.NoTime}
			text = append(codec.AppendRoundJSON(text, &o), '\n')
			want = append(want, c)
		}
		b := readEvents(t, string(text), dataset.Options{}, logs.Options{Format: logs.JSONL})
		for i := range n {
			var got codec.Context
			b.Context(&got, i)
			got.ID = want[i].ID
			if fmt.Sprint(got) != fmt.Sprint(want[i]) {
				t.Fatalf("row %d: %+v, want %+v", i, got, want[i])
			}
			names := []string{}
			for _, a := range b.table.Eligible(nil, i) {
				names = append(names, b.Actions[a])
			}
			for j, a := range want[i].Actions {
				if names[j] != a.Name {
					t.Fatalf("eligible %v of %+v", names, want[i])
				}
			}
		}
	})
}

const badRows = `id,at,who,paid,p
q,2020-01-01T00:00:00Z,b,1,0.5
r,yesterday,a,0,0.5
s,2020-01-01T00:00:20Z,newcomer,one,0.5
s,2020-01-01T00:00:20Z,b,0.5,0.5
s,2020-01-01T00:00:30Z,b,0.5,0.5
t,2020-01-01T00:00:40Z,a
u,2020-01-01T00:00:50Z,a,,0.25
`

// TestTableAccount: a row that cannot be read is counted with its line, leaves nothing
// behind, and lies in the file of rejects; a strict reader stops at the first.
func TestTableAccount(t *testing.T) {
	m := logs.Mapping{ID: "id", Time: "at", Action: "who", Reward: "paid", Propensity: "p"}
	var rejects strings.Builder
	b, err := readLog("bad.csv", strings.NewReader(badRows),
		logOptions{Options: logs.Options{Mapping: m, Rejects: &rejects}, Account: true})
	if err != nil {
		t.Fatal(err)
	}
	in := b.Intake
	if in.Read != 7 || in.Events != 3 || in.Duplicates != 1 || in.Malformed != 3 || in.Observed != 2 || in.Rows != 3 ||
		!testkit.Balanced(&in.Account) || in.Bytes != int64(len(badRows)) {
		t.Errorf("%+v", in)
	}
	if !slices.Equal(b.Actions, []string{"a", "b"}) || fmt.Sprint(b.table.ID(0), b.table.ID(1),
		b.table.ID(2)) != "qsu" || len(b.table.Props) != 3 {
		t.Errorf("%v %v", b.Actions, b.table.Props)
	}
	for i, want := range []string{"standard input:3: column at: ", "standard input:4: column paid: ",
		"standard input:7: 3 cells"} {
		if !strings.HasPrefix(in.FirstMalformed[i], want) {
			t.Errorf("%q, want %q", in.FirstMalformed[i], want)
		}
	}
	if got := rejects.String(); strings.Count(got, "\n") != 4 || !strings.Contains(got,
		`"line":6,"class":"duplicate"`) || !strings.Contains(got, `"text":"r,yesterday,a,0,0.5"`) {
		t.Errorf("%s", got)
	}
	if _, err := readLog("bad.csv", strings.NewReader(badRows),
		logOptions{Options: logs.Options{Mapping: m}}); err == nil ||
		!strings.HasPrefix(err.Error(), "bad.csv:3: column at") {
		t.Errorf("strict: %v", err)
	}
}

// valuesOf returns the values that a log says of each id, and of events without one under "".
func valuesOf(t *testing.T, text string) map[string][]float64 {
	r, err := logs.Open(logs.Stdin, logs.Options{Stdin: strings.NewReader(text), Inactive: true})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	of := map[string][]float64{}
	var rec logs.Record
	for r.Next(&rec) == nil {
		if rec.Outcome != 0 {
			id := strings.Clone(rec.ID)
			of[id] = append(of[id], rec.Value)
		}
	}
	return of
}

// Whatever a log says: a bandit log whose rows can be asked and judged, and whose outcomes are
// those of their rows' ids, or an error.
func FuzzEvents(f *testing.F) {
	f.Add(`{"id":"a","features":{"x":1},"actions":["p",{"name":"q","features":{"y":true}}],"action":"q",` +
		`"propensities":{"p":0.25,"q":0.75},"reward":1}`)
	f.Add(
		"{\"id\":\"a\",\"reward\":1}\n{\"id\":\"a\",\"features\":{},\"action\":\"p\"}\n{\"id\":\"b\",\"actions\":[\"p\"],\"action\":\"p\",\"withdrawn\":true}")
	f.Add(`{"_label_cost":-2,"pdrop":0.9,"a":[2,1],"p":[0.25,0.75],"c":{"u":{"f":1},"_multi":[{},{"_tag":"b"}]}}`)
	f.Add("1:1:0.5 | a b\n2:0:0.5 | c\n")
	for _, format := range []string{logs.JSONL, logs.Msgpack, logs.Dsjson} {
		f.Add(written(f, format, repeated()))
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := logs.Open(logs.Stdin, logs.Options{Stdin: strings.NewReader(text), Inactive: true})
		if err != nil {
			return
		}
		b, err := dataset.Read("log", r, dataset.Options{Dedup: 3})
		if err != nil {
			return
		}
		rounds, said := b, valuesOf(t, text)
		var c codec.Context
		for i := range b.Action {
			if v := b.Value[i]; !math.IsNaN(v) && !slices.Contains(said[rounds.ID(i)], v) && !slices.Contains(said[""],
				v) {
				t.Fatalf("row %d: the outcome %v is that of another id than %q", i, v, rounds.ID(i))
			}
			b.Context(&c, i)
			e := b.Eligible(nil, i)
			if rounds.ID(i) == "" || len(e) != len(c.Actions) || e[b.Slot(i)] != b.Action[i] ||
				c.Actions[b.Slot(i)].Name != b.Actions[b.Action[i]] {
				t.Fatalf("row %d: eligible %v, context %+v, slot %d, action %d", i, e, c, b.Slot(i), b.Action[i])
			}
			if l := b.Loss(i, b.Slot(i)); l < 0 || l > 1 {
				t.Fatalf("loss %v", l)
			}
		}
	})
}
