package see

import (
	"encoding/json"
	"regexp"
	"strings"
)

// panel is one picture of the dashboard.
type panel struct {
	title, unit, says string
	width             int // of 24
	lines             []line
}

// line is one query of a panel.
type line struct{ expr, name string }

// row is a row of the dashboard with its heading.
type row struct {
	title  string
	panels []panel
}

// dashboard returns all rows. Rates are over what Grafana makes of the scrape interval; means
// leave out (>= 0) the NaN of processes that know nothing yet.
func dashboard() []row {
	return []row{
		{"Is it alive?", []panel{
			{"Ready", "short", "Processes that can do their work now.", 6, []line{{"sum(hindsight_ready)", "ready"}, {"count(hindsight_ready)", "processes"}}},
			{"At work", "short", "Deciders (one a partition) and joiners (there must be one).", 6, []line{{"sum by (role) (hindsight_at_work)", "{{role}}"}}},
			{"The loop, a second", "ops", "Outcomes that stay away are a dead feedback loop.", 12, []line{{"sum(rate(hindsight_decisions_total[$__rate_interval]))", "decisions"},
				{"sum(rate(hindsight_outcomes_total[$__rate_interval]))", "outcomes"}, {"sum(rate(hindsight_feedback_total[$__rate_interval]))", "feedback"}, {"sum(rate(hindsight_rejects_total[$__rate_interval]))", "rejects"}}},
		}},
		{"What it is worth", []panel{
			{"Reward or loss of the last 1,000 rounds", "short", "Beside what uniform play is estimated to have in the same rounds. Where outcomes are rewards, rewards.", 12, []line{
				{"avg(hindsight_recent_reward > -Inf)", "reward"}, {"avg(hindsight_recent_uniform_reward > -Inf)", "reward of uniform (estimate)"},
				{"avg(hindsight_recent_loss >= 0) unless avg(hindsight_recent_reward > -Inf)", "loss"},
				{"avg(hindsight_recent_uniform_loss >= 0) unless avg(hindsight_recent_reward > -Inf)", "loss of uniform (estimate)"}}},
			{"Losses in time and late", "short", "If they differ, rounds without an outcome bias what is learned. Rewards count as losses on the scale of 0 to 1.", 12, []line{{"avg by (came) (hindsight_loss_mean >= 0)", "{{came}}"}}},
			{"Bounds on the regret, a round", "percentunit", "At 1 a bound says nothing. /certificate has the assumptions.", 12, []line{{"max by (kind) (hindsight_regret_bound / on (instance, partition) group_left hindsight_regret_rounds)", "{{kind}}"}}},
			{"Functions not refuted", "short", "Of the class, where there is one.", 6, []line{{"min(hindsight_models_surviving)", "not refuted"}, {"max(hindsight_models)", "all"}}},
			{"Largest weight", "percentunit", "Of a function, policy or member.", 6, []line{{"max(hindsight_top_weight)", "largest"}}},
		}},
		{"Joining", []panel{
			{"Rounds released, a second, by fate", "ops", "", 8, []line{{"sum by (fate) (rate(hindsight_feedback_total[$__rate_interval]))", "{{fate}}"}}},
			{"Join ratio", "percentunit", "Of the last 1,000 rounds released.", 8, []line{{"avg(hindsight_join_ratio >= 0)", "in time"}}},
			{"Rejects, a second, by reason", "ops", "", 8, []line{{"sum by (topic, reason) (rate(hindsight_rejects_total[$__rate_interval])) > 0", "{{topic}} {{reason}}"}}},
			{"Rounds that wait", "short", "", 8, []line{{"sum(hindsight_pending_rounds)", "wait"}, {"sum(hindsight_fifo_held_rounds)", "for their turn"}, {"sum(hindsight_decisions_outstanding)", "without feedback learned"}}},
			{"Age of the head of the line", "s", "Beside the window.", 8, []line{{"max(hindsight_pending_oldest_age_seconds)", "age"}, {"max(hindsight_window_seconds) < +Inf", "window"}}},
			{"Delay of outcomes", "s", "", 8, []line{{"histogram_quantile(0.5, sum by (le) (rate(hindsight_outcome_delay_seconds_bucket[5m])))", "median"},
				{"histogram_quantile(0.99, sum by (le) (rate(hindsight_outcome_delay_seconds_bucket[5m])))", "99 %"}}},
		}},
		{"Exploring", []panel{
			{"Entropy of the laws", "percentunit", "Of the uniform law's.", 8, []line{{"avg(hindsight_propensity_entropy_ratio >= 0)", "entropy"}}},
			{"Least propensity", "short", "Of any action in the last 1,000 decisions.", 8, []line{{"min(hindsight_propensity_floor)", "least"}}},
			{"Do draws follow their laws?", "short", "Evidence against it; the alarm is at 10,000.", 8, []line{{"max(hindsight_draw_evidence)", "evidence"}}},
			{"γ", "short", "", 8, []line{{"avg(hindsight_gamma)", "γ"}}},
			{"Importance weights for uniform play", "percentunit", "", 8, []line{{"avg(hindsight_importance_effective_ratio >= 0)", "effective share"}, {"max(hindsight_importance_largest_ratio)", "largest weight"}}},
			{"Match of an apprentice", "percentunit", "Mean probability that the learner would have done what the baseline did, in mode apprentice and in shadow.", 8, []line{{"avg(hindsight_apprentice_match_ratio >= 0)", "apprentice"}, {"avg(hindsight_shadow_agreement_ratio >= 0)", "shadow"}}},
			{"What exploring cost", "short", "In losses, by the model's own belief.", 8, []line{{"max(hindsight_exploration_cost)", "cost"}}},
		}},
		{"How fast", []panel{
			{"Time to decide", "s", "From a request, or the taking of a batch, to the acknowledgement.", 12, []line{
				{"histogram_quantile(0.5, sum by (le, source) (rate(hindsight_decision_seconds_bucket[$__rate_interval])))", "median, {{source}}"},
				{"histogram_quantile(0.99, sum by (le, source) (rate(hindsight_decision_seconds_bucket[$__rate_interval])))", "99 %, {{source}}"}}},
			{"What lags", "short", "Records not yet read.", 12, []line{{"sum(hindsight_contexts_lag_records)", "contexts"}, {"max(hindsight_feedback_lag_records)", "feedback, the slowest replica"},
				{"sum by (topic) (hindsight_joiner_lag_records)", "joiner: {{topic}}"}}},
			{"Requests refused, a second", "ops", "", 12, []line{{"sum by (subject, code) (rate(hindsight_requests_refused_total[$__rate_interval])) > 0", "{{subject}} {{code}}"}}},
			{"Failing appends, fences, restarts, in 10 minutes", "short", "", 12, []line{{"sum by (topic) (increase(hindsight_append_errors_total[10m])) > 0", "append: {{topic}}"},
				{"sum by (role) (increase(hindsight_fences_total[10m])) > 0", "fenced: {{role}}"}, {"sum by (role) (increase(hindsight_restarts_total[10m])) > 0", "restart: {{role}}"},
				{"sum by (role, event) (increase(hindsight_lease_events_total[10m])) > 0", "lease {{event}}: {{role}}"}}},
		}},
		{"Processes", []panel{
			{"Age of the last snapshot", "s", "", 6, []line{{"min(hindsight_snapshot_age_seconds)", "age"}}},
			{"Store", "bytes", "Of the embedded log, beside its limit and what is free on its disk.", 6, []line{{"hindsight_store_bytes > -Inf", "held, {{instance}}"}, {"hindsight_store_limit_bytes > -Inf", "limit, {{instance}}"}, {"hindsight_store_free_bytes > -Inf", "free, {{instance}}"}}},
			{"Memory", "bytes", "", 6, []line{{"process_resident_memory_bytes", "{{instance}}"}}},
			{"CPU", "percentunit", "Of one core.", 6, []line{{"rate(process_cpu_seconds_total[$__rate_interval])", "{{instance}}"}}},
			{"Goroutines", "short", "", 6, []line{{"go_goroutines", "{{instance}}"}}},
		}},
	}
}

