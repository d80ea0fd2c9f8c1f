package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// pinnedLog is a small log of one format, with what else a backtest of it needs.
type pinnedLog struct {
	name string
	path string
	args []string
}

const pinnedRows = 240

// stamp is the time of row i, ms later.
func stamp(i, ms int) string {
	at := time.Date(2021, 2, 4, 16, 0, 0, 0, time.UTC).Add(time.Duration(i)*7*time.Second +
		time.Duration(ms)*time.Millisecond)
	return at.Format(time.RFC3339Nano)
}

// pinnedDsjson has repeats, late rewards before and behind their events, a row without an
// action's probability law, activations and what is skipped or malformed.
func pinnedDsjson(r *rand.Rand) string {
	var b strings.Builder
	for i := range pinnedRows {
		a, other := 1+i%2, 2-i%2
		line := fmt.Sprintf(
			`{"_label_cost":%s,"_label_probability":0.75,"_label_Action":%d,"_labelIndex":%d,%s"Timestamp":"%s",`+
				`"EventId":"e%d",`+
				`"a":[%d,%d],"p":[0.75,0.25],"c":{"user":{"age":%d,"from":"%s"},"_multi":[{"_tag":"x","price":%d},{"_tag":"y",`+
				`"new":true}]}}`+"\n",
			[]string{"0", "-0.5", "-1"}[r.IntN(3)], a, a-1, map[bool]string{true: `"o":[{"v":1}],`}[r.IntN(2) == 0],
			stamp(i, 0), i, a, other, r.IntN(60), []string{"at", "de", "ch"}[r.IntN(3)], r.IntN(9))
		late := fmt.Sprintf(`{"RewardValue":%v,"EnqueuedTimeUtc":"%s","EventId":"e%d","Observations":[{"v":1}]}`+"\n",
			float64(r.IntN(5))/4, stamp(i, 9000), i)
		switch i % 12 {
		case 3:
			b.WriteString(line + line)
		case 5:
			b.WriteString(late + line)
		case 7:
			b.WriteString(strings.Replace(line, `"_label_cost"`, `"_skipLearn":true,"_label_cost"`, 1))
		case 9:
			b.WriteString(line + late + late)
		case 11:
			b.WriteString(line + "[CHECKPOINT INFO LINE]\n{\"c\":\n")
		default:
			b.WriteString(line)
		}
	}
	return b.String()
}

func pinnedCB(r *rand.Rand) string {
	var b strings.Builder
	for range pinnedRows {
		fmt.Fprintf(&b, "%d:%v:%v |u age:%d from=%s |w rain\n", 1+r.IntN(3), float64(r.IntN(5))/4,
			[]float64{.25, .5}[r.IntN(2)], r.IntN(60), []string{"at", "de"}[r.IntN(2)])
	}
	return b.String()
}

