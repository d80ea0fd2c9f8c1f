package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hindsight/internal/browsertest"
)

// writeShop writes a bandit log with times and propensities: "red" earns by day, "blue" by
// night, and every eleventh reward never came.
func writeShop(t *testing.T, rows int) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("at,seen,item,p,bought,hour,plan\n")
	for i := range rows {
		x := uint32(i) * 2654435761
		item, p, hour := "red", .7, i/20%24
		if x>>16%10 >= 7 {
			item, p = "blue", .3
		}
		bought := 0
		if (item == "red") == (hour < 12) && x>>8%4 > 0 {
			bought = 1
		}
		reward, seen := fmt.Sprint(bought), fmt.Sprint(1_700_000_000+60*i+int(x>>4%3000))
		if i%11 == 10 {
			reward, seen = "", ""
		}
		fmt.Fprintf(&b, "%d,%s,%s,%v,%s,%d,%s\n", 1_700_000_000+60*i, seen, item, p, reward, hour,
			[]string{"free", "pro"}[x>>12%2])
	}
	path := filepath.Join(t.TempDir(), "shop.csv")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// shopReport makes the report of a backtest on that log and returns its path.
func shopReport(t *testing.T, more ...string) (html string, got result) {
	t.Helper()
	html = filepath.Join(t.TempDir(), "out.html")
	args := append([]string{"backtest", "--data", writeShop(t, 1200), "--time-column", "at", "--outcome-time-column",
		"seen", "--action-column", "item", "--propensity-column", "p",
		"--reward-column", "bought", "--features", "hour,plan", "--window", "200", "--oracle", "linear",
		"--learner", "dafa",
		"--learner", "egreedy:0.05", "--policy", "logging", "--policy", "uniform", "--policy", "always:red",
		"--bootstrap", "50", "--sweep", "0,10,100", "--report", html}, more...)
	got = execute(t.Context(), args...)
	if got.code != 0 {
		t.Fatalf("exit code %d: %s", got.code, got.stderr)
	}
	return html, got
}

// The report's figures are those of --json and of --csv.
func TestReportJSONAndCSV(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	html, got := shopReport(t, "--json", "--csv", dir)
	var o map[string]any
	if err := json.Unmarshal([]byte(got.stdout), &o); err != nil {
		t.Fatal(err)
	}
	for _, key := range strings.Fields("runs policies estimators sweep data parameters") {
		if o[key] == nil {
			t.Errorf("JSON has no %s", key)
		}
	}
	runs := o["runs"].([]any)
	if len(runs) != 4 { // 2 learners × the log's own delays and none
		t.Errorf("%d runs", len(runs))
	}
	if sum := number(t, runs[0].(map[string]any), "contexts.groups"); sum == 0 {
		t.Error("no contexts were looked at")
	}
	inputs := need(t, o, "parameters.inputs").([]any)
	if len(inputs) != 1 || len(inputs[0].(map[string]any)["sha256"].(string)) != 64 {
		t.Errorf("inputs %v", inputs)
	}
	page, err := os.ReadFile(html)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{inputs[0].(map[string]any)["sha256"].(string), "always:red", "hour", "the " +
		"delays cost", `id="chart-estimates"`} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the report does not say %q", want)
		}
	}
	csv, err := os.ReadFile(filepath.Join(dir, "runs.csv"))
	if err != nil || strings.Count(string(csv), "\n") != 5 {
		t.Errorf("runs.csv: %v\n%s", err, csv)
	}
	if strings.Contains(execute(t.Context(), "backtest", "--rounds", "200", "--json").stdout, `"sweep"`) {
		t.Error("a sweep was made without a report")
	}
}

func TestReportUsage(t *testing.T) {
	for _, sweep := range []string{"ten", "10,5", "-1"} {
		if got := execute(t.Context(), "backtest", "--rounds", "100", "--report", filepath.Join(t.TempDir(), "x.html"),
			"--sweep", sweep); got.code != 2 || !strings.Contains(got.stderr, "--sweep") {
			t.Errorf("--sweep %s: exit code %d: %s", sweep, got.code, got.stderr)
		}
	}
	if got := execute(t.Context(), "backtest", "--rounds", "100", "--report", filepath.Join(t.TempDir(), "none",
		"x.html"), "--sweep", "none"); got.code != 1 {
		t.Errorf("a folder that is not there: exit code %d", got.code)
	}
}

// ink counts the pixels that a chart draws where its grid is, which it takes away for that:
// those of the series that draws least, if each is shown alone.
const ink = `async id => {
	const copy = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
	const u = drawn[id], box = u.bbox, own = u.series.map(s => s.show), grids = u.axes.map(a => a.grid.show);
	const settled = () => new Promise(done => setTimeout(done, 0));
	const pixels = async show => {
		own.forEach((_, k) => k > 0 && u.setSeries(k, {show: show(k)}));
		await settled();
		copy.canvas.width = box.width;
		copy.canvas.height = box.height;
		copy.drawImage(u.ctx.canvas, -box.left, -box.top);
		return new Uint32Array(copy.getImageData(0, 0, box.width, box.height).data.buffer).reduce((n, v) => n + (v !== 0), 0);
	};
	u.axes.forEach(a => a.grid.show = false);
	let least = Infinity;
	for (const k of charts.find(c => c.id === id).views[0].series.keys()) least = Math.min(least, await pixels(i => i ` +
	`=== k + 1));
	u.axes.forEach((a, k) => a.grid.show = grids[k]);
	await pixels(k => own[k]);
	return least;
}`

