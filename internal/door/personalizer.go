package door

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"hindsight/internal/logs"
	"hindsight/internal/loop"
	"hindsight/pkg/codec"
)

// Personalizer's REST API lies below this path, older versions in a folder of their own.
const personalizerRoot = "/personalizer"

// expected is what a body is said not to be.
const expected = "what is expected"

// latestAPI is the version that a parameter names.
const latestAPI = "2022-09-01-preview"

// personalizerVersions are the versions as folders of the API, "" the latest.
func personalizerVersions() []string {
	return []string{"", "/v1.0", "/v1.1-preview.1", "/v1.1-preview.2", "/v1.1-preview.3"}
}

// ofLatest reports whether a request is one of the latest version.
func ofLatest(r *http.Request) bool { return !strings.HasPrefix(r.URL.Path, personalizerRoot+"/v1.") }

// personalizerCalls are the calls of every version. Where versions differ in a method, all have both.
func (d *Door) personalizerCalls() []route {
	service := d.configuration(d.settings, settingKeys(), "InvalidServiceConfiguration")
	policy := d.configuration(d.policy, policyKeys(), "InvalidPolicyConfiguration")
	calls := []route{
		{"POST", "/rank", mayDecide, "decide", d.rank},
		{"POST", "/events/{id}/reward", mayOutcome, "outcome", d.reward},
		{"POST", "/events/{id}/activate", mayOutcome, "outcome", d.activate},
		{"POST", "/multislot/rank", mayDecide, "decide", d.rankSlots},
		{"POST", "/multislot/events/{id}/reward", mayOutcome, "outcome", d.rewardSlots},
		{"POST", "/multislot/events/{id}/activate", mayOutcome, "outcome", d.activateSlots},
		{"GET", "/status", mayRead, "", d.personalizerStatus},
		{"GET", "/model/properties", mayRead, "", d.modelProperties},
		{"GET", "/logs/properties", mayRead, "", d.logProperties},
		{"GET", "/evaluations", mayRead, "", d.listEvaluations},
		{"POST", "/evaluations", mayRead, "", d.createEvaluation},
		{"PUT", "/evaluations/{id}", mayRead, "", d.createEvaluation},
		{"GET", "/evaluations/{id}", mayRead, "", d.showEvaluation},
		{"DELETE", "/evaluations/{id}", mayRead, "", d.deleteEvaluation},
	}
	for _, method := range []string{"GET", "PUT", "PATCH"} {
		calls = append(calls, route{method, "/configurations/service", mayRead, "", service},
			route{method, "/configurations/policy", mayRead, "", policy})
	}
	return calls
}

// personalizerElsewhere are the calls that have no meaning here. They say what to do instead.
func personalizerElsewhere() []route {
	instead := func(text string) handler {
		return func(http.ResponseWriter, *http.Request, client) *problem {
			return refused(http.StatusNotImplemented, "OperationNotAllowed", "", text)
		}
	}
	importance := instead("importances of features are not computed here: replayer backtest --report shows what a " +
		"log tells")
	policy := instead("set the keys learner, explore and oracle in the model file")
	records := instead("write decisions by rank and outcomes by reward")
	return []route{
		{"GET", "/model", mayRead, "", instead("there is no model file to export: the learner's state is in the log, " +
			"with which it moves and is backed up")},
		{"PUT", "/model", mayRead, "", instead("a model cannot be imported: replayer teach starts a log with what " +
			"another one teaches")},
		{"DELETE", "/model", mayRead, "", instead("set a higher version in the model file: it starts a fresh learner")},
		{"DELETE", "/configurations/policy", mayRead, "", policy},
		{"POST", "/configurations/applyFromEvaluation", mayRead, "", policy},
		{"POST", "/configurations/client", mayRead, "", instead("decisions are made here: create the client without " +
			"local inference")},
		{"DELETE", "/logs", mayRead, "", instead("records are dropped by age: decider --retention, when the log is " +
			"made")},
		{"POST", "/logs/interactions", mayRead, "", records},
		{"POST", "/logs/observations", mayRead, "", records},
		{"GET", "/featureImportances", mayRead, "", importance},
		{"PUT", "/featureImportances/{id}", mayRead, "", importance},
		{"GET", "/featureImportances/{id}", mayRead, "", importance},
		{"DELETE", "/featureImportances/{id}", mayRead, "", importance},
	}
}

