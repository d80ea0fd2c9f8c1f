package loop

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"hindsight/pkg/codec"
	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

var testSeed = []byte("a secret seed of thirty-two bytes")

// newDAFA returns DA-FA over the linear oracle with the default settings.
func newDAFA(t testing.TB) learner.Learner {
	t.Helper()
	reg, err := oracle.NewLinear(oracle.LinearOptions{Beta: 0.5, Lambda: 1, MaxFeatures: 64})
	if err != nil {
		t.Fatal(err)
	}
	s, err := learner.NewSchedule("balanced", reg)
	if err != nil {
		t.Fatal(err)
	}
	return learner.NewDAFA(reg, s)
}

func anyRules() *Rules {
	return &Rules{MaxActions: 8, Range: Range{Max: 1}, Window: Window{Rounds: 5}}
}

func newReplica(t testing.TB, rules *Rules) *Replica {
	r := NewReplica()
	r.Begin(Epoch{Number: 1, Rules: rules, Learner: newDAFA(t)})
	return r
}

// genRequest draws the bytes of a context with 1 to 6 actions.
func genRequest(t *rapid.T, id string) []byte {
	c := codec.Context{ID: id}
	if rapid.Bool().Draw(t, "named") {
		for i, name := range []string{"hour", "country", "vip"} {
			if rapid.Bool().Draw(t, "has") {
				f := codec.Feature{Name: name, Kind: codec.FeatureKind(i + 1)}
				switch f.Kind {
				case codec.Number:
					f.Value = float64(rapid.IntRange(0, 23).Draw(t, "hour"))
				case codec.Text:
					f.Text = rapid.SampledFrom([]string{"DE", "FR", "IT"}).Draw(t, "country")
				case codec.Bool:
					f.Value = 1
				}
				c.Features = append(c.Features, f)
			}
		}
	} else {
		c.Vector = []float64{rapid.Float64Range(-1, 1).Draw(t, "x"), 0.5}
	}
	for i := range rapid.IntRange(1, 6).Draw(t, "K") {
		a := codec.Action{Name: string(rune('a' + i))}
		if rapid.Bool().Draw(t, "action feature") {
			a.Features = []codec.Feature{{Name: "price", Kind: codec.Number, Value: float64(i)}}
		}
		c.Actions = append(c.Actions, a)
	}
	if rapid.Bool().Draw(t, "json") {
		return codec.AppendContextJSON(nil, &c)
	}
	return codec.AppendContext(nil, &c)
}

// feedbackOf returns the feedback that a decision gets.
func feedbackOf(d *codec.Decision, n int64, fate codec.Fate, loss float64) codec.Feedback {
	f := codec.Feedback{
		N: n, Partition: d.Partition, Round: d.N, ID: strings.Clone(d.ID), Epoch: d.Epoch,
		LearnedThrough: d.LearnedThrough,
		Gamma:          d.Gamma,
		Propensities:   slices.Clone(d.Propensities), Action: d.Action, Fate: fate, OutcomePartition: -1,
		OutcomeOffset: -1,
		Context:       slices.Clone(d.Context),
	}
	for _, a := range d.Actions {
		f.Actions = append(f.Actions, strings.Clone(a))
	}
	if fate == codec.Observed || fate == codec.Imputed {
		f.Loss = loss
	}
	if fate == codec.Observed {
		f.OutcomePartition, f.OutcomeOffset = 0, n
	}
	return f
}

