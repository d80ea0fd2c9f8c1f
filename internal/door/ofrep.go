package door

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net/http"
	"strings"
	"time"

	"hindsight/internal/front"
	"hindsight/pkg/stream"
)

// OpenFeature's remote evaluation protocol (OFREP) over the calls of /v1. The flag is the model, and the evaluation
// context is a context. The id of its round follows from the targeting key and from the time, cut into periods: an
// evaluation with the same key in the same period is answered with the recorded decision, whatever process is asked.

const flagRoot = "/ofrep"

// defaultPeriod is the period of a model whose window is no time.
const defaultPeriod = 10 * time.Minute

// Error codes of OpenFeature.
const (
	flagNotFound   = "FLAG_NOT_FOUND"
	parseError     = "PARSE_ERROR"
	keyMissing     = "TARGETING_KEY_MISSING"
	invalidContext = "INVALID_CONTEXT"
	generalError   = "GENERAL"
)

// flagFailure is an error as OFREP has it.
type flagFailure struct {
	Key          string `json:"key,omitempty"`
	ErrorCode    string `json:"errorCode"`
	ErrorDetails string `json:"errorDetails"`
}

// flagRequest is the body of a call.
type flagRequest struct {
	Context map[string]json.RawMessage
	Details trackingDetails // of a tracking call

	targetingKey string
}

// trackingDetails say what a tracking call reports.
type trackingDetails struct {
	Value     json.RawMessage `json:"value"`
	ID        string          `json:"id"` // of the round; "": the last one of the targeting key
	OutcomeID string          `json:"outcome_id"`
}

// flagAnswer is an evaluation.
type flagAnswer struct {
	Key      string       `json:"key"`
	Value    any          `json:"value"`
	Reason   string       `json:"reason"`
	Variant  string       `json:"variant"`
	Metadata flagMetadata `json:"metadata"`
}

type flagMetadata struct {
	ID         string  `json:"id"`
	Propensity float64 `json:"propensity"`
	Epoch      int64   `json:"epoch"`
}

// flagCode returns what OpenFeature calls the problem.
func (p *problem) flagCode() string {
	switch {
	case p.code != "":
		return p.code
	case p.Status != http.StatusBadRequest:
		return generalError
	case p.counted: // the decider judged the context
		return invalidContext
	}
	return parseError
}

// evaluateFlag evaluates one flag.
func (d *Door) evaluateFlag(w http.ResponseWriter, r *http.Request, c client) *problem {
	answer, p := d.evaluate(w, r, c, r.PathValue("key"))
	if p != nil {
		return p
	}
	return sendJSON(w, r, http.StatusOK, answer)
}

// evaluateFlags evaluates all flags that this process serves, which is one.
func (d *Door) evaluateFlags(w http.ResponseWriter, r *http.Request, c client) *problem {
	answer, p := d.evaluate(w, r, c, d.o.Model)
	if p != nil {
		return p
	}
	b, _ := json.Marshal(map[string]any{"flags": []*flagAnswer{answer}}) // of text and numbers
	sum := sha256.Sum256(b)
	tag := fmt.Sprintf(`"%x"`, sum[:8])
	w.Header().Set("ETag", tag)
	for known := range strings.SplitSeq(r.Header.Get("If-None-Match"), ",") {
		if known = strings.TrimSpace(known); known == "*" || strings.TrimPrefix(known, "W/") == tag {
			w.WriteHeader(http.StatusNotModified)
			return nil
		}
	}
	send(w, r, http.StatusOK, typeJSON, b)
	return nil
}

// track stores an outcome of the round of a targeting key.
func (d *Door) track(w http.ResponseWriter, r *http.Request, c client) *problem {
	q, p := d.readFlagRequest(w, r, r.PathValue("key"))
	if p == nil && q.Details.Value == nil {
		p = refused(http.StatusBadRequest, parseError, "", "details.value is missing: the reward of the round")
	}
	if p == nil && q.Details.ID == "" {
		q.Details.ID, p = d.lastRound(r, c, q)
	}
	if p != nil {
		return p
	}
	b, _ := json.Marshal(outcome{ID: q.Details.ID, Reward: q.Details.Value, OutcomeID: q.Details.OutcomeID}) // was JSON
	var reply json.RawMessage
	if _, p = d.exchange(r, c, "outcome", b, &reply); p == nil {
		send(w, r, http.StatusAccepted, typeJSON, reply)
	}
	return p
}

// readFlagRequest reads the body of a call for a flag.
func (d *Door) readFlagRequest(w http.ResponseWriter, r *http.Request, flag string) (*flagRequest, *problem) {
	if flag != d.o.Model {
		return nil, refused(http.StatusNotFound, flagNotFound, "", fmt.Sprintf("this process serves the flag %s",
			d.o.Model))
	}
	q := &flagRequest{}
	if p := d.readJSON(w, r, q, "a request of OFREP", parseError); p != nil {
		return nil, p
	}
	key := q.Context["targetingKey"]
	if err := json.Unmarshal([]byte(cmp.Or(string(key), `""`)), &q.targetingKey); err != nil {
		return nil, refused(http.StatusBadRequest, invalidContext, "", "context.targetingKey is not text")
	}
	if q.targetingKey == "" && q.Details.ID == "" {
		return nil, refused(http.StatusBadRequest, keyMissing, "", "context.targetingKey is missing")
	}
	return q, nil
}

