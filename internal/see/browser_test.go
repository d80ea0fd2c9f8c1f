package see

import (
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"

	"hindsight/internal/browsertest"
)

// marks counts what is drawn in each part of the page.
const marks = `({
	loop: document.querySelectorAll("#loop .rate").length,
	flowing: document.querySelectorAll("#loop .flow:not(.off)").length,
	loss: drawn.loss?.data[1].length,
	uniform: drawn.loss?.data[2].filter((v) => v !== null).length,
	actions: document.querySelectorAll("#actions .fill").length,
	delays: drawn.delays?.data[1].length,
	fates: document.querySelectorAll("#fates .track span").length,
	exploration: document.querySelectorAll("#exploration dd").length,
	assumptions: document.querySelectorAll("#certificate td.state").length,
	rejects: document.querySelectorAll("#rejects td.id").length,
})`

// sideways names what can be scrolled sideways.
const sideways = `[...document.querySelectorAll("main *")].filter((e) => getComputedStyle(e).overflowX == "auto" && ` +
	`e.scrollWidth > e.clientWidth)
	.map((e) => (e.closest("[id]") || e).id + " " + e.scrollWidth).join(", ")`

// The page under load: every part has marks, they change by themselves, nothing goes wrong in
// the browser, nothing is asked for from elsewhere, and no feature or secret is in it.
func TestBrowserPage(t *testing.T) {
	b := browsertest.Start(t)
	w := newWorld(t, "window: 2s\n")
	last := w.play(600, 1)
	// what is rejected now is last
	w.until("an idle joiner", func(s *state) bool { return s.Waiting.Joiner != nil && *s.Waiting.Joiner == 0 })
	w.put(`{"id":"bad","features":{"hour":[%q]},"actions":["red"]}`, planted)
	w.report(`{"id":%q,"loss":7}`, last)
	p := b.Open(t, w.url+"/")
	p.Wait(
		`/7 is not in \[0, 1\]/.test(document.getElementById("rejects").textContent) && /context: features.hour\[0\]: ` + `/.test(document.getElementById("rejects").textContent)`)
	p.Picture("page-rejects")
	w.load()
	p.Wait(`document.body.dataset.looks > 2 && document.querySelectorAll("#loop .flow:not(.off)").length >= 3 && ` +
		`document.querySelectorAll("#rejects td.id").length > 0`)
	for part, n := range browsertest.Eval[map[string]int](p, marks) {
		if n == 0 {
			t.Errorf("%s has no marks", part)
		}
	}
	before := browsertest.Eval[string](p, `document.getElementById("draws-says").textContent`)
	p.Wait(`document.getElementById("draws-says").textContent != ` + "`" + before + "`")
	if text := browsertest.Eval[string](p, `document.getElementById("alarms").textContent`); !strings.Contains(text,
		"No alarm") {
		t.Errorf("alarms: %s", text)
	}
	p.Hover("#chart-loss .u-over", .5, .5)
	p.Wait(`/UTC.*played[0-9.]+uniform play \(estimate\)[0-9.]+/.test(` +
		`document.querySelector("#chart-loss .legend").textContent)`)
	p.Picture("page-light")
	browsertest.Eval[bool](p, `(document.getElementById("id").value = "`+last+
		`", document.querySelector("#ask button").click(), true)`)
	p.Wait(`document.getElementById("story").textContent.includes("recomputed   identical")`)
	p.Media(browsertest.Media{Dark: true})
	p.Picture("page-dark")
	p.Media(browsertest.Media{})
	p.Size(390, 844)
	if wide := browsertest.Eval[bool](
		p, `document.documentElement.scrollWidth > document.documentElement.clientWidth`); wide {
		t.Error("the page is wider than a phone")
	}
	if parts := browsertest.Eval[string](p, sideways); parts != "" {
		t.Errorf("wider than a phone, and scrolled sideways: %s", parts)
	}
	if text := browsertest.Eval[string](p, `document.getElementById("loop-list").innerText`); !strings.Contains(text,
		"contexts by request") {
		t.Errorf("the loop's list says %q", text)
	}
	p.Picture("page-phone")
	if html := browsertest.Eval[string](p, `document.documentElement.outerHTML`); strings.Contains(html, planted) {
		t.Error("a feature or a secret is shown")
	}
	for _, r := range p.Requests() {
		if !strings.HasPrefix(r, w.url) && !strings.HasPrefix(r, "data:") {
			t.Errorf("asked for %s", r)
		}
	}
	if problems := p.Problems(); len(problems) > 0 {
		t.Errorf("%q", problems)
	}
	for _, f := range p.Accessible("page") {
		t.Error(f)
	}
}

