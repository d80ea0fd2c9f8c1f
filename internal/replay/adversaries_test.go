package replay

import (
	"cmp"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"hindsight/internal/delay"
	"hindsight/internal/logs"
	"hindsight/internal/world"
)

// draws returns the delays of n rounds with one play.
func draws(d *delay.Delays, n int, p delay.Play) []int64 {
	out := make([]int64, n)
	for t := range out {
		p.Round = t
		out[t] = d.Delay(&p)
	}
	return out
}

// TestAdversariesByHand holds each adversary to what its name says.
func TestAdversariesByHand(t *testing.T) {
	truth := []float64{0.5, 0.2, 0.2}
	for _, c := range []struct {
		spec string
		play delay.Play
		want []int64
	}{
		{"burst:3", delay.Play{}, []int64{2, 1, 0, 2, 1, 0, 2}}, // all at decisions 2, 5, 8
		{"burst:1", delay.Play{}, []int64{0, 0, 0}},
		{"head:3,5", delay.Play{}, []int64{5, 0, 0, 5, 0, 0, 5}},
		{"starve-best:9", delay.Play{Action: 0, Truth: truth}, []int64{0, 0}},
		{"starve-best:9", delay.Play{Action: 1, Truth: truth}, []int64{9, 9}},
		{"starve-best:9", delay.Play{Action: 2, Truth: truth}, []int64{9, 9}}, // as good
		{"loss:2,10", delay.Play{Loss: 0}, []int64{2, 2}},
		{"loss:2,10", delay.Play{Loss: 1}, []int64{10, 10}},
		{"loss:2,10", delay.Play{Loss: 0.5}, []int64{6, 6}},
		{"loss:10,2", delay.Play{Loss: 0.75}, []int64{4, 4}},
		{"never-bad:1", delay.Play{Loss: 1}, []int64{delay.Never, delay.Never}},
		{"never-bad:1", delay.Play{Loss: 0.99}, []int64{0, 0}},
		{"never-bad:0", delay.Play{Loss: 1}, []int64{0, 0}},
		{"reorder:1", delay.Play{}, []int64{0, 0}},
		{"burst:3+head:2,10+constant:1", delay.Play{}, []int64{13, 2, 11, 3, 12, 1}},
		{"never-bad:1+loss:3,4", delay.Play{Loss: 0}, []int64{3}},
	} {
		if got := draws(delays(t, c.spec, 1), len(c.want), c.play); !slices.Equal(got, c.want) {
			t.Errorf("%s of %+v: %v, want %v", c.spec, c.play, got, c.want)
		}
	}
}

// TestSeededAdversaries holds the laws of those that draw.
func TestSeededAdversaries(t *testing.T) {
	const n = 50_000
	counts := map[int64]int{}
	for _, d := range draws(delays(t, "reorder:4", 3), n, delay.Play{}) {
		counts[d]++
	}
	for d := range int64(4) {
		if math.Abs(float64(counts[d])-n/4) > 4*math.Sqrt(n*3.0/16) {
			t.Errorf("reorder:4 gives %v", counts)
		}
	}
	if len(counts) != 4 {
		t.Errorf("reorder:4 gives %v", counts)
	}
	lost := 0
	for _, d := range draws(delays(t, "never-bad:0.3", 3), n, delay.Play{Loss: 1}) {
		if d == delay.Never {
			lost++
		}
	}
	if math.Abs(float64(lost)-0.3*n) > 4*math.Sqrt(n*0.21) {
		t.Errorf("never-bad:0.3 loses %d of %d bad ones", lost, n)
	}
	for _, spec := range []string{"reorder:100", "never-bad:0.5"} {
		one, again, other := draws(delays(t, spec, 1), 100, delay.Play{Loss: 1}),
			draws(delays(t, spec, 1), 100, delay.Play{Loss: 1}), draws(delays(t, spec, 2), 100, delay.Play{Loss: 1})
		if !slices.Equal(one, again) || slices.Equal(one, other) {
			t.Errorf("%s does not depend on the seed and on it alone", spec)
		}
	}
}

