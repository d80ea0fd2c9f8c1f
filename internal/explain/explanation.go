package explain

import (
	"encoding/json"
	"time"
)

// Explanation is the life of one round. What is not known, or has not happened, is null.
type Explanation struct {
	ID       string       `json:"id"`
	Model    string       `json:"model"`
	Context  roundContext `json:"context"`
	Decision decision     `json:"decision"`
	Had      had          `json:"had"`
	Outcomes []outcome    `json:"outcomes"`        // that are known of, in log time
	Named    []named      `json:"named,omitempty"` // of a model that names outcomes: those of which records tell
	Feedback *feedback    `json:"feedback"`        // null: the round waits
	Taught   *taught      `json:"taught"`          // null: it waits, was not learned, or cannot be recomputed
	Check    string       `json:"check"`           // identical, different: …, or why the decision was not recomputed
	Notes    []string     `json:"notes"`
}

// roundContext is how the context came.
type roundContext struct {
	Source    string  `json:"source"` // topic or request
	Partition int     `json:"partition"`
	Offset    int64   `json:"offset"` // in contexts; -1: it came by request
	LogTime   logTime `json:"log_time"`
	Bytes     int     `json:"bytes"`
	Kept      bool    `json:"kept"`           // the record is still in contexts, and is what was decided
	Text      string  `json:"text,omitempty"` // as JSON; only where features may be shown
	// names of features that the model does not list, and keys that no context has; where features may not be shown
	// how many
	NotRead string `json:"not_read,omitempty"`
}

// decision is what was decided, and why.
type decision struct {
	Partition  int      `json:"partition"`
	N          int64    `json:"n"`
	Offset     int64    `json:"offset"`
	LogTime    logTime  `json:"log_time"`
	Epoch      int64    `json:"epoch"`
	Gamma      float64  `json:"gamma"`
	Mu         *float64 `json:"mu"` // of p(a) = 1/(μ + γ·(f̂(a) − min f̂)), where the law is that
	Action     string   `json:"action"`
	Propensity *float64 `json:"propensity"`   // null: another system decided, and did not give it
	By         string   `json:"by,omitempty"` // who decided a round of mode external, as its context says
	// in [0,1): the intervals of the actions in their order hold it; null: none
	Draw    *float64 `json:"draw"`
	Actions []action `json:"actions"`
	Prices  []value  `json:"prices,omitempty"` // that the learner charged for what is budgeted
	// live: the learner answered; external: another system; else the baseline. Propensities are those of who answered
	Mode string `json:"mode"`
	Why  string `json:"why"`
}

// action is one eligible action.
type action struct {
	Action     string   `json:"action"`
	Propensity *float64 `json:"propensity"`
	Predicted  *float64 `json:"predicted"` // loss f̂ in [0,1] that the model expected
	Drawn      bool     `json:"drawn"`
	Would      *float64 `json:"would,omitempty"` // in shadow: the probability that the learner would have given it
}

// had says which feedback the model had learned when it decided.
type had struct {
	LearnedThrough int64   `json:"learned_through"` // feedbacks 1..τ
	Learned        int64   `json:"learned"`         // rounds of this epoch among them that were learned
	OwnThrough     *int64  `json:"own_through"`     // of its own partition, rounds 1..this had theirs
	Outstanding    *int64  `json:"outstanding"`     // rounds of its partition that had not
	LastAt         logTime `json:"last_at"`         // log time of feedback τ, if it was read
}

// outcome is one record of outcomes that names the round.
type outcome struct {
	Partition int      `json:"partition"`
	Offset    int64    `json:"offset"`
	LogTime   logTime  `json:"log_time"`
	Kind      string   `json:"kind"`             // loss, reward, withdrawn, activated, outcomes; "": it cannot be read
	Value     *float64 `json:"value"`            // on the user's scale
	Values    []value  `json:"values,omitempty"` // that it names
	Action    string   `json:"action,omitempty"`
	Became    string   `json:"became"`           // counted, or the reason of its reject
	Detail    string   `json:"detail,omitempty"` // of the reject
}

// value is one of several named numbers; null: it was withdrawn.
type value struct {
	Name  string   `json:"name"`
	Value *float64 `json:"value"`
}

// named is what became of one named outcome of the round.
type named struct {
	Name      string   `json:"name"`
	Fate      string   `json:"fate"`
	Value     *float64 `json:"value"` // on its own scale; null: it has none
	Partition int      `json:"partition"`
	Offset    int64    `json:"offset"` // of the record that decided it; -1: none
	ClosedAt  logTime  `json:"closed_at"`
	Stage     int      `json:"stage,omitempty"` // whose record told of it before the round's feedback
}

// feedback is what became of the round.
type feedback struct {
	N         int64   `json:"n"`
	Offset    int64   `json:"offset"`
	Cut       int64   `json:"cut,omitempty"` // that it follows from; 0: the joiner logged none
	LogTime   logTime `json:"log_time"`
	Fate      string  `json:"fate"`
	Reason    string  `json:"reason,omitempty"`
	Loss      float64 `json:"loss"`
	ClosedAt  logTime `json:"closed_at"`
	Delay     float64 `json:"delay_seconds"` // from the decision to what closed it, in log time
	Waited    float64 `json:"waited_seconds"`
	Overtaken int64   `json:"not_learned_before"` // σ: feedbacks before its own that the decision did not have
}

// taught is what learning the round changed for a context like it.
type taught struct {
	Learned bool      `json:"learned"`
	Actions []changed `json:"actions"`
}

// changed is what changed for one action.
type changed struct {
	Action           string   `json:"action"`
	PredictedBefore  *float64 `json:"predicted_before"`
	PredictedAfter   *float64 `json:"predicted_after"`
	PropensityBefore float64  `json:"propensity_before"`
	PropensityAfter  float64  `json:"propensity_after"`
}

// logTime is a log time: RFC 3339 in JSON, null if it is not known.
type logTime int64 // ns since 1970; 0: not known

// MarshalJSON implements [encoding/json.Marshaler].
func (t logTime) MarshalJSON() ([]byte, error) {
	if t == 0 {
		return []byte("null"), nil
	}
	return time.Unix(0, int64(t)).UTC().MarshalJSON()
}

// UnmarshalJSON implements [encoding/json.Unmarshaler].
func (t *logTime) UnmarshalJSON(b []byte) error {
	var at *time.Time
	if err := json.Unmarshal(b, &at); err != nil {
		return err
	}
	if *t = 0; at != nil {
		*t = logTime(at.UnixNano())
	}
	return nil
}

// String returns the time for people.
func (t logTime) String() string {
	if t == 0 {
		return "an unknown time"
	}
	return time.Unix(0, int64(t)).UTC().Format("2006-01-02 15:04:05.000 UTC")
}
