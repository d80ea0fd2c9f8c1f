package door

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hindsight/pkg/codec"
)

// asVendor holds that an answer is an error of Personalizer, and returns it.
func (r reply) asVendor(t testing.TB) (e personalizerError) {
	t.Helper()
	var body struct{ Error personalizerError }
	if err := json.Unmarshal(r.body, &body); err != nil || body.Error.Code == "" || body.Error.Message == "" ||
		r.header.Get("Content-Type") != typeJSON || r.header.Get("X-Ms-Error-Code") != body.Error.Code {
		t.Errorf("%d %v is no error of Personalizer: %s", r.status, r.header, r.body)
	}
	return body.Error
}

// ofVersion is a path in a version of the API.
func ofVersion(version, path string) string {
	if version != "" {
		return personalizerRoot + version + path
	}
	return personalizerRoot + path + "?api-version=" + latestAPI
}

// object returns the members of an answer.
func (r reply) object(t testing.TB) (m map[string]any) {
	t.Helper()
	if err := json.Unmarshal(r.body, &m); err != nil {
		t.Errorf("%d %s: %v", r.status, r.body, err)
	}
	return m
}

const rankOf = `{"contextFeatures":[{"timeOfDay":"evening","weekend":true},{"user":{"country":"DE","visits":12}},null,
{"weekend":false}],"actions":[{"id":"pasta","features":[{"taste":"salty","price":8.50},{"nutrition":{"calories":450}}]},
{"id":"ice cream","features":[{"taste":"sweet"}]},{"id":"juice","features":[]},
{"id":"salad","features":[{"a":[1,{"b":2}]}]}],
"excludedActions":["juice","nothing"],"eventId":"%s","deferActivation":false}`

// TestPersonalizerRank holds that every version ranks: 201, excluded actions in their places with probability 0, and in
// the log the context that we make of it; that a repeat gets what was decided, and that a reward and an activation are
// answered with 204.
func TestPersonalizerRank(t *testing.T) {
	w := open(t, setting{model: "reward: {min: -1, max: 1}\n"})
	for i, version := range personalizerVersions() {
		id := fmt.Sprintf("event %d", i)
		got := w.call("POST", ofVersion(version, "/rank"), fmt.Sprintf(rankOf, id))
		var ranked rankResponse
		if err := json.Unmarshal(got.body, &ranked); err != nil || got.status != 201 || ranked.EventID != id ||
			len(ranked.Ranking) != 4 || ranked.Ranking[0].ID != ranked.RewardActionID ||
			ranked.Ranking[2] != (rankedAction{"juice", 0}) {
			t.Fatalf("%s: %d %s", version, got.status, got.body)
		}
		sum := 0.
		for _, a := range ranked.Ranking {
			sum += a.Probability
		}
		if math.Abs(sum-1) > 1e-12 {
			t.Errorf("%s: probabilities sum to %v: %s", version, sum, got.body)
		}
		again := w.call("POST", ofVersion("/v1.0", "/rank"), strings.ReplaceAll(fmt.Sprintf(rankOf, id), ",", " , "))
		if string(again.body) != string(got.body) {
			t.Errorf("%s, then %s", got.body, again.body)
		}
		at := "/events/" + strings.ReplaceAll(id, " ", "%20")
		for path, body := range map[string]string{at + "/reward": `{"value":0.5}`, at + "/activate": ""} {
			got := w.call("POST", ofVersion(version, path), body, "X-Ms-Client-Request-Id: first")
			if got.status != 204 || len(got.body) != 0 {
				t.Errorf("%s: %d %s", path, got.status, got.body)
			}
		}
	}
	var stored codec.Decision
	if err := codec.ParseDecision(&stored, w.records("shop.decisions")[0]); err != nil {
		t.Fatal(err)
	}
	const want = `{"id":"event 0","features":{"timeOfDay":"evening","user.country":"DE","user.visits":12,` +
		`"weekend":true,"weekend#2":false},"baseline":"pasta","actions":[` +
		`{"name":"pasta","features":{"nutrition.calories":450,"price":8.5,"taste":"salty"}},` +
		`{"name":"ice cream","features":{"taste":"sweet"}},{"name":"salad","features":{"a.0":1,"a.b":2}}]}`
	if string(stored.Context) != want {
		t.Errorf("asked %s\nwant  %s", stored.Context, want)
	}
	outcomes := w.records("shop.outcomes")
	if len(outcomes) != len(personalizerVersions()) ||
		string(outcomes[0]) != `{"id":"event 0","reward":0.5,"outcome_id":"first"}` {
		t.Errorf("outcomes %s", outcomes)
	}
	other := w.call("POST", "/personalizer/v1.0/rank", `{"actions":[{"id":"a","features":[]}],"eventId":"event 0"}`)
	if e := other.asVendor(t); other.status != 409 || e.Code != "InvalidRankRequest" {
		t.Errorf("an eventId of another event: %d %+v", other.status, e)
	}
	got := w.call("POST", "/personalizer/v1.0/rank", `{"actions":[{"id":"a","features":[]}]}`)
	if m := got.object(t); got.status != 201 || m["eventId"] == "" || m["rewardActionId"] != "a" {
		t.Errorf("without an eventId: %d %s", got.status, got.body)
	}
}