// personalizer returns the calls of all versions.
func (d *Door) personalizer() (all []route) {
	for _, version := range personalizerVersions() {
		for _, t := range append(d.personalizerCalls(), personalizerElsewhere()...) {
			answer := t.answer
			t.path, t.answer = personalizerRoot+version+t.path,
				func(w http.ResponseWriter, r *http.Request, c client) *problem {
					if v := r.URL.Query().Get("api-version"); v != latestAPI && ofLatest(r) {
						return refused(http.StatusBadRequest, "BadRequest", "api-version", fmt.Sprintf("api-version "+
							"is %.64q: send api-version=%s, or ask below %s/v1.0", v, latestAPI, personalizerRoot))
					}
					return answer(w, r, c)
				}
			all = append(all, t)
		}
	}
	return all
}

// personalizerError is an error as Personalizer tells it.
type personalizerError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Target  string `json:"target,omitempty"`
}

// personalizerError returns the problem in Personalizer's shape.
func (p *problem) personalizerError() personalizerError {
	code := p.code
	if code == "" {
		code = map[int]string{http.StatusBadRequest: "BadRequest", http.StatusForbidden: "InvalidApiAccess",
			http.StatusNotFound: "ResourceNotFound", http.StatusRequestTimeout: "RequestTimeout",
			http.StatusRequestEntityTooLarge: "PayloadSizeExceeded",
			http.StatusInternalServerError:   "InternalServerError",
		}[p.Status]
	}
	if code == "" {
		code = strings.ReplaceAll(http.StatusText(p.Status), " ", "")
	}
	return personalizerError{code, p.Detail, p.target}
}

// rankRequest is a Rank request.
type rankRequest struct {
	ContextFeatures json.RawMessage  `json:"contextFeatures"`
	Actions         []rankableAction `json:"actions"`
	ExcludedActions []string         `json:"excludedActions"`
	EventID         string           `json:"eventId"`
	DeferActivation bool             `json:"deferActivation"`
}

type rankableAction struct {
	ID       *string         `json:"id"`
	Features json.RawMessage `json:"features"`
}

// rankResponse is a Rank response.
type rankResponse struct {
	Ranking        []rankedAction `json:"ranking"`
	EventID        string         `json:"eventId"`
	RewardActionID string         `json:"rewardActionId"`
}

type rankedAction struct {
	ID          string  `json:"id"`
	Probability float64 `json:"probability"`
}

// rank decides, and answers when that is in the log. Where the model waits for activations, an event whose activation
// is not deferred is activated before.
func (d *Door) rank(w http.ResponseWriter, r *http.Request, c client) *problem {
	var request rankRequest
	if p := d.readJSON(w, r, &request, expected, "InvalidRankRequest"); p != nil {
		return p
	}
	activation := d.rules().Activation
	if request.DeferActivation && !activation {
		return refused(http.StatusBadRequest, "InvalidRankRequest", "deferActivation", "activation cannot be "+
			"deferred: set activation: required in the model file")
	}
	asked, err := request.context()
	if err != nil {
		return refused(http.StatusBadRequest, "InvalidRankRequest", "", err.Error())
	}
	var decision struct {
		ID, Action   string
		Propensities map[string]float64
	}
	if p := d.hand(r, c, "decide", codec.AppendContextJSON(nil, asked), &decision); p != nil {
		return p
	}
	if activation && !request.DeferActivation {
		if p := d.tell(r, c, outcome{ID: decision.ID, Activated: true}); p != nil {
			return p
		}
	}
	return sendJSON(w, r, http.StatusCreated,
		&rankResponse{request.ranking(decision.Action, decision.Propensities), decision.ID, decision.Action})
}

// context returns what is asked: excluded actions are left out, and the first of the others is the baseline. Features
// are those that replayer reads of Personalizer's logs.
func (q *rankRequest) context() (*codec.Context, error) {
	c := &codec.Context{ID: q.EventID}
	var err error
	if c.Features, err = logs.Features(q.ContextFeatures); err != nil {
		return nil, fmt.Errorf("contextFeatures: %w", err)
	}
	for i, a := range q.Actions {
		if a.ID == nil {
			return nil, fmt.Errorf("actions[%d]: it has no id", i)
		}
		if slices.ContainsFunc(c.Actions, func(b codec.Action) bool { return b.Name == *a.ID }) {
			return nil, fmt.Errorf("actions[%d]: the id %q was used before", i, *a.ID)
		}
		action := codec.Action{Name: *a.ID}
		if action.Features, err = logs.Features(a.Features); err != nil {
			return nil, fmt.Errorf("actions[%d].features: %w", i, err)
		}
		if !slices.Contains(q.ExcludedActions, *a.ID) {
			c.Actions = append(c.Actions, action)
		}
	}
	if len(c.Actions) == 0 {
		return nil, errors.New("actions: none is left, or none is listed")
	}
	c.Baseline = []codec.Share{{Name: c.Actions[0].Name, P: 1}}
	return c, c.Validate()
}