// Every decision is valid, its draw is that of learner.Uniform, its numbers are those
// of the replica; and deciding changes nothing: decisions of another decider with the
// same replica in between leave every bit as it is.
func TestDecideIsPure(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		plain, busy := newReplica(t, anyRules()), newReplica(t, anyRules())
		a := NewDecider(plain, testSeed, "shop", 2, 100)
		b := NewDecider(busy, testSeed, "shop", 2, 100)
		other := NewDecider(busy, testSeed, "shop", 1, 100)
		var da, db, noise codec.Decision
		var n, through int64
		for i := range rapid.IntRange(1, 30).Draw(rt, "rounds") {
			raw := genRequest(rt, fmt.Sprint("id", i))
			src := Source{Offset: RequestSource, Time: int64(i)}
			if rapid.Bool().Draw(rt, "topic") {
				src.Offset, through = int64(3*i), int64(3*i+1)
				src.Through = through
			}
			for range rapid.IntRange(0, 3).Draw(rt, "noise") {
				other.Decide(&noise, genRequest(rt, ""), "", Source{Offset: RequestSource})
			}
			ra, rb := a.Decide(&da, raw, "", src), b.Decide(&db, raw, "", src)
			if ra.Verdict != Decided || ra != rb {
				rt.Fatalf("%+v, %+v", ra, rb)
			}
			n++
			if err := da.Validate(); err != nil {
				rt.Fatal(err)
			}
			u := learner.Uniform(testSeed, "shop", 2, n, da.ID)
			if da.Action != learner.Draw(da.Propensities, u) || da.N != n || ra.N != n ||
				da.ContextsThrough != through || da.Source != src.Offset || da.Time != src.Time || da.Partition != 2 ||
				da.Epoch != 1 || da.LearnedThrough != plain.LearnedThrough() ||
				da.Learned != plain.Epoch().Learner.Learned() || string(da.Context) != string(raw) {
				rt.Fatalf("%+v", da)
			}
			wire := string(codec.AppendDecision(nil, &da))
			if wire != string(codec.AppendDecision(nil, &db)) {
				rt.Fatalf("%+v\n%+v", da, db)
			}
			if rapid.Bool().Draw(rt, "learn") {
				f := feedbackOf(&da, plain.LearnedThrough()+1, codec.Observed, float64(i%3)/2)
				if err := errors.Join(plain.Learn(&f, nil), busy.Learn(&f, nil)); err != nil {
					rt.Fatal(err)
				}
				if got := string(codec.AppendDecision(nil, &da)); got != wire {
					rt.Fatal("learning changed a decision that was made before")
				}
			}
		}
	})
}

// A used id meets its decision, or a conflict, until dedup later rounds; a decider that
// is told of the log's tail equals the one that wrote it.
func TestDecideDedup(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dedup := rapid.IntRange(1, 6).Draw(rt, "dedup")
		replica := newReplica(t, anyRules())
		d := NewDecider(replica, testSeed, "shop", 0, dedup)
		type round struct {
			id  string
			raw string
		}
		var rounds []round
		var log [][]byte
		var dec codec.Decision
		for range rapid.IntRange(1, 40).Draw(rt, "requests") {
			id := fmt.Sprint("id", rapid.IntRange(0, 9).Draw(rt, "id"))
			raw := fmt.Sprintf(`{"id":%q,"features":{"x":%d},"actions":["a","b"]}`, id, rapid.IntRange(0,
				1).Draw(rt, "x"))
			want, n := Decided, int64(len(rounds)+1)
			for k := max(0, len(rounds)-dedup); k < len(rounds); k++ {
				if rounds[k].id == id {
					want, n = Conflict, int64(k+1)
					if rounds[k].raw == raw {
						want = Duplicate
					}
				}
			}
			res := d.Decide(&dec, []byte(raw), "ignored", Source{Offset: RequestSource})
			if res.Verdict != want || res.N != n || res.ID != id || res.Err != nil {
				rt.Fatalf("%s: %+v, want %d of round %d", raw, res, want, n)
			}
			if want == Decided {
				rounds, log = append(rounds, round{id, raw}), append(log, codec.AppendDecision(nil, &dec))
			}
			if rapid.IntRange(0, 5).Draw(rt, "restart") == 0 {
				d = NewDecider(replica, testSeed, "shop", 0, dedup)
				from := rapid.IntRange(0, max(0, len(log)-dedup)).Draw(rt, "from")
				for _, b := range log[from:] {
					if err := codec.ParseDecision(&dec, b); err != nil {
						rt.Fatal(err)
					}
					d.Remember(&dec)
				}
				d.Resume(int64(len(log)+1), 0)
			}
			if d.Next() != int64(len(rounds)+1) {
				rt.Fatalf("next is %d after %d rounds", d.Next(), len(rounds))
			}
		}
	})
}