var series = regexp.MustCompile(`\b(?:hindsight|process|go)_\w+(\{)?`)

// ofJob narrows a query to the job that the dashboard's variable names: the processes of one
// model.
func ofJob(expr string) string {
	return series.ReplaceAllStringFunc(expr, func(name string) string {
		if name, has := strings.CutSuffix(name, "{"); has {
			return name + `{job=~"$job",`
		}
		return name + `{job=~"$job"}`
	})
}

// choice is the variable of the dashboard that says which model it shows.
func choice(source map[string]any) map[string]any {
	const query = "label_values(hindsight_ready, job)"
	return map[string]any{"name": "job", "label": "model (job of Prometheus)", "type": "query", "datasource": source, "definition": query,
		"query": map[string]any{"query": query, "refId": "job"}, "refresh": 2, "sort": 1, "includeAll": false, "multi": false, "hide": 0}
}

// Dashboard returns the dashboard for Grafana, as JSON.
func Dashboard() string {
	type object = map[string]any
	source := object{"type": "prometheus", "uid": "hindsight"}
	panels, id, top := []object{}, 0, 0
	for _, r := range dashboard() {
		id++
		panels = append(panels, object{"id": id, "type": "row", "title": r.title, "collapsed": false, "panels": []object{}, "gridPos": object{"x": 0, "y": top, "w": 24, "h": 1}})
		top++
		left := 0
		for _, p := range r.panels {
			const high = 7
			id++
			if left+p.width > 24 {
				left, top = 0, top+high
			}
			targets := []object{}
			for i, l := range p.lines {
				targets = append(targets, object{"refId": string(rune('A' + i)), "expr": ofJob(l.expr), "legendFormat": l.name, "datasource": source})
			}
			panels = append(panels, object{"id": id, "type": "timeseries", "title": p.title, "description": p.says, "datasource": source, "targets": targets,
				"gridPos":     object{"x": left, "y": top, "w": p.width, "h": high},
				"fieldConfig": object{"defaults": object{"unit": p.unit, "custom": object{"axisSoftMin": 0, "lineWidth": 2, "fillOpacity": 8, "showPoints": "never"}}, "overrides": []object{}},
				"options":     object{"legend": object{"displayMode": "list", "placement": "bottom"}, "tooltip": object{"mode": "multi", "sort": "desc"}}})
			left += p.width
		}
		top += 7
	}
	b, err := json.MarshalIndent(object{"uid": "hindsight", "title": "Hindsight", "tags": []string{"hindsight"}, "timezone": "browser", "schemaVersion": 39, "version": 1,
		"refresh": "10s", "time": object{"from": "now-1h", "to": "now"}, "editable": true, "panels": panels, "templating": object{"list": []object{choice(source)}}, "annotations": object{"list": []object{}}}, "", " ")
	if err != nil {
		return err.Error() // not reached: they are maps of texts and numbers
	}
	return string(b) + "\n"
}