// ranking orders the actions as Personalizer does: excluded ones keep their place, with probability 0; in the other
// places is the action that was drawn, then the rest by their probabilities.
func (q *rankRequest) ranking(drawn string, propensities map[string]float64) []rankedAction {
	first := func(a rankedAction) float64 {
		if a.ID == drawn {
			return 2
		}
		return a.Probability
	}
	excluded := func(a rankedAction) bool { return slices.Contains(q.ExcludedActions, a.ID) }
	var out []rankedAction
	for _, a := range q.Actions {
		out = append(out, rankedAction{*a.ID, propensities[*a.ID]})
	}
	rest := slices.DeleteFunc(slices.Clone(out), excluded)
	slices.SortStableFunc(rest, func(a, b rankedAction) int { return cmp.Compare(first(b), first(a)) })
	for i := range out {
		if !excluded(out[i]) {
			out[i], rest = rest[0], rest[1:]
		}
	}
	return out
}

// outcome is an outcome of ours.
type outcome struct {
	ID        string `json:"id"`
	Reward    any    `json:"reward,omitempty"` // a number, or JSON; nil: none is told
	Activated bool   `json:"activated,omitempty"`
	OutcomeID string `json:"outcome_id,omitempty"`
}

// reward stores a reward. Clients send the same request id when they try again: the reward then counts once.
func (d *Door) reward(w http.ResponseWriter, r *http.Request, c client) *problem {
	var request struct{ Value *float64 }
	if p := d.readJSON(w, r, &request, expected, "InvalidRewardRequest"); p != nil {
		return p
	}
	if p := d.checkReward(request.Value); p != nil {
		return p
	}
	return noContent(w, d.tell(r, c, outcome{ID: r.PathValue("id"), Reward: request.Value, OutcomeID: requestID(r)}))
}

// requestID returns what a client calls a request, and its retries.
func requestID(r *http.Request) string { return r.Header.Get("X-Ms-Client-Request-Id") }

// checkReward says what is wrong with a reward.
func (d *Door) checkReward(v *float64) *problem {
	rules := d.rules()
	low, high := rules.Range.Min, rules.Range.Max
	switch {
	case v == nil:
		return refused(http.StatusBadRequest, "InvalidRewardRequest", "value", "value is missing")
	case rules.Range == (loop.Range{}) || rules.Range.Clip: // the model is not known here, or takes any
	case *v < low || *v > high:
		return refused(http.StatusBadRequest, "InvalidRewardRequest", "value", fmt.Sprintf("value is %v: the model "+
			"takes rewards from %v to %v; set reward: {min: …, max: …} in the model file", *v, low, high))
	}
	return nil
}

// activate says that an event was used. Where the model does not wait for that, every event is active from the start.
func (d *Door) activate(w http.ResponseWriter, r *http.Request, c client) *problem {
	if p := checkActivated(r); p != nil || !d.rules().Activation {
		return noContent(w, p)
	}
	return noContent(w, d.tell(r, c, outcome{ID: r.PathValue("id"), Activated: true}))
}

// checkActivated says what is wrong with the event that a request activates.
func checkActivated(r *http.Request) *problem {
	if len(r.PathValue("id")) > codec.MaxIDBytes {
		return refused(http.StatusBadRequest, "InvalidEventIdToActivate", "eventId", fmt.Sprintf("an eventId has at "+
			"most %d bytes", codec.MaxIDBytes))
	}
	return nil
}

// rules are those that the process decides by; zero if it decides by none.
func (d *Door) rules() *loop.Rules {
	if m := d.definition(); m != nil {
		return m.Rules
	}
	return &loop.Rules{}
}

// tell stores an outcome.
func (d *Door) tell(r *http.Request, c client, o outcome) *problem {
	b, _ := json.Marshal(o) // of texts and a number
	return d.hand(r, c, "outcome", b, nil)
}

// hand hands a request to who answers it on the bus, and reads the reply into v.
func (d *Door) hand(r *http.Request, c client, subject string, body []byte, v any) *problem {
	_, p := d.exchange(r, c, subject, body, v)
	if p != nil && (p.Status == http.StatusBadRequest || p.Status == http.StatusConflict) {
		p.code = map[string]string{"decide": "InvalidRankRequest", "outcome": "InvalidRewardRequest"}[subject]
	}
	return p
}

// noContent answers with nothing, unless there is a problem.
func noContent(w http.ResponseWriter, p *problem) *problem {
	if p == nil {
		w.WriteHeader(http.StatusNoContent)
	}
	return p
}
