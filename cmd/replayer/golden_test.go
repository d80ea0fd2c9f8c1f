package main

import (
	"encoding/csv"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"hindsight/internal/style"
	"hindsight/internal/testkit/daily"
)

var updateGolden = flag.Bool("update", false, "write the golden files of tables, pages and CSV")

// unlike is what differs from run to run: speeds, times, builds, folders.
var unlike = []struct {
	pattern *regexp.Regexp
	by      string
}{
	{regexp.MustCompile(`(?s)<style>.*?</style>|<pre>.*?</pre>`), ""},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d)?(Z| UTC) by replayer \S+`), "TIME by BUILD"},
	{regexp.MustCompile(`<td class="text ">(made|version)</td><td class="text ">[^<]*`), "$1"},
	{regexp.MustCompile(`(?m)(→.*\S) +[\d,.]+$`), "$1 SPEED"},
	{regexp.MustCompile(`(?s)(<caption><span>Learners and delays.*?</table>)`), "RUNS"},
	{regexp.MustCompile(` at [\d,.]+ a second`), " at SPEED a second"},
}

var lastCell = regexp.MustCompile(`<td class="">[^<]*</td></tr>`)

// goldenRuns are commands whose tables, pages and CSV are in golden files.
var goldenRuns = map[string]string{
	"world": `backtest --rounds 40 --orders 2 --learner dafa --learner egreedy:0.05 --delays exp:5 --window 20
		--sweep 0,3 --report DIR/out.html --csv DIR/csv`,
	"log": `backtest --data SHOP --time-column at --outcome-time-column seen --action-column item --propensity-column p
		--reward-column bought --features hour,plan --window 20 --oracle linear --policy logging --policy uniform
		--policy always:red --policy learner:egreedy:0.1 --bootstrap 20 --min-events 10
		--report DIR/out.html --csv DIR/csv --sweep 0,10`,
	"window": "window --rounds 100 --windows 5,20 --seeds 2 --delays exp:8 --report DIR/out.html --out DIR/csv",
	"worst":  "worst --rounds 60 --steps 2 --random 2 --draws 2 --out DIR/worst.txt",
	"paper":  "paper --quick --seeds 2 --claim weighting --report DIR/out.html --out DIR/csv",
	"fit":    "fit --env linear:3,4 --rounds 400 --fit-rows 200 --functions 6 --out DIR/class.jsonl",
}

// What commands print, the pages and the CSV that they write, stay what they were.
func TestGolden(t *testing.T) {
	for i, name := range slices.Sorted(maps.Keys(goldenRuns)) {
		if testing.Short() && !daily.Turn(t, i, 3) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			line := goldenRuns[name]
			dir := t.TempDir()
			shop := writeShop(t, 200)
			line = strings.NewReplacer("DIR", dir, "SHOP", shop).Replace(line)
			got := execute(t.Context(), strings.Fields(line)...)
			if got.code != 0 {
				t.Fatalf("exit code %d: %s", got.code, got.stderr)
			}
			text := got.stdout + goldenFiles(t, dir)
			for _, u := range unlike {
				text = u.pattern.ReplaceAllStringFunc(text, func(found string) string {
					if u.by == "RUNS" {
						return lastCell.ReplaceAllString(found, "</tr>")
					}
					return u.pattern.ReplaceAllString(found, u.by)
				})
			}
			text = strings.NewReplacer(dir, "DIR", shop, "SHOP", style.Library, "LIBRARY").Replace(text)
			path := filepath.Join("testdata", "golden", name+".txt")
			if *updateGolden {
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			was, now := strings.Split(string(want), "\n"), strings.Split(text, "\n")
			for i := range was {
				if i >= len(now) || was[i] != now[i] {
					t.Fatalf("%s:%d: was\n%s\nis\n%s", path, i+1, was[i], now[min(i, len(now)-1)])
				}
			}
		})
	}
}

// goldenFiles joins the files of a folder; of a page without the scripts that are always there.
func goldenFiles(t *testing.T, dir string) string {
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) == ".png" || filepath.Ext(path) == ".jsonl" {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		fmt.Fprintf(&b, "\n== %s\n%s", name, withoutScripts(withoutSpeeds(string(text))))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// withoutScripts keeps what of a page is its own: of the scripts the data of the charts.
func withoutScripts(page string) string {
	parts := strings.Split(page, "<script>")
	for i, p := range parts {
		if i > 0 && !strings.HasPrefix(p, "const charts") {
			_, parts[i], _ = strings.Cut(p, "</script>")
		}
	}
	return strings.Join(parts, "")
}

// withoutSpeeds empties the columns of CSV that differ from run to run.
func withoutSpeeds(text string) string {
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || len(rows) == 0 {
		return text
	}
	for _, name := range []string{"rounds_per_second", "made", "version"} {
		if at := slices.Index(rows[0], name); at >= 0 {
			for _, row := range rows[1:] {
				row[at] = ""
			}
		}
	}
	var b strings.Builder
	_ = csv.NewWriter(&b).WriteAll(rows)
	return b.String()
}
