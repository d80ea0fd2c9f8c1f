package judge

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"hindsight/internal/dataset"
	"hindsight/internal/dataset/testkit"
	"hindsight/internal/logs"
	"hindsight/internal/loop"
	"hindsight/internal/model"
	"hindsight/internal/ope"
	"hindsight/internal/replay"
	"hindsight/pkg/oracle"
)

// judged returns the off-policy view of a log whose learners are those of [ModelFor].
func judged(t testing.TB, env *replay.Rounds) *OffPolicy {
	t.Helper()
	o, err := NewOffPolicy(env, func(_, spec string) (*Progressive, error) {
		l, err := model.ParseLearner(spec)
		if err != nil {
			return nil, err
		}
		m, files := replay.ModelFor(env, "m", l, loop.Window{Rounds: 200})
		built, err := m.Build(files)
		if err != nil {
			return nil, err
		}
		return NewProgressive(loop.Epoch{Number: 1, Rules: m.Rules(), Learner: built}, "m", replay.SecretSeed(1), env),
			nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

const targetText = "a,r,p,h,n,w\nx,1,.5,0000000b,3,u\ny,0,.25,0000000a00,4,u\nz,,.5,,3,u\nx,.5,1,00000004zz,7,u\n"

func targetLog(t testing.TB) *replay.Rounds {
	t.Helper()
	log, err := readLog("t.csv", strings.NewReader(targetText),
		logOptions{Options: logs.Options{Mapping: logs.Mapping{Action: "a", Reward: "r", Propensity: "p",
			Features: []string{"h:text", "n", "w"}}}})
	if err != nil {
		t.Fatal(err)
	}
	return log
}

// TestTargets: what policies play in each row. The actions are x, y, z: 0xb mod 3 = 2,
// 0xa mod 3 = 1, 4 mod 3 = 1; the third row has no outcome and is left out.
func TestTargets(t *testing.T) {
	o := judged(t, targetLog(t))
	if len(o.rows) != 3 || o.dropped != 1 {
		t.Fatalf("%d rows, %d dropped", len(o.rows), o.dropped)
	}
	if s := o.Settings(o.Options()); s.MinPropensity != .25 || s.Rows != 3 || s.WithoutOutcome != 1 || s.Events != 3 {
		t.Errorf("%+v", s)
	}
	if got := Mixed("eps:.1,eps:.2,always:x"); got != "always:x" {
		t.Errorf("what is mixed is %s", got)
	}
	for spec, want := range map[string][][]float64{
		"uniform":        {{1. / 3, 1. / 3, 1. / 3}, {1. / 3, 1. / 3, 1. / 3}, {1. / 3, 1. / 3, 1. / 3}},
		"always:z":       {{0, 0, 1}, {0, 0, 1}, {0, 0, 1}},
		"hash:h":         {{0, 0, 1}, {0, 1, 0}, {0, 1, 0}},
		"eps:1,hash:h":   {{1. / 3, 1. / 3, 1. / 3}, {1. / 3, 1. / 3, 1. / 3}, {1. / 3, 1. / 3, 1. / 3}},
		"eps:0,always:z": {{0, 0, 1}, {0, 0, 1}, {0, 0, 1}},
		"eps:0.3,hash:h": {{.1, .1, .8}, {.1, .8, .1}, {.1, .8, .1}},
		"eps:.5,eps:0.3,always:y": {{.5/3 + .05, .5/3 + .4, .5/3 + .05}, {.5/3 + .05, .5/3 + .4, .5/3 + .05},
			{.5/3 + .05, .5/3 + .4, .5/3 + .05}},
	} {
		got, err := o.target(spec)
		if err != nil {
			t.Fatal(err)
		}
		for i := range want {
			dst := make([]float64, 3)
			got.law(dst, i)
			for a := range dst {
				if math.Abs(dst[a]-want[i][a]) > 1e-12 {
					t.Errorf("%s in row %d: %v, want %v", spec, i, dst, want[i])
				}
			}
		}
	}
	for spec, want := range map[string]string{
		"":                 "expected logging, uniform",
		"uniform:3":        "expected logging, uniform",
		"always:w":         `there is no action "w" in the log; there are x, y, z`,
		"hash:k":           `there is no feature "k" in the log; there are h, n, w`,
		"eps:2,uniform":    "eps takes E,POLICY",
		"eps:.1":           "eps takes E,POLICY",
		"eps:.1,logging":   "it cannot be mixed",
		"eps:.1,always:w":  "there is no action",
		"learner:nonsense": "nonsense",
	} {
		if err := o.Check(spec); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", spec, err, want)
		}
	}
	if _, err := o.Evaluate("always:w", o.Options()); err == nil {
		t.Error("an action that is not there is judged")
	}
	if _, err := NewOffPolicy(timedLog(t), nil); err == nil {
		t.Error("a log without propensities was judged")
	}
	if _, err := NewOffPolicy(replay.Tail(replay.Head(targetLog(t), 3), 2), nil); !errors.Is(err, errNoOutcomes) {
		t.Errorf("a log whose one row has no outcome: %v", err)
	}
	for _, e := range Targets() {
		if !strings.Contains(errTarget.Error(), e.Name) || e.Meaning == "" {
			t.Errorf("%s is listed, and a policy that is not known does not say so", e.Name)
		}
	}
}

// TestMethod: what is said of how estimates clip and fit.
func TestMethod(t *testing.T) {
	const byAction = ", reward model of the same rows, by action"
	for _, c := range []struct {
		lambda float64
		folds  int
		want   string
	}{{0, 0, "λ chosen for each policy" + byAction}, {2, 1, "λ = 2" + byAction},
		{math.Inf(1), 1, "no clipping" + byAction},
		{2, 2, "λ = 2, reward model cross-fitted in 2 folds"}} {
		s := OffPolicySettings{CrossFit: c.folds}
		if s.Lambda = ope.Figure(c.lambda); s.Method() != c.want {
			t.Errorf("%v, %d folds: %s", c.lambda, c.folds, s.Method())
		}
	}
}

// TestStopWhen: a policy asks every 1,024 rows whether it is to stop, and plays the first action once it is.
func TestStopWhen(t *testing.T) {
	env, asked, stop := worldLog(t, 3, 3000), 0, errors.New("stop")
	var made *Progressive
	makes := judged(t, env).learner
	o, err := NewOffPolicy(env, func(name, spec string) (p *Progressive, err error) {
		if made, err = makes(name, spec); err == nil {
			made.StopWhen(func() error {
				if asked++; asked == 3 {
					return stop
				}
				return nil
			})
		}
		return made, err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.Evaluate("learner:uniform", o.Options()); !errors.Is(err, stop) || asked != 3 || made.n != 2048 {
		t.Errorf("asked %d times, stopped at row %d: %v", asked, made.n, err)
	}
	dst := []float64{0, 0.5}
	if made.law(dst, 0); dst[0] != 1 || dst[1] != 0 {
		t.Errorf("plays %v once it has stopped", dst)
	}
}

// TestShuffledEvaluation: without folds estimates do not depend on the order of rows, nor a
// head on what is behind it.
func TestShuffledEvaluation(t *testing.T) {
	log := worldLog(t, 1, 500)
	o := judged(t, log).Options()
	o.Model.Folds = 0
	for _, spec := range []string{"uniform", "hash:x", "eps:0.2,always:b", "logging"} {
		base, err := judged(t, log).Evaluate(spec, o)
		if err != nil {
			t.Fatal(err)
		}
		moved := judged(t, replay.Order(log, 1, 9))
		other, err := moved.Evaluate(spec, o)
		if err != nil {
			t.Fatal(err)
		}
		for i, e := range base.Estimates {
			if o := other.Estimates[i]; !(math.Abs(float64(o.Value-e.Value)) <= 1e-12) ||
				math.Abs(float64(o.SE-e.SE)) > 1e-12 {
				t.Errorf("%s %s: %v ± %v, and in another order %v ± %v", spec, e.Name, e.Value, e.SE, o.Value, o.SE)
			}
		}
		top := judged(t, replay.Head(log, 100))
		few, err := top.Evaluate(spec, top.Options())
		if err != nil || few.Rows != 100 {
			t.Errorf("%s: %d rows of a head, %v", spec, few.Rows, err)
		}
	}
}

// TestProgressive: a learner that learns each row after it was asked is judged without
// bias: the greedy one ends far below uniform, and near what it would really lose.
func TestProgressive(t *testing.T) {
	env := worldLog(t, 3, 4000)
	o := judged(t, env)
	opt := o.Options()
	opt.Bootstrap = 0
	loss := func(spec string) *ope.Estimate {
		e, err := o.Evaluate(spec, opt)
		if err != nil {
			t.Fatal(err)
		}
		return e.Estimates.Get("dr")
	}
	// The best actions lose .2 and .3; a blind start costs little over 4,000 rows.
	greedy, uniform := loss("learner:greedy"), loss("learner:uniform")
	if math.Abs(float64(greedy.Value)-.25) > .02+3*float64(greedy.SE) {
		t.Errorf("greedy loses %.4f ± %.4f, want about .25", greedy.Value, greedy.SE)
	}
	if want := loss("uniform"); math.Abs(float64(uniform.Value-want.Value)) > 1e-12 ||
		math.Abs(float64(uniform.SE-want.SE)) > 1e-12 {
		t.Errorf("the uniform learner %+v is not the uniform policy %+v", uniform, want)
	}
	if again := loss("learner:greedy"); again.Value != greedy.Value || again.SE != greedy.SE {
		t.Errorf("again %+v, want %+v", again, greedy)
	}
}

// TestOptionsOfOtherRanges: the reward model goes with the range. Of two rows each is judged
// by the other: y by that of y, (20 + 20)/2, and by that of x, 10, the mean.
func TestOptionsOfOtherRanges(t *testing.T) {
	log, err := readLog("t.csv", strings.NewReader("a,r,p\nx,10,.5\ny,20,.5\n"),
		logOptions{Options: logs.Options{Mapping: logs.Mapping{Action: "a", Reward: "r", Propensity: "p"},
			Range: loop.Range{Min: 10, Max: 20}}})
	if err != nil {
		t.Fatal(err)
	}
	o := judged(t, log)
	e, err := o.Evaluate("always:y", o.Options())
	if err != nil {
		t.Fatal(err)
	}
	if got := float64(e.Estimates.Get("dm").Value); math.Abs(got-15) > 1e-12 {
		t.Errorf("DM is %v, want 15", got)
	}
}

// TestFeaturesOfALog: the reward model sees what decided how good an action is. DM is then
// right of a policy that goes by it, and of means per action alone it is not.
func TestFeaturesOfALog(t *testing.T) {
	o := judged(t, worldLog(t, 4, 3000))
	opt := o.Options()
	opt.Bootstrap = 0
	opposite := func(folds int) (*ope.Evaluation, float64) {
		opt.Model.Folds = folds
		e, err := o.Evaluate("hash:x", opt)
		if err != nil {
			t.Fatal(err)
		}
		return e, float64(e.Estimates.Get("dm").Value)
	}
	truth := 0.0
	for _, x := range []int{0, 1} {
		truth += testkit.WorldMeans[x][hashText(fmt.Sprint("c", x))%3] / 2
	}
	if e, dm := opposite(5); e.RewardModel != "ridge" || math.Abs(dm-truth) > .04 {
		t.Errorf("a %s says %v, the truth is %v", e.RewardModel, dm, truth)
	}
	if e, dm := opposite(0); e.RewardModel != "mean" || math.Abs(dm-truth) < .08 {
		t.Errorf("a %s says %v, the truth is %v: the plant does not show", e.RewardModel, dm, truth)
	}
}

// TestContextsOfEvents: rows with actions of their own show them, in their order, with
// their features; a log without features shows nothing.
func TestContextsOfEvents(t *testing.T) {
	b := readEvents(t, `{"id":"1","features":{"x":1,"t":"u"},"actions":["c",{"name":"a","features":{"f":2}}],`+
		`"action":"a","propensity":0.75,"reward":1}
{"id":"2","features":{"x":3},"actions":[{"name":"b","features":{"f":4,"g":5}},"c"],"action":"b","propensity":0.5,`+
		`"reward":0}
`, dataset.Options{}, logs.Options{})
	show := judged(t, b).contexts()
	names := b.Actions
	got := ""
	for row := range 2 {
		var x oracle.Input
		for i, a := range show(&x, row) {
			got += fmt.Sprint(names[a], x.Actions[i].Features, " ")
		}
		got += fmt.Sprintln(x.Features)
	}
	want := "c[] a[{f 1 2 }] [{x 1 1 } {t 2 0 u}]\nb[{f 1 4 } {g 1 5 }] c[] [{x 1 3 }]\n"
	if got != want {
		t.Errorf("got  %swant %s", got, want)
	}
	plain := readEvents(t, `{"id":"1","actions":["c","a"],"action":"a","propensity":0.75,"reward":1}`,
		dataset.Options{}, logs.Options{})
	if judged(t, plain).contexts() != nil {
		t.Error("a log without features has contexts")
	}
}

// TestHashText: eight hexadecimal digits, and no fewer, are a number; any other text is that of its SHA-256.
func TestHashText(t *testing.T) {
	for text, want := range map[string]uint64{"0000000b": 11, "0000000bz": 11, "000000b": 0x2c21cce4, "u": 0x0bfe935e,
		"0000000z": 0xeb272bf6, "": 0xe3b0c442} {
		if got := hashText(text); got != want {
			t.Errorf("%q: %#x, want %#x", text, got, want)
		}
	}
}