func TestDecideIDs(t *testing.T) {
	d := NewDecider(newReplica(t, anyRules()), testSeed, "shop", 3, 10)
	var dec codec.Decision
	for _, c := range []struct {
		raw, header string
		src         Source
		want        string
	}{
		{`{"actions":["a"]}`, "", Source{Offset: 41, Through: 42}, "3-41"},
		{`{"actions":["a"]}`, "", Source{Offset: RequestSource, Through: 99}, "r-3-2"},
		{`{"actions":["a"]}`, "event", Source{Offset: 43, Through: 44}, "event"},
		{`{"id":"own","actions":["a"]}`, "event", Source{Offset: RequestSource}, "own"},
		{`{"id":"","actions":["a"]}`, "", Source{Offset: RequestSource}, "r-3-5"},
	} {
		res := d.Decide(&dec, []byte(c.raw), c.header, c.src)
		if res.Verdict != Decided || res.ID != c.want || dec.ID != c.want {
			t.Errorf("%s: %+v, decision of %q, want id %q", c.raw, res, dec.ID, c.want)
		}
	}
	if d.ContextsThrough() != 44 {
		t.Errorf("contexts are read through %d, want 44: requests do not move it", d.ContextsThrough())
	}
	d.Pass(50)
	if d.ContextsThrough() != 50 {
		t.Errorf("contexts are read through %d, want 50", d.ContextsThrough())
	}
	d.Resume(3, 7)
	if d.Next() != 6 || d.ContextsThrough() != 50 {
		t.Errorf("Resume went back to round %d, context %d", d.Next(), d.ContextsThrough())
	}
	d.Resume(9, 60)
	if d.Next() != 9 || d.ContextsThrough() != 60 {
		t.Errorf("Resume went to round %d, context %d", d.Next(), d.ContextsThrough())
	}
}

// A decider that is told only of the log's tail goes on behind it.
func TestDeciderRemember(t *testing.T) {
	d := NewDecider(newReplica(t, anyRules()), testSeed, "shop", 0, 10)
	d.Remember(&codec.Decision{N: 41, ID: "x", ContextsThrough: 77, Context: []byte(`{"id":"x","actions":["a"]}`)})
	if d.Next() != 42 || d.ContextsThrough() != 77 {
		t.Errorf("next is %d, contexts are read through %d", d.Next(), d.ContextsThrough())
	}
	var dec codec.Decision
	if res := d.Decide(&dec, []byte(`{"id":"x","actions":["a"]}`), "",
		Source{Offset: RequestSource}); res.Verdict != Duplicate || res.N != 41 {
		t.Errorf("%+v", res)
	}
}

// What breaks a rule is invalid, the error names the field, and nothing changes.
func TestDecideInvalid(t *testing.T) {
	listed := &Rules{Actions: []string{"a", "b"}, MaxActions: 2,
		Features: []FeatureRule{{Name: "age", Kind: NumberFeature}, {Name: "country", Kind: TextFeature},
			{Name: "vip", Kind: BoolFeature}}}
	for _, c := range []struct {
		rules      *Rules
		raw, field string
		is         error
	}{
		{anyRules(), ``, "", codec.ErrCorrupt},
		{anyRules(), `{`, "", codec.ErrCorrupt},
		{anyRules(), `{"id":"x"}`, "actions", errNoActions},
		{anyRules(), `{"id":"x","actions":[]}`, "actions", nil},
		{anyRules(), `{"id":"x","actions":["a","b","c","d","e","f","g","h","i"]}`, "actions", errManyActions},
		{anyRules(), `{"id":"x","actions":["a","a"]}`, "actions", nil},
		{anyRules(), `{"id":"` + strings.Repeat("x", 257) + `","actions":["a"]}`, "id", nil},
		{listed, `{"actions":["a","z"]}`, "actions[1]", errAction},
		{listed, `{"features":{"age":"old"}}`, "features.age", errKind},
		{listed, `{"features":{"country":7}}`, "features.country", errKind},
		{listed, `{"features":{"vip":1}}`, "features.vip", errKind},
	} {
		d := NewDecider(newReplica(t, c.rules), testSeed, "shop", 0, 10)
		var dec codec.Decision
		res := d.Decide(&dec, []byte(c.raw), "", Source{Offset: 5, Through: 6})
		var e *codec.Error
		if res.Verdict != Invalid || !errors.As(res.Err, &e) || !strings.HasPrefix(e.Field, c.field) || c.is != nil &&
			!errors.Is(res.Err, c.is) {
			t.Errorf("%s: %+v", c.raw, res)
		}
		if d.Next() != 1 || d.ContextsThrough() != 0 || d.ids.live != 0 {
			t.Errorf("%s: it changed the decider", c.raw)
		}
	}
}