// Where outcomes are rewards the page shows rewards, also below 0.
func TestBrowserRewards(t *testing.T) {
	b := browsertest.Start(t)
	w := newWorld(t, "window: 20 rounds\nreward: {min: -2, max: 2}\n")
	r := rand.New(rand.NewPCG(1, 1))
	for i := range 60 {
		id, _ := w.ask(r)
		w.report(`{"id":%q,"reward":%d}`, id, i%3-2)
	}
	w.until("rewards", func(s *state) bool { return s.Losses.Rounds == 60 })
	p := b.Open(t, w.url+"/")
	p.Wait(`document.getElementById("loss-title").textContent == "Reward over time" && /^The learner's last 60 ` +
		`rounds earned −.* a round, of −2 to 2;/.test(document.getElementById("verdict").textContent)`)
	if inside := browsertest.Eval[bool](p,
		`drawn.loss.data.slice(1).flat().every((v) => v >= drawn.loss.scales.y.min && `+
			`v <= drawn.loss.scales.y.max)`); !inside {
		t.Error("a line leaves its picture")
	}
	if width := browsertest.Eval[float64](p, `drawn.loss.scales.x.max - drawn.loss.scales.x.min`); width > 60 {
		t.Errorf("the time axis of some seconds is %v s long", width)
	}
	p.Picture("page-rewards")
	if problems := p.Problems(); len(problems) > 0 {
		t.Errorf("%q", problems)
	}
}

// What is wrong is said first, with what to do; and in shadow, what the learner would do.
func TestBrowserAlarm(t *testing.T) {
	b := browsertest.Start(t)
	w := newWorld(t, "window: 10 rounds\nmode: shadow\nbaseline: uniform\n")
	w.play(60, 1)
	var wrong atomic.Bool
	for i := range w.see.watch.alarms {
		switch a := &w.see.watch.alarms[i]; a.Name {
		case "NoOutcomes": // which fires when it has held for minutes
			a.query = func(*moment) vector { return vector{"": 1} }
		case "DrawsDoNotFollowLaws":
			a.query = func(*moment) (v vector) {
				if wrong.Load() {
					v = vector{"": 1}
				}
				return v
			}
		}
	}
	p := b.Open(t, w.url+"/")
	p.Wait(`document.querySelector(".flag.warn")?.textContent.includes("No alarm yet") && ` +
		`document.querySelector(".flag.coming") !== null`)
	p.Picture("page-coming")
	if text := browsertest.Eval[string](p, `document.getElementById("alarms").textContent`); !strings.Contains(text,
		"NoJoiner, DecisionsSlow") {
		t.Errorf("alarms that this process cannot judge: %q", text)
	}
	wrong.Store(true)
	p.Wait(`document.querySelector(".flag.bad")?.textContent.includes("replayer verify")`)
	p.Wait(`/In shadow mode .* agrees with the baseline with probability .*/.test(` +
		`document.getElementById("actions-says").textContent) && /^The baseline answers\. In its last .* the learner would ` +
		`have lost .* the baseline .*95%/.test(document.getElementById("verdict").textContent)`)
	p.Wait(`/computed [0-5] s ago/.test(document.getElementById("certificate-age")?.textContent)`)
	p.Picture("page-alarm")
	idle := `fetch("state").then((a) => a.json()).then((s) => (drawLoop({...s, joiner: false, idle: {decider: "", ` +
		`joiner: "stopped, it will be opened again: no space"}}),
		loop.texts.joiner1.textContent + "; " + document.getElementById("loop-says").textContent))`
	if text := browsertest.Eval[string](p, idle); text !=
		"not at work now; The joiner is not at work: stopped, it will be opened again: no space" {
		t.Errorf("a joiner that restarts: %q", text)
	}
	void := `(drawCertificate({certificate_age_seconds: 0, certificate: {epoch: 1, certificate: {t: 10,
		measured_drift: {value: null, vacuous: true, void: "class refuted"}}}}),
		document.querySelector("#certificate tr").textContent)`
	if text := browsertest.Eval[string](p, void); text != "measured driftvoidclass refuted" {
		t.Errorf("a void bound: %q", text)
	}
	if problems := p.Problems(); len(problems) > 0 {
		t.Errorf("%q", problems)
	}
}