func pinnedADF(r *rand.Rand) string {
	var b strings.Builder
	for range pinnedRows {
		fmt.Fprintf(&b, "shared |u age:%d\n", r.IntN(60))
		n := 2 + r.IntN(3)
		played := r.IntN(n)
		for a := range n {
			if a == played {
				fmt.Fprintf(&b, "0:%v:%v ", float64(r.IntN(3))/2, 1/float64(n))
			}
			fmt.Fprintf(&b, "|a price:%d kind=%d\n", r.IntN(9), r.IntN(3))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// pinnedEvents has contexts and outcomes of their own, ids that repeat, and times that go back.
func pinnedEvents(r *rand.Rand) string {
	var b strings.Builder
	for i := range pinnedRows {
		p := []float64{.2, .5}[r.IntN(2)]
		outcome := fmt.Sprintf(`,"reward":%d,"outcome_time":"%s"`, r.IntN(3), stamp(i, r.IntN(60_000)))
		if i%4 == 0 {
			outcome = ""
		}
		fmt.Fprintf(&b,
			`{"id":"j%d","features":{"hour":%d,"vip":%v,"country":"%s"},"actions":["a","b",{"name":"c","features":{"n":%d}}],`+
				`"time":"%s","action":"%s","propensity":%v%s}`+"\n",
			i, r.IntN(24), r.IntN(2) == 0, []string{"at", "de"}[r.IntN(2)], r.IntN(5), stamp(i-3*(i%2), 0),
			[]string{"a", "b", "c"}[r.IntN(3)], p, outcome)
		switch i % 8 {
		case 0:
			fmt.Fprintf(&b, `{"id":"j%d","reward":%d,"time":"%s"}`+"\n", i, r.IntN(3), stamp(i, 70_000))
		case 4:
			fmt.Fprintf(&b, `{"id":"j%d","withdrawn":true}`+"\n", i)
		}
	}
	return b.String()
}

// pinnedBandit has quotes from the middle on, columns of numbers, of texts and of both, empty
// cells, rounds without an outcome, repeated ids and rows that cannot be read.
func pinnedBandit(r *rand.Rand) string {
	var b strings.Builder
	b.WriteString("id;at;who;paid;back;p;age;from;mixed;note\n")
	for i := range pinnedRows {
		paid, back := fmt.Sprint(float64(r.IntN(5))/4), stamp(i, r.IntN(90_000))
		if i%9 == 0 {
			paid, back = "", ""
		}
		note := []string{"", "plain", "7", "-1.5"}[r.IntN(4)]
		if i > pinnedRows/2 && i%3 == 0 {
			note = []string{"\"a \"\"word\"\"; and more\"", "\"two\nlines\""}[i%2]
		}
		mixed := fmt.Sprint(r.IntN(4))
		if i == 200 {
			mixed = "none"
		}
		fmt.Fprintf(&b, "i%d;%s;%s;%s;%s;%v;%s;%s;%s;%s\n", i, stamp(i, 0), []string{"left", "right", "mid"}[r.IntN(3)],
			paid, back, []string{".25", "0.5"}[r.IntN(2)],
			[]string{"31", " 4.5", "", "1e2"}[r.IntN(4)], []string{"at", "de", ""}[r.IntN(3)], mixed, note)
		switch i % 40 {
		case 7:
			b.WriteString("short;row\n")
		case 9:
			fmt.Fprintf(&b, "i%d;%s;left;1;%s;.5;;;1;\n", i-1, stamp(i, 1), stamp(i, 2))
		}
	}
	return b.String()
}

func pinnedItems() string {
	return ",item_id,item_feature_0,item_feature_1\n0,0,.5,x\n1,1,-1,y\n2,2,2,x\n"
}

func pinnedOpenBandit(r *rand.Rand) string {
	var b strings.Builder
	b.WriteString(
		",timestamp,item_id,position,click,propensity_score,user_feature_0,user-item_affinity_0,user-item_affinity_1\n")
	for i := range pinnedRows {
		fmt.Fprintf(&b, "%d,%s,%d,%d,%d,%v,%s,%d,%v\n", i, strings.Replace(stamp(i-2*(i%5), 250), "T", " ", 1),
			r.IntN(3), 1+r.IntN(3), r.IntN(2),
			[]float64{.3, .4}[r.IntN(2)], []string{"aa81", "0f0f"}[r.IntN(2)], r.IntN(3), float64(r.IntN(4))/2)
	}
	return b.String()
}

func pinnedLabelled(r *rand.Rand) string {
	var b strings.Builder
	b.WriteString("label,n_a,c_b,n_c\n")
	for i := range pinnedRows {
		c := []string{"red", "?", "", `"blue, or ""green"""`}[r.IntN(min(3+i/100, 4))]
		fmt.Fprintf(&b, "%s,%s,%s,%v\n", []string{"no", "yes", "may"}[r.IntN(3)],
			[]string{"1", "", "-2.25", "123456789.123456789"}[r.IntN(4)], c, r.Float64())
		if i%50 == 3 {
			b.WriteString("yes,word,red,1\nno,1\n")
		}
	}
	return b.String()
}

func pinnedLogs(t *testing.T) []pinnedLog {
	r := rand.New(rand.NewPCG(1, 17))
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	file("obd/item_context.csv", pinnedItems())
	columns := []string{"--id-column", "id", "--time-column", "at", "--outcome-time-column", "back", "--action-column",
		"who", "--reward-column", "paid",
		"--propensity-column", "p", "--features", "age,from:text,mixed,note", "--window", "1m"}
	return []pinnedLog{
		{"dsjson", file("ds.json", pinnedDsjson(r)), []string{"--window", "1m"}},
		{"cb", file("cb.txt", pinnedCB(r)), nil},
		{"cb_adf", file("adf.txt", pinnedADF(r)), nil},
		{"jsonl", file("events.jsonl", pinnedEvents(r)), []string{"--window", "1m"}},
		{"bandit", file("bandit.csv", pinnedBandit(r)), columns},
		{"obd", filepath.Dir(file("obd/log.csv", pinnedOpenBandit(r))), nil},
		{"multiclass", file("labelled.csv", pinnedLabelled(r)), nil},
	}
}

// pinned returns a line of JSON for what was read and for each run: all but speeds and sentences, and
// of the course its digest.
func pinned(t *testing.T, log pinnedLog) string {
	args := append([]string{"backtest", "--json", "--data", log.path, "--orders", "2"}, log.args...)
	got := execute(t.Context(), args...)
	if got.code != 0 {
		t.Fatalf("%s: exit code %d: %s", log.name, got.code, got.stderr)
	}
	var all struct {
		Intake map[string]any   `json:"intake"`
		Runs   []map[string]any `json:"runs"`
	}
	d := json.NewDecoder(strings.NewReader(got.stdout))
	if d.UseNumber(); d.Decode(&all) != nil || len(all.Runs) != 2 || all.Intake == nil {
		t.Fatalf("%s: %s", log.name, got.stdout)
	}
	line := func(x any) string {
		b, err := json.Marshal(x)
		if err != nil {
			t.Fatal(err)
		}
		return string(bytes.ReplaceAll(b, []byte(filepath.Dir(log.path)), nil)) + "\n"
	}
	text := log.name + " " + line(all.Intake)
	for _, r := range all.Runs {
		delete(r, "rounds_per_second")
		certificate := r["certificate"].(map[string]any)
		delete(certificate, "assumptions")
		delete(certificate, "notes")
		r["course"] = fmt.Sprintf("%x", sha256.Sum256([]byte(line(r["course"]))))
		text += line(r)
	}
	return text
}

// TestPinnedBacktests holds what a backtest says of a small log of each format to the bit, in
// two row orders. HINDSIGHT_UPDATE rewrites the file.
func TestPinnedBacktests(t *testing.T) {
	const golden = "testdata/pinned.txt"
	text := ""
	for _, log := range pinnedLogs(t) {
		text += pinned(t, log)
	}
	if os.Getenv("HINDSIGHT_UPDATE") != "" {
		if err := os.WriteFile(golden, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	want, got := strings.Split(string(b), "\n"), strings.Split(text, "\n")
	for i := range max(len(want), len(got)) {
		if i >= len(want) || i >= len(got) || want[i] != got[i] {
			t.Fatalf("line %d:\ngot  %s\nwant %s", i+1, got[min(i, len(got)-1)], want[min(i, len(want)-1)])
		}
	}
}