// TestPersonalizerRanking holds the order: what was drawn, then by probability, then as asked; excluded ones stay.
func TestPersonalizerRanking(t *testing.T) {
	var q rankRequest
	if err := json.Unmarshal([]byte(`{"actions":[{"id":"x"},{"id":"a"},{"id":"b"},{"id":"y"},{"id":"c"},{"id":"d"}],
"excludedActions":["x","y"]}`), &q); err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(q.ranking("b", map[string]float64{"a": .1, "b": .2, "c": .6, "d": .1}))
	if want := "[{x 0} {b 0.2} {c 0.6} {y 0} {a 0.1} {d 0.1}]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestPersonalizerActivation holds that where the model waits for activations, an event is active at once unless that
// is deferred, and then when the call comes.
func TestPersonalizerActivation(t *testing.T) {
	w := open(t, setting{model: "activation: required\n"})
	rank := func(id string, deferred bool) {
		t.Helper()
		if got := w.call("POST", "/personalizer/v1.0/rank", fmt.Sprintf(
			`{"actions":[{"id":"a","features":[]}],"eventId":%q,"deferActivation":%v}`, id,
			deferred)); got.status != 201 {
			t.Fatalf("%d %s", got.status, got.body)
		}
	}
	rank("now", false)
	rank("later", true)
	if got := w.records("shop.outcomes"); len(got) != 1 || string(got[0]) != `{"id":"now","activated":true}` {
		t.Errorf("activated: %s", got)
	}
	w.call("POST", "/personalizer/v1.0/events/later/activate", "")
	if got := w.records("shop.outcomes"); len(got) != 2 || string(got[1]) != `{"id":"later","activated":true}` {
		t.Errorf("activated: %s", got)
	}
}

// TestPersonalizerRefusals holds that what is refused is so by name, in Personalizer's shape, and leaves nothing in the
// log.
func TestPersonalizerRefusals(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys")
	keys := map[string]string{}
	for _, role := range roleNames {
		made, err := AddKey(file, role, role)
		if err != nil {
			t.Fatal(err)
		}
		keys[role] = "Ocp-Apim-Subscription-Key: " + made
	}
	w := open(t, setting{flags: []string{"--keys", file}})
	const one, v1 = `{"actions":[{"id":"a","features":[]}]}`, "/personalizer/v1.0"
	now := time.Now()
	evaluation := func(rest string) string {
		return fmt.Sprintf(`{"name":"e","startTime":%q,"endTime":%q,%s}`, now.Add(-time.Hour).Format(time.RFC3339),
			now.Add(time.Hour).Format(time.RFC3339), rest)
	}
	for _, c := range []struct {
		name, method, path, body, role string
		status                         int
		code, says                     string
	}{
		{"no key", "POST", v1 + "/rank", one, "", 401, "Unauthorized", "Ocp-Apim-Subscription-Key"},
		{"rank without the role", "POST", v1 + "/rank", one, "outcome", 403, "InvalidApiAccess", "has not the " +
			"role decide"},
		{"reward without the role", "POST", v1 + "/events/a/reward", `{"value":1}`, "decide", 403, "InvalidApiAccess",
			"has not the role outcome"},
		{"activate without the role", "POST", v1 + "/events/a/activate", "", "read", 403, "InvalidApiAccess",
			"has not the role outcome"},
		{"settings without the role", "GET", v1 + "/configurations/service", "", "decide", 403, "InvalidApiAccess",
			"has not the role read"},
		{"an evaluation without the role", "POST", v1 + "/evaluations", evaluation(`"policies":[]`), "decide", 403,
			"InvalidApiAccess", "has not the role read"},
		{"no such call", "GET", v1 + "/nothing", "", "admin", 404, "ResourceNotFound", "no such path"},
		{"no such version", "POST", "/personalizer/v2.0/rank", one, "admin", 404, "ResourceNotFound", "no such path"},
		{"no version", "POST", "/personalizer/rank", one, "admin", 400, "BadRequest", "api-version=2022-09-01-preview"},
		{"another version", "POST", "/personalizer/rank?api-version=2030-01-01", one, "admin", 400, "BadRequest",
			"2030-01-01"},
		{"another method", "GET", v1 + "/rank", "", "admin", 405, "MethodNotAllowed", "takes POST"},
		{"no content type", "POST", v1 + "/rank", "", "admin", 415, "UnsupportedMediaType", "send application/json"},
		{"no JSON", "POST", v1 + "/rank", "{", "admin", 400, "InvalidRankRequest", "not what is expected"},
		{"a number as eventId", "POST", v1 + "/rank", `{"actions":[{"id":"a"}],"eventId":1}`, "admin", 400,
			"InvalidRankRequest", "eventId"},
		{"a long eventId", "POST", v1 + "/rank", `{"actions":[{"id":"a"}],"eventId":"` + strings.Repeat("x", 257) +
			`"}`, "admin", 400, "InvalidRankRequest", "id: "},
		{"no actions", "POST", v1 + "/rank", `{"contextFeatures":[]}`, "admin", 400, "InvalidRankRequest",
			"none is left"},
		{"an action without id", "POST", v1 + "/rank", `{"actions":[{"features":[]}]}`, "admin", 400,
			"InvalidRankRequest", "actions[0]: it has no id"},
		{"two actions of one id", "POST", v1 + "/rank", `{"actions":[{"id":"a"},{"id":"b"},{"id":"a"}]}`, "admin", 400,
			"InvalidRankRequest", `actions[2]: the id "a" was used before`},
		{"all excluded", "POST", v1 + "/rank", `{"actions":[{"id":"a"}],"excludedActions":["a"]}`, "admin", 400,
			"InvalidRankRequest", "none is left"},
		{"features that are none", "POST", v1 + "/rank", `{"actions":[{"id":"a"}],"contextFeatures":"x"}`, "admin", 400,
			"InvalidRankRequest", "contextFeatures: "},
		{"deep features", "POST", v1 + "/rank", `{"actions":[{"id":"a","features":` + strings.Repeat("[", 5000) +
			strings.Repeat("]", 5000) + `}]}`, "admin", 400, "InvalidRankRequest", "nested too deep"},
		{"a body too large", "POST", v1 + "/rank", spaces(one, maxBody+1), "admin", 413, "PayloadSizeExceeded",
			"too large"},
		{"activation that the model does not wait for", "POST", v1 + "/rank",
			`{"actions":[{"id":"a"}],"deferActivation":true}`, "admin", 400, "InvalidRankRequest", "activation: " +
				"required"},
		{"no reward", "POST", v1 + "/events/a/reward", `{}`, "admin", 400, "InvalidRewardRequest", "value is missing"},
		{"a reward beyond the scale", "POST", v1 + "/events/a/reward", `{"value":1.01}`, "admin", 400,
			"InvalidRewardRequest", "rewards from 0 to 1"},
		{"a reward below the scale", "POST", v1 + "/events/a/reward", `{"value":-0.01}`, "admin", 400,
			"InvalidRewardRequest", "rewards from 0 to 1"},
		{"a reward that is no number", "POST", v1 + "/events/a/reward", `{"value":"1"}`, "admin", 400,
			"InvalidRewardRequest", "not what is expected"},
		{"a long eventId of a reward", "POST", v1 + "/events/" + strings.Repeat("x", 257) + "/reward", `{"value":1}`,
			"admin", 400, "InvalidRewardRequest", "id: "},
		{"a long eventId to activate", "POST", v1 + "/events/" + strings.Repeat("x", 257) + "/activate", "",
			"admin", 400, "InvalidEventIdToActivate", "at most 256 bytes"},
		{"a page of another origin", "POST", v1 + "/events/a/activate", "", "foreign", 403, "InvalidApiAccess",
			"another origin"},
		{"an evaluation without a name", "POST", v1 + "/evaluations", `{"policies":[]}`, "admin", 400,
			"InvalidEvaluationContract", "name is missing"},
		{"an evaluation without times", "POST", v1 + "/evaluations", `{"name":"e","policies":[]}`, "admin", 400,
			"InvalidEvaluationContract", "endTime must come after startTime"},
		{"an optimisation", "POST", v1 + "/evaluations", evaluation(`"enableOfflineExperimentation":true`),
			"admin", 400, "InvalidEvaluationContract", "replayer backtest"},
		{"a policy of Vowpal Wabbit's", "POST", v1 + "/evaluations",
			evaluation(`"policies":[{"name":"p","arguments":"--cb_explore_adf"}]`), "admin", 400,
			"InvalidPolicyContract",
			"expected logging, uniform"},
		{"a policy in a file", "POST", v1 + "/evaluations",
			evaluation(`"policies":[{"name":"p","arguments":"eps:0.1,table:/etc/passwd"}]`), "admin", 400,
			"InvalidPolicyContract", "expected logging, uniform"},
		{"two policies of one name", "POST", v1 + "/evaluations",
			evaluation(`"policies":[{"name":"Online","arguments":"uniform"}]`), "admin", 400,
			"DuplicateCustomPolicyNames",
			"used twice"},
		{"no such evaluation", "GET", v1 + "/evaluations/x", "", "admin", 404, "EvaluationNotFound", "no such " +
			"evaluation"},
		{"no such evaluation to delete", "DELETE", v1 + "/evaluations/x", "", "admin", 404, "EvaluationNotFound",
			"no such evaluation"},
	} {
		headers := []string{keys[c.role]}
		if c.role == "foreign" {
			headers = []string{keys["admin"], "Origin: https://example.org"}
		}
		got := w.call(c.method, c.path, c.body, headers...)
		if e := got.asVendor(t); got.status != c.status || e.Code != c.code || !strings.Contains(e.Message, c.says) {
			t.Errorf("%s: %d %+v; want %d %s, %q", c.name, got.status, e, c.status, c.code, c.says)
		}
	}
	if n := len(w.records("shop.decisions")) + len(w.records("shop.outcomes")); n != 0 {
		t.Errorf("%d records of what was refused", n)
	}
}

// TestPersonalizerOperations asks for every operation that the specifications list, of each version in turn: it is
// answered with the status that they give it and the members that they require, or with 501 and what to do instead.
func TestPersonalizerOperations(t *testing.T) {
	const evaluation = `{"name":"e","startTime":"2026-01-01T00:00:00Z","endTime":"2026-01-02T00:00:00Z","policies":[]}`
	const v10, p1, p2, p3, latest = 1, 2, 4, 8, 16
	const all = v10 | p1 | p2 | p3 | latest
	versions := append(personalizerVersions()[1:], "")
	w := open(t, setting{})
	for i, version := range versions {
		for _, o := range []struct {
			versions           int
			method, path, body string
			status             int
			members            string
		}{
			{all, "POST", "/rank", fmt.Sprintf(rankOf, version), 201, "ranking eventId rewardActionId"},
			{all, "POST", "/events/e/reward", `{"value":1}`, 204, ""},
			{all, "POST", "/events/e/activate", "", 204, ""},
			{all, "GET", "/configurations/service", "", 200, "rewardWaitTime rewardAggregation learningMode"},
			{v10, "PATCH", "/configurations/service", "{}", 200, "rewardWaitTime"},
			{all - v10, "PUT", "/configurations/service", "{}", 200, "rewardWaitTime"},
			{all, "GET", "/configurations/policy", "", 200, "name arguments"},
			{v10, "PATCH", "/configurations/policy", "{}", 200, "name arguments"},
			{all - v10, "PUT", "/configurations/policy", "{}", 200, "name arguments"},
			{all, "DELETE", "/configurations/policy", "", 501, ""},
			{all - v10, "POST", "/configurations/applyFromEvaluation", `{"evaluationId":"e","policyName":"p"}`, 501,
				""},
			{all - latest, "POST", "/evaluations", evaluation, 201, "id name startTime endTime status"},
			{latest, "PUT", "/evaluations/e", evaluation, 200, "id name startTime endTime status"},
			{latest, "GET", "/evaluations/e", "", 200, "id name startTime endTime creationTime status evaluationType"},
			{latest, "GET", "/evaluations", "", 200, "value"},
			{latest, "DELETE", "/evaluations/e", "", 204, ""},
			{all, "DELETE", "/logs", "", 501, ""},
			{all, "GET", "/logs/properties", "", 200, "dateRange"},
			{p2 | p3 | latest, "POST", "/logs/interactions", "", 501, ""},
			{p2 | p3 | latest, "POST", "/logs/observations", "", 501, ""},
			{all, "GET", "/model", "", 501, ""},
			{p3 | latest, "PUT", "/model", "", 501, ""},
			{all, "DELETE", "/model", "", 501, ""},
			{all, "GET", "/model/properties", "", 200, "creationTime lastModifiedTime"},
			{all - v10, "POST", "/multislot/rank", rankSlotsOf, 201, "slots eventId"},
			{all - v10, "POST", "/multislot/events/e/reward", `{"reward":[{"slotId":"hero","value":1}]}`, 204, ""},
			{all - v10, "POST", "/multislot/events/e/activate", "", 204, ""},
			{latest, "GET", "/featureImportances", "", 501, ""},
			{latest, "PUT", "/featureImportances/f", "{}", 501, ""},
			{latest, "GET", "/featureImportances/f", "", 501, ""},
			{latest, "DELETE", "/featureImportances/f", "", 501, ""},
		} {
			if o.versions&(1<<i) == 0 {
				continue
			}
			got := w.call(o.method, ofVersion(version, o.path), o.body)
			if got.status != o.status {
				t.Errorf("%s %s%s: %d %s", o.method, version, o.path, got.status, got.body)
			}
			if o.status == 501 {
				got.asVendor(t)
				continue
			}
			for _, key := range strings.Fields(o.members) {
				if got.object(t)[key] == nil {
					t.Errorf("%s %s%s has no %s: %s", o.method, version, o.path, key, got.body)
				}
			}
		}
	}
}

// TestPersonalizerSettings holds what a model says as settings, that they are taken if they change nothing, and that
// any other names the key of the model file.
func TestPersonalizerSettings(t *testing.T) {
	page, err := os.ReadFile("../../compose/personalizer.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, defaults, _ := strings.Cut(string(page), "version: 1\n")
	for name, c := range map[string]struct{ model, want string }{
		"Personalizer's defaults": {defaults + "learner: {egreedy: 0.2}\n",
			`{"defaultReward":0,"explorationPercentage":0.2,
"isAutoOptimizationEnabled":false,"learningMode":"Online","logMirrorEnabled":false,"modelExportFrequency":"PT0S",
"modelRetrainDays":0,"rewardAggregation":"earliest","rewardWaitTime":"PT10M"}`},
		"other words": {"window: 90s\nmissing: impute\ndefault_loss: 0.5\nreward: {min: -1, max: 1}\noutcomes: sum\n" +
			"mode: apprentice\n", `{"defaultReward":0,"isAutoOptimizationEnabled":false,"learningMode":"Apprentice",
"logMirrorEnabled":false,"modelExportFrequency":"PT0S","modelRetrainDays":0,"rewardAggregation":"sum",
"rewardWaitTime":"PT1M30S"}`},
		"none of theirs": {"window: 10 rounds\nmode: shadow\n", `{"isAutoOptimizationEnabled":false,
"learningMode":"LoggingOnly","logMirrorEnabled":false,"modelExportFrequency":"PT0S","modelRetrainDays":0,
"rewardAggregation":"earliest"}`},
	} {
		t.Run(name, func(t *testing.T) {
			w := open(t, setting{model: c.model})
			path := ofVersion("", "/configurations/service")
			got := w.call("GET", path, "")
			if want := strings.ReplaceAll(c.want, "\n", ""); got.status != 200 || string(got.body) != want {
				t.Errorf("%d %s\nwant %s", got.status, got.body, want)
			}
			for _, call := range []reply{w.call("PUT", path, string(got.body)),
				w.call("PATCH", ofVersion("/v1.0", "/configurations/service"), string(got.body))} {
				if call.status != 200 || string(call.body) != string(got.body) {
					t.Errorf("the same settings: %d %s", call.status, call.body)
				}
			}
			for key, by := range settingKeys() {
				refused := w.call("PUT", path, fmt.Sprintf(`{%q:"another"}`, key))
				if e := refused.asVendor(t); refused.status != 400 || e.Code != "InvalidServiceConfiguration" ||
					e.Target != key || !strings.Contains(e.Message, by) {
					t.Errorf("%s: %d %+v", key, refused.status, e)
				}
			}
		})
	}
}

// TestPersonalizerPolicy holds that the learner of the model file is the policy.
func TestPersonalizerPolicy(t *testing.T) {
	w := open(t, setting{model: "learner: {egreedy: 0.2}\n"})
	path := ofVersion("", "/configurations/policy")
	got := w.call("GET", path, "")
	if m := got.object(t); got.status != 200 || m["name"] != "shop" ||
		!strings.HasPrefix(fmt.Sprint(m["arguments"]), "learner: {egreedy: 0.2}, ") {
		t.Errorf("%d %s", got.status, got.body)
	}
	if same := w.call("PUT", path, string(got.body)); same.status != 200 || string(same.body) != string(got.body) {
		t.Errorf("%d %s", same.status, same.body)
	}
	other := w.call("PUT", path, `{"name":"shop","arguments":"--cb_explore_adf --epsilon 0.1"}`)
	if e := other.asVendor(t); other.status != 400 || e.Code != "InvalidPolicyConfiguration" ||
		!strings.Contains(e.Message, "learner, explore and oracle in the model file") {
		t.Errorf("%d %+v", other.status, e)
	}
}

// TestPersonalizerProperties holds the pages that tell of the service, the model and the log.
func TestPersonalizerProperties(t *testing.T) {
	w := open(t, setting{partitions: 2})
	w.decide(`{"actions":["a","b"]}`)
	status := w.call("GET", ofVersion("/v1.0", "/status"), "").object(t)
	if status["service"] != "shop" || (status["apiStatus"] != "Valid") != (status["apiStatusMessage"] != "ready") {
		t.Errorf("status %v", status)
	}
	for path, keys := range map[string][2]string{"/model/properties": {"creationTime", "lastModifiedTime"},
		"/logs/properties": {"from", "to"}} {
		m := w.call("GET", ofVersion("/v1.1-preview.1", path), "").object(t)
		if inner, ok := m["dateRange"].(map[string]any); ok {
			m = inner
		}
		from, err := time.Parse(time.RFC3339, fmt.Sprint(m[keys[0]]))
		to, failed := time.Parse(time.RFC3339, fmt.Sprint(m[keys[1]]))
		if err != nil || failed != nil || to.Before(from) || time.Since(from) > time.Hour {
			t.Errorf("%s: %v", path, m)
		}
	}
}

// evaluated creates an evaluation, and returns it when it is done.
func (w *world) evaluated(version, id, body string) (m map[string]any) {
	w.t.Helper()
	method, path, status := "POST", ofVersion(version, "/evaluations"), 201
	if version == "" {
		method, path, status = "PUT", ofVersion(version, "/evaluations/"+id), 200
	}
	made := w.call(method, path, body)
	if made.status != status {
		w.t.Fatalf("%d %s", made.status, made.body)
	}
	id = fmt.Sprint(made.object(w.t)["id"])
	for m = map[string]any{"status": "pending"}; m["status"] == "pending" || m["status"] == "Running"; {
		m = w.call("GET", ofVersion(version, "/evaluations/"+id), "").object(w.t)
	}
	return m
}

// TestPersonalizerEvaluation holds what evaluations say of a log whose truth is known, in both shapes, that they are
// listed and deleted, and that one of a time without decisions fails and says so.
func TestPersonalizerEvaluation(t *testing.T) {
	for _, scale := range []string{"reward", "loss"} { // a model of losses tells them as rewards, too
		t.Run(scale, func(t *testing.T) { evaluates(t, scale) })
	}
}

func evaluates(t *testing.T, scale string) {
	w := open(t, setting{model: "learner: uniform\n" + scale + ": {min: 0, max: 1}\n"})
	const rounds = 40
	a := 0
	for i := range rounds {
		got := w.call("POST", "/personalizer/v1.0/rank",
			fmt.Sprintf(`{"actions":[{"id":"a"},{"id":"b"}],"eventId":"e%d"}`, i)).object(t)
		reward := 0
		if got["rewardActionId"] == "a" {
			reward = 1
			a++
		}
		if scale == "loss" {
			w.call("POST", "/v1/outcome", fmt.Sprintf(`{"id":"e%d","loss":%d}`, i, 1-reward))
			continue
		}
		w.call("POST", fmt.Sprintf("/personalizer/v1.0/events/e%d/reward", i), fmt.Sprintf(`{"value":%d}`, reward))
	}
	between := func(from, to time.Duration) string {
		now := time.Now()
		return fmt.Sprintf(
			`{"name":"trial","startTime":%q,"endTime":%q,"policies":[{"name":"b","arguments":"always:b"}]}`,
			now.Add(from).Format(time.RFC3339), now.Add(to).Format(time.RFC3339))
	}
	old := w.evaluated("/v1.0", "", between(-time.Hour, time.Hour))
	half := 0.0 // of what is played
	results, _ := old["policyResults"].([]any)
	if len(results) != 4 || old["status"] != "completed" {
		t.Fatalf("%v", old)
	}
	for i, want := range []struct {
		name, source  string
		reward, snips float64 // sums
	}{{"Online", "Online", float64(a), rounds}, {"Baseline", "Baseline", float64(2 * a), float64(2 * a)},
		{"Random", "Random", float64(a), rounds}, {"b", "Custom", 0, float64(2 * (rounds - a))}} {
		r := results[i].(map[string]any)
		total := r["totalSummary"].(map[string]any)
		near := func(key string, want float64) {
			t.Helper()
			if got, ok := total[key].(float64); !ok || math.Abs(got-want) > 1e-9 {
				t.Errorf("%s is %v, want %v: %v", key, total[key], want, r)
			}
		}
		near("ipsEstimatorNumerator", want.reward)
		near("ipsEstimatorDenominator", rounds)
		near("snipsEstimatorDenominator", want.snips)
		if i == 0 {
			near("averageReward", float64(a)/rounds)
			half, _ = total["confidenceInterval"].(float64)
		}
		if r["name"] != want.name || r["policySource"] != want.source || total["aggregateTimeWindow"] != "PT2H" {
			t.Errorf("%v", r)
		}
	}
	latest := w.evaluated("", "mine", between(-time.Hour, time.Hour))
	content, _ := latest["content"].(map[string]any)
	results, _ = content["value"].([]any)
	if latest["status"] != "Succeeded" || latest["id"] != "mine" || len(results) != 4 ||
		!strings.Contains(fmt.Sprint(latest["description"]), "rows") {
		t.Fatalf("%v", latest)
	}
	summary := results[0].(map[string]any)["summary"].(map[string]any)
	interval, _ := summary["confidenceInterval"].([]any)
	if mean := float64(a) / rounds; math.Abs(summary["expectedReward"].(float64)-mean) > 1e-9 || len(interval) != 2 ||
		interval[0].(float64) >= mean || interval[1].(float64) <= mean ||
		math.Abs(interval[1].(float64)-interval[0].(float64)-2*half) > 1e-9 {
		t.Errorf("%v, want %v", summary, mean)
	}
	if got := w.call("PUT", ofVersion("", "/evaluations/mine"), between(0, time.Hour)); got.status != 409 ||
		got.asVendor(t).Code != "EvaluationAlreadyExists" {
		t.Errorf("the same id again: %d %s", got.status, got.body)
	}
	empty := w.evaluated("/v1.1-preview.3", "", between(-2*time.Hour, -time.Hour))
	if empty["status"] != "failed" || empty["description"] == "" {
		t.Errorf("of a time without decisions: %v", empty)
	}
	list := w.call("GET", ofVersion("", "/evaluations")+"&skip=1&top=1", "").object(t)["value"].([]any)
	if len(list) != 1 || list[0].(map[string]any)["id"] != "mine" {
		t.Errorf("%v", list)
	}
	for query, want := range map[string]int{"&top=0": 0, "&top=-1": 0, "&top=9": 3, "&skip=-1": 3, "&skip=9": 0} {
		got := w.call("GET", ofVersion("", "/evaluations")+query, "").object(t)["value"].([]any)
		if len(got) != want {
			t.Errorf("%s: %d evaluations, want %d", query, len(got), want)
		}
	}
	w.call("DELETE", ofVersion("", "/evaluations/mine"), "")
	var all []any
	left := w.call("GET", ofVersion("/v1.0", "/evaluations"), "")
	if json.Unmarshal(left.body, &all) != nil || len(all) != 2 {
		t.Errorf("%s", left.body)
	}
}

// TestPersonalizerEvaluationsKept holds how many evaluations are kept.
func TestPersonalizerEvaluationsKept(t *testing.T) {
	var s evaluations
	for i := range mostEvaluations {
		if p := s.add(&evaluation{id: fmt.Sprint(i)}); p != nil {
			t.Fatal(p.Detail)
		}
	}
	if p := s.add(&evaluation{id: "one more"}); p == nil || p.Status != 409 || p.code != "OperationNotAllowed" {
		t.Errorf("%+v", p)
	}
}