func TestAdversaryErrors(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	log := timedLog(t)
	for spec, want := range map[string]string{
		"burst:0":                    "burst: every is \"0\": it must be a whole number in [1,",
		"head:3":                     "head takes the parameters every,wait, found 1 parameters",
		"loss:1":                     "loss takes the parameters low,high",
		"never-bad:2":                "never-bad: p is \"2\"",
		"reorder:0.5":                "reorder: window is",
		"starve-best:5":              "the best action is not known of this data",
		"recorded:":                  "recorded takes the parameters FILE, found none",
		"recorded:" + dir + "/none":  "no such file",
		"recorded:" + write("a", ""): "a:1: the file is empty",
		"recorded:" +
			write("b", "3\nx\n"): `b:2: "x" is not a delay: expected a whole number of later decisions, or never`,
		"recorded:" + write("c", "3\n-1\n"):   `c:2: "-1" is not a delay`,
		"recorded:" + write("d", "3\n\n4"):    `d:2: "" is not a delay`,
		"recorded:" + write("e", "x,y\n1,2"):  `e:1: column "decision_ts": there is no such column; there are x, y`,
		"recorded:" + write("f", "at,back\n"): `f:1: column "decision_ts"`,
	} {
		_, err := delay.Parse(spec, log.DelayOptions(1))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", spec, err, want)
		}
	}
	for _, o := range []delay.Options{{}, OfWorld(world.NewSigmoid(1, 5, world.SigmoidOptions{})).DelayOptions(1),
		parseLog(t, "a,l\np,1\n", logs.Mapping{Action: "a", Loss: "l"}).DelayOptions(1)} {
		if _, err := delay.Parse("recorded", o); err == nil || !strings.Contains(err.Error(),
			"no times of outcomes; name them with --time-column") {
			t.Errorf("recorded of %+v: %v", o, err)
		}
	}
}

// TestRecordedFile holds that a file of delays, and a log, lend theirs to any
// environment, and begin anew.
func TestRecordedFile(t *testing.T) {
	dir := t.TempDir()
	list, log := filepath.Join(dir, "list"), filepath.Join(dir, "log.csv")
	for path, text := range map[string]string{list: "3\r\nnever\n0", log: timedText} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o := delay.Options{Seed: 1, Times: timedMapping()}
	for spec, want := range map[string][]int64{
		"recorded:" + list:                 {3, delay.Never, 0, 3, delay.Never},
		"recorded:" + list + "+constant:1": {4, delay.Never, 1, 4},
		"recorded:" + log:                  {2, 0, delay.Never, 0, 2},
	} {
		d, err := delay.Parse(spec, o)
		if err != nil {
			t.Fatal(err)
		}
		if got := draws(d, len(want), delay.Play{}); !slices.Equal(got, want) || d.Spec != spec {
			t.Errorf("%v: %v, want %v", d, got, want)
		}
		if d.Times != nil {
			t.Errorf("%v: another log's times of day", d)
		}
	}
}

func roundsOf(outcomes []delay.Awaited) (out []int32) {
	for _, o := range outcomes {
		out = append(out, o.Round)
	}
	return out
}

// TestScheduleAgainstTwin lays out delays at once from their definition: due after
// decision t + d, rounds in order, the late ones at the end in the order of t + d.
func TestScheduleAgainstTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw := rapid.SliceOfN(rapid.OneOf(rapid.Int64Range(0, 4), rapid.Int64Range(delay.Never, 50)), 1,
			40).Draw(t, "delays")
		n := len(raw)
		s := delay.NewSchedule(n, nil)
		for i, d := range raw {
			s.Add(d, i)
			if want := min(d, int64(n-1-i)); s.Cut != want {
				t.Fatalf("raw delay of round %d is %d, want %d", i, s.Cut, want)
			}
			var want []int32
			for r := range i + 1 {
				if raw[r] != delay.Never && int64(r)+raw[r] == int64(i) {
					want = append(want, int32(r))
				}
			}
			if got := roundsOf(s.After(i)); !slices.Equal(got, want) {
				t.Fatalf("after decision %d: %v, want %v", i, got, want)
			}
		}
		var rest []int32
		for r, d := range raw {
			if d != delay.Never && r+int(d) >= n {
				rest = append(rest, int32(r))
			}
		}
		slices.SortStableFunc(rest, func(a, b int32) int { return cmp.Compare(int64(a)+raw[a], int64(b)+raw[b]) })
		if got := roundsOf(s.Rest()); !slices.Equal(got, rest) {
			t.Fatalf("at the end: %v, want %v", got, rest)
		}
	})
}

// TestScheduleByTime holds that outcomes between the same decisions come in the order
// of their times.
func TestScheduleByTime(t *testing.T) {
	times := []int64{30, 20, 25, 20}
	s := delay.NewSchedule(4, times)
	for i, d := range []int64{3, 2, 1, 0} {
		s.Add(d, i)
	}
	if got := roundsOf(s.After(3)); !slices.Equal(got, []int32{1, 3, 2, 0}) {
		t.Errorf("%v", got)
	}
	s = delay.NewSchedule(4, times)
	s.AddAt(0, 0, 1)
	if got := s.After(0); len(got) != 1 || got[0] != (delay.Awaited{Action: 1, Last: true}) || times[0] != 30 {
		t.Errorf("%+v, and the times of all runs are changed by one: %v", got, times)
	}
}