// evaluate asks for the decision of a flag's round, or for the one that is recorded.
func (d *Door) evaluate(w http.ResponseWriter, r *http.Request, c client, flag string) (*flagAnswer, *problem) {
	q, p := d.readFlagRequest(w, r, flag)
	if p != nil {
		return nil, p
	}
	delete(q.Context, "targetingKey")
	context := contextOf(d.roundOf(q.targetingKey, 0), q.Context)
	var told struct {
		flagMetadata
		Action       string
		Propensities map[string]float64
	}
	recorded := stream.Header{Key: front.RecordedHeader, Value: front.RecordedOrNew}
	if _, p = d.exchange(r, c, "decide", context, &told, recorded); p != nil {
		return nil, p
	}
	return &flagAnswer{flag, valueOf(told.Action, told.Propensities), "SPLIT", told.Action, told.flagMetadata}, nil
}

// lastRound returns the id of the last round that a targeting key has, of those that may still wait for an outcome.
func (d *Door) lastRound(r *http.Request, c client, q *flagRequest) (id string, p *problem) {
	recorded := stream.Header{Key: front.RecordedHeader, Value: front.RecordedOnly}
	for back := range 2 {
		id = d.roundOf(q.targetingKey, back)
		// An older decider does not know the header. It refuses a context that lists no action.
		context, _ := json.Marshal(map[string]any{"id": id, "actions": []string{}}) // of text
		found, p := d.exchange(r, c, "decide", context, nil, recorded)
		if p != nil || found {
			return id, p
		}
	}
	return "", refused(http.StatusNotFound, generalError, "", "no evaluation with this targetingKey waits for an "+
		"outcome: evaluate first, or name its round in details.id")
}

// period returns how long an evaluation stands: the model's window, if that is known and a time.
func (d *Door) period() time.Duration {
	return cmp.Or(time.Duration(d.rules().Window.Nanos), defaultPeriod)
}

// roundOf returns the id of the round that a targeting key has in the period at hand, or so many periods back.
// The periods of a key begin at a time of its own, so that not all keys are decided anew at once.
func (d *Door) roundOf(key string, back int) string {
	period := d.period()
	h := fnv.New64a()
	h.Write([]byte(key))
	phase := time.Duration(h.Sum64() % uint64(period)).Truncate(time.Second)
	start := d.now().UTC().Add(-phase).Truncate(period).Add(phase - time.Duration(back)*period)
	return key + "@" + start.Format(time.RFC3339Nano)
}

// contextOf returns the context of a round. Attributes that are lists or objects are no features: the key attributes,
// which nobody reads, has them in the log.
func contextOf(id string, attributes map[string]json.RawMessage) []byte {
	features, others := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	for name, value := range attributes {
		if value[0] == '{' || value[0] == '[' {
			others[name] = value
		} else {
			features[name] = value
		}
	}
	b, _ := json.Marshal(struct { // of text and of what was JSON
		ID         string                     `json:"id"`
		Features   map[string]json.RawMessage `json:"features,omitempty"`
		Attributes map[string]json.RawMessage `json:"attributes,omitempty"`
	}{id, features, others})
	return b
}

// exchange asks on the bus and reads the reply into v. It reports false if the reply is empty.
func (d *Door) exchange(r *http.Request, c client, subject string, body []byte, v any, more ...stream.Header) (
	found bool, p *problem) {
	e, p := d.call(r, c, subject, body, more...)
	if p != nil {
		return false, p
	}
	defer e.release()
	if len(e.reply) == 0 || v == nil {
		return len(e.reply) > 0, nil
	}
	if err := json.Unmarshal(e.reply, v); err != nil {
		return false, newProblem(http.StatusInternalServerError, "the reply cannot be read: "+err.Error())
	}
	return true, nil
}

// valueOf returns the value of a flag: of booleans, if all actions of the round are named true and false, of numbers,
// if all are named so, else the name of the action.
func valueOf(action string, propensities map[string]float64) any {
	kind := literalOf(action)
	for name := range propensities {
		if literalOf(name) != kind {
			return action
		}
	}
	if kind == 0 {
		return action
	}
	return json.RawMessage(action)
}

// literalOf returns b for a boolean, n for a number, and 0 for any other text.
func literalOf(name string) byte {
	switch {
	case name == "true" || name == "false":
		return 'b'
	case strings.Trim(name, "+-.0123456789eE") == "" && json.Valid([]byte(name)):
		return 'n'
	}
	return 0
}