// A context whose decision would pass the limit of a record is refused.
func TestDecideTooLarge(t *testing.T) {
	d := NewDecider(newReplica(t, anyRules()), testSeed, "shop", 0, 10)
	var dec codec.Decision
	for size := codec.MaxRecordBytes - 3000; size <= codec.MaxRecordBytes; size += 100 {
		raw := `{"actions":["a"` + strings.Repeat(" ", size-len(`{"actions":["a"]}`)) + `]}`
		res := d.Decide(&dec, []byte(raw), "", Source{Offset: RequestSource})
		switch n := len(codec.AppendDecision(nil, &dec)); {
		case res.Verdict == Decided && n > codec.MaxRecordBytes:
			t.Fatalf("a decision of %d bytes", n)
		case res.Verdict == Invalid && !errors.Is(res.Err, codec.ErrTooLarge), res.Verdict != Decided &&
			res.Verdict != Invalid:
			t.Fatalf("%+v", res)
		case res.Verdict == Invalid && size < codec.MaxRecordBytes-2000:
			t.Fatalf("%d bytes are refused: %v", size, res.Err)
		}
	}
}

// probe is a learner that shows what it is given.
type probe struct {
	learner.Learner
	in *oracle.Input
}

func (p *probe) Propensities(dst []float64, x *oracle.Input) ([]float64, float64) {
	p.in = x
	return p.Learner.Propensities(dst, x)
}

// The model's list stands where the context lists nothing, in the model's order; a
// context may choose from it, in an order of its own; features that the model does not
// list are left out, those of actions are not.
func TestDecideInput(t *testing.T) {
	p := &probe{Learner: learner.NewUniform()}
	r := NewReplica()
	r.Begin(Epoch{Number: 1, Learner: p, Rules: &Rules{Actions: []string{"a", "b", "c"}, MaxActions: 8,
		Features: []FeatureRule{{Name: "age", Kind: NumberFeature}, {Name: "vip", Kind: BoolFeature}}}})
	d := NewDecider(r, testSeed, "shop", 0, 10)
	for _, c := range []struct{ raw, want string }{
		{`{"features":{"age":7,"unknown":"x","vip":true}}`, `[{age 1 7 } {vip 3 1 }] [] [{a []} {b []} {c []}]`},
		{`{"actions":["c",{"name":"a","features":{"price":2,"age":1}}]}`,
			`[] [] [{c []} {a [{price 1 2 } {age 1 1 }]}]`},
		{`{"features":[1,-2.5],"actions":["b"]}`, `[] [1 -2.5] [{b []}]`},
		{`{"features":{"age":null}}`, `[] [] [{a []} {b []} {c []}]`},
	} {
		var dec codec.Decision
		if res := d.Decide(&dec, []byte(c.raw), "", Source{Offset: RequestSource}); res.Verdict != Decided {
			t.Fatalf("%s: %+v", c.raw, res)
		}
		if got := fmt.Sprint(p.in.Features, p.in.Vector, p.in.Actions); got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.raw, got, c.want)
		}
		for i, a := range dec.Actions {
			if a != p.in.Actions[i].Name {
				t.Errorf("%s: action %d is %q", c.raw, i, a)
			}
		}
	}
}

func TestSeedHash(t *testing.T) {
	// printf '' | sha256sum
	if got := SeedHash(nil); got != "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" {
		t.Error(got)
	}
}

// FuzzDecide: no bytes make the decider panic, and what it decides is valid.
func FuzzDecide(f *testing.F) {
	f.Add([]byte(`{"id":"8f3a","features":{"hour":14,"country":"DE"},"actions":["a",{"name":"b","features":{"x":1}}]}`))
	f.Add([]byte(`{"features":[1,2,3],"actions":["a","b"]}`))
	f.Add([]byte{0x81, 0xa7, 'a', 'c', 't', 'i', 'o', 'n', 's', 0x91, 0xa1, 'a'})
	f.Add([]byte(`{"features":{"x":1e308},"actions":["a","b"]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		r := newReplica(t, anyRules())
		d := NewDecider(r, testSeed, "shop", 0, 10)
		var dec codec.Decision
		for n := int64(1); n <= 3; n++ {
			res := d.Decide(&dec, raw, fmt.Sprint("try", n), Source{Offset: RequestSource})
			if res.Verdict != Decided {
				return
			}
			if err := dec.Validate(); err != nil {
				t.Fatal(err)
			}
			fb := feedbackOf(&dec, n, codec.Observed, 0.5)
			if err := r.Learn(&fb, nil); err != nil {
				t.Fatal(err)
			}
			for _, p := range dec.Propensities {
				if math.IsNaN(p) {
					t.Fatal("a propensity is NaN")
				}
			}
		}
	})
}