// TestBrowserOtherReports opens those of the other commands.
func TestBrowserOtherReports(t *testing.T) {
	b, dir := browsertest.Start(t), t.TempDir()
	for name, args := range map[string][]string{
		"window": {"window", "--rounds", "400", "--seeds", "2"},
		"inject": {"inject", "--rounds", "300", "--log", "mem:"},
		"paper":  {"paper", "--quick", "--seeds", "2", "--claim", "weighting"},
	} {
		html := filepath.Join(dir, name+".html")
		if got := execute(t.Context(), append(args, "--report", html)...); got.code != 0 {
			t.Fatalf("%s: exit code %d: %s", name, got.code, got.stderr)
		}
		p := b.Open(t, html)
		p.Picture("report-" + name)
		for _, id := range browsertest.Eval[[]string](p, `charts.map(c => c.id)`) {
			if n := browsertest.Eval[int](p, fmt.Sprintf(`(%s)(%q)`, ink, id)); n < 50 {
				t.Errorf("%s: chart %s has %d pixels of marks", name, id, n)
			}
		}
		if len(browsertest.Eval[[]string](p, `Object.keys(drawn)`)) == 0 {
			t.Errorf("%s has no chart", name)
		}
		if got := p.Problems(); len(got) > 0 {
			t.Errorf("%s: problems: %q", name, got)
		}
		for _, f := range p.Accessible("report-" + name) {
			t.Errorf("%s: %s", name, f)
		}
	}
}

// TestBrowserReport opens a report in a browser that reaches nothing but this machine.
func TestBrowserReport(t *testing.T) {
	b := browsertest.Start(t)
	html, _ := shopReport(t)
	p := b.Open(t, html)
	ids := browsertest.Eval[[]string](p, `charts.map(c => c.id)`)
	if want := strings.Fields("estimates course policy-course delays outstanding regret sweep"); !slices.Equal(ids,
		want) {
		t.Errorf("charts %q, want %q", ids, want)
	}
	for _, id := range ids {
		if n := browsertest.Eval[int](p, fmt.Sprintf(`(%s)(%q)`, ink, id)); n < 50 {
			t.Errorf("chart %s has %d pixels of marks", id, n)
		}
	}
	p.Picture("report-light")

	t.Run("colours", func(t *testing.T) {
		const colours = `[...document.querySelectorAll(".legend button")].map((b) => b.dataset.series + "=" + ` +
			`b.querySelector("i").style.borderColor)`
		of := map[string]string{}
		for _, text := range browsertest.Eval[[]string](p, colours) {
			name, colour, _ := strings.Cut(text, "=")
			if was, ok := of[name]; ok && was != colour || colour == "" {
				t.Errorf("%s is %q in one chart and %q in another", name, was, colour)
			}
			of[name] = colour
		}
		if len(of) < 4 || !strings.Contains(of["logging"], "aside") {
			t.Errorf("colours %v", of)
		}
	})
	t.Run("hover", func(t *testing.T) {
		legend := `document.querySelector("#chart-course .legend").textContent`
		before := browsertest.Eval[string](p, legend)
		p.Hover("#chart-course .u-over", .3, .5)
		p.Wait(fmt.Sprintf(`%s !== %q`, legend, before))
		if now := browsertest.Eval[string](p, legend); !strings.Contains(now, "UTC") {
			t.Errorf("hovering says %q", now)
		}
	})
	t.Run("toggle", func(t *testing.T) {
		button := `#chart-sweep .legend button`
		shown := `drawn.sweep.series.map(s => s.show).slice(1).join()`
		was := browsertest.Eval[string](p, shown)
		p.Click(button)
		p.Wait(fmt.Sprintf(`document.querySelector(%q).getAttribute("aria-pressed") === "false"`, button))
		// the line and the ends of its band
		if now := browsertest.Eval[string](p, shown); strings.Count(now, "false") != 3 {
			t.Errorf("series are shown: %s, before: %s", now, was)
		}
		p.Click(button)
		if now := browsertest.Eval[string](p, shown); now != was {
			t.Errorf("series are shown: %s, want %s", now, was)
		}
		p.Click(`#chart-course .views button:nth-child(2)`)
		p.Wait(
			`document.querySelector("#chart-course .views button:nth-child(2)").getAttribute("aria-pressed") === "true"`)
	})
	t.Run("dark, small and on paper", func(t *testing.T) {
		back := `getComputedStyle(document.documentElement).backgroundColor`
		light := browsertest.Eval[string](p, back)
		p.Media(browsertest.Media{Dark: true})
		if browsertest.Eval[string](p, back) == light {
			t.Error("dark is as light")
		}
		p.Picture("report-dark")
		p.Size(390, 844)
		p.Wait(`drawn.course.width < 390`)
		if wide := browsertest.Eval[int](p, `document.documentElement.scrollWidth`); wide > 390 {
			t.Errorf("the page is %d pixels wide on a screen of 390", wide)
		}
		p.Picture("report-small")
		p.Size(1280, 800)
		p.Media(browsertest.Media{Dark: true, Print: true})
		p.Wait(`document.documentElement.dataset.print === ""`)
		if browsertest.Eval[string](p, back) != "rgb(255, 255, 255)" {
			t.Error("paper is not white")
		}
		p.PDF("report")
		p.Picture("report-paper")
	})
	if got := p.Problems(); len(got) > 0 {
		t.Errorf("problems: %q", got)
	}
	if got := p.Requests(); len(got) != 1 && !(len(got) == 2 && strings.HasPrefix(got[1], "data:")) {
		t.Errorf("the page asked for %q", got)
	}
	for _, f := range p.Accessible("report") {
		t.Error(f)
	}
}
