package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hindsight/internal/engine"
	"hindsight/internal/words"
)

// TestAssignedLog holds that decisions of another system, reported by request, are a log that verify finds in order,
// that a backtest judges policies on, with the figures that follow by hand, and that those without a propensity are in
// no estimate, counted and named.
func TestAssignedLog(t *testing.T) {
	const rounds = 120
	dir := filepath.Join(t.TempDir(), "log")
	file := writeFile(t, "shop.yaml", "name: shop\nactions: [a, b, c]\nreward: {min: 0, max: 1}\nwindow: 1h\n")
	law := map[string]float64{"a": .5, "b": .25, "c": .25}
	sums, squares, n, bare, missing := map[string]float64{}, map[string]float64{}, 0.0, 0, 0
	liveOn(t, dir, file, func(e *engine.Engine) {
		ask := func(subject, body string) string {
			t.Helper()
			reply, headers, err := e.Bus.Request(t.Context(), subject, []byte(body))
			if err != nil || len(headers) > 0 {
				t.Fatalf("%s: %v %s", body, err, reply)
			}
			return string(reply)
		}
		for i := range rounds {
			action, reward := []string{"a", "a", "b", "c"}[i%4], (i/4)%3/2
			said := [...]string{`,"propensities":{"a":0.5,"b":0.25,"c":0.25}`, fmt.Sprintf(`,"propensity":%v`,
				law[action]), ""}[i%3]
			body := fmt.Sprintf(`{"id":"r%d","features":{"x":%d},"assigned":{"action":%q%s}}`, i, i%5, action, said)
			if got := ask("shop.decide", body); !strings.Contains(got, `"mode":"external"`) ||
				!strings.Contains(got, `"action":"`+action+`"`) {
				t.Fatalf("%s: %s", body, got)
			}
			if i%20 == 7 && said != "" {
				missing++
				continue
			}
			ask("shop.outcome", fmt.Sprintf(`{"id":"r%d","reward":%d}`, i, reward))
			if said == "" {
				bare++
				continue
			}
			n++
			for _, policy := range []string{"a", "b", "c"} {
				if policy == action {
					sums[policy] += float64(reward) / law[action]
					squares[policy]++
				}
			}
		}
	})
	if r := execute(t.Context(), "verify", "--log", "embedded:"+dir); r.code != 0 {
		t.Errorf("verify: %d %s%s", r.code, r.stdout, r.stderr)
	}
	args := []string{"backtest", "--data", "embedded:" + dir, "--policy", "always:a", "--policy", "always:b",
		"--policy", "always:c", "--rounds", "0", "--bootstrap", "0"}
	o := object(t, append(args, "--json")...)
	for i, p := range o["policies"].([]any) {
		name, p := string("abc"[i]), p.(map[string]any)
		if got, want := number(t, p, "estimates.ips.value"), sums[name]/n; math.Abs(got-want) > 1e-12 {
			t.Errorf("always:%s: IPS %v, %v by hand", name, got, want)
		}
		if got := number(t, p, "ess"); got != squares[name] { // all weights are equal
			t.Errorf("always:%s: an effective sample of %v, %v by hand", name, got, squares[name])
		}
		if got, want := number(t, p, "overlap"), squares[name]/n; math.Abs(got-want) > 1e-12 { // E min(1, π/p)
			t.Errorf("always:%s: an overlap of %v, %v by hand", name, got, want)
		}
		if got, want := number(t, p, "mean_weight"), squares[name]/law[name]/n; math.Abs(got-want) > 1e-12 ||
			number(t, p, "support") != 1 {
			t.Errorf("always:%s: a mean weight of %v, %v by hand; %v", name, got, want, p["support"])
		}
		if got, want := number(t, p, "estimates.snips.value"), sums[name]*law[name]/squares[name]; math.Abs(got-
			want) > 1e-12 {
			t.Errorf("always:%s: SNIPS %v, %v by hand", name, got, want)
		}
		number(t, p, "estimates.dr.value")
	}
	if number(t, o, "estimators.without_outcome") != float64(missing) || missing == 0 ||
		number(t, o, "estimators.rows") != n || number(t, o, "estimators.min_propensity") != .25 {
		t.Errorf("%d rounds have no outcome: %v", missing, o["estimators"])
	}
	if got := fmt.Sprint(need(t, o, "estimators.interval")); !strings.Contains(got, "right:any_time ") ||
		!strings.Contains(got, "played each action with one probability, and the log of a live system") {
		t.Error(got)
	}
	if got := number(t, o, "intake.skipped_by_reason.assigned without a propensity"); got != float64(bare) {
		t.Errorf("%v rounds without a propensity are left out, of %d", got, bare)
	}
	if r := execute(t.Context(), args...); !strings.Contains(strings.Join(strings.Fields(r.stdout+r.stderr), " "),
		fmt.Sprintf("decisions that another system assigned without a propensity: %d", bare)) {
		t.Errorf("%s%s", r.stdout, r.stderr)
	}
}

// TestIntervalOfOwnLog: a log of the system's own decisions says whether a learner that had learned made them, and the
// interval is chosen by that, in the terminal, in JSON and in the report.
func TestIntervalOfOwnLog(t *testing.T) {
	for mode, want := range map[string]string{
		"live":   "are of a learner that learned from it, and the log of a live system",
		"shadow": "the log does not say that the policy that made it was fixed, and the log of a live system"} {
		dir, out := filepath.Join(t.TempDir(), "log"), filepath.Join(t.TempDir(), "out.html")
		file := writeFile(t, "shop.yaml", "name: shop\nactions: [a, b]\nreward: {min: 0, max: 1}\nmode: "+mode+
			"\nbaseline: context\n")
		liveOn(t, dir, file, func(e *engine.Engine) {
			for i, learned := 0, 0.0; i < 30 || learned < 5; i++ {
				ask := fmt.Sprintf(`{"id":"r%d","baseline":{"a":0.%d,"b":0.%d}}`, i, 3+i%5, 7-i%5)
				reply, _, err := e.Bus.Request(t.Context(), "shop.decide", []byte(ask))
				var d struct {
					Learned float64 `json:"learned_through"`
				}
				if err = errors.Join(err, json.Unmarshal(reply, &d)); err != nil {
					t.Fatalf("%v %s", err, reply)
				}
				learned = d.Learned
				outcome := fmt.Appendf(nil, `{"id":"r%d","reward":%d}`, i, i%2)
				if _, _, err := e.Bus.Request(t.Context(), "shop.outcome", outcome); err != nil {
					t.Fatal(err)
				}
			}
		})
		args := []string{"backtest", "--data", "embedded:" + dir, "--policy", "always:a", "--bootstrap", "0"}
		o := object(t, append(args, "--json")...)
		if got := fmt.Sprint(need(t, o, "estimators.interval")); !strings.Contains(got, "right:any_time ") ||
			!strings.Contains(got, want) {
			t.Errorf("%s: %s", mode, got)
		}
		low := number(t, o["policies"].([]any)[0].(map[string]any), "any_time.low")
		bound := words.Figure(low, 3)
		r := execute(t.Context(), append(args, "--report", out)...)
		page, err := os.ReadFile(out)
		for where, text := range map[string]string{"terminal": r.stdout, "report": string(page)} {
			if text = strings.Join(strings.Fields(text), " "); err != nil || !strings.Contains(text, want) ||
				!strings.Contains(text, bound[:min(3, len(bound))]) {
				t.Errorf("%s, %s: %v, no %q or %q in\n%.3000s", mode, where, err, want, bound, text)
			}
		}
	}
}
