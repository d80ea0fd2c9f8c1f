package explain

import (
	"encoding/json"
	"time"
)

// Explanation is the life of one round. What is not known, or has not happened, is null.
type Explanation struct {
	ID       string    `json:"id"`
	Model    string    `json:"model"`
	Context  Context   `json:"context"`
	Decision Decision  `json:"decision"`
	Had      Had       `json:"had"`
	Outcomes []Outcome `json:"outcomes"` // that are known of, in log time
	Feedback *Feedback `json:"feedback"` // null: the round waits
	Taught   *Taught   `json:"taught"`   // null: it waits, was not learned, or cannot be recomputed
	Check    string    `json:"check"`    // identical, different: …, or why the decision was not recomputed
	Notes    []string  `json:"notes"`
}

// Context is how the context came.
type Context struct {
	Source    string `json:"source"` // topic or request
	Partition int    `json:"partition"`
	Offset    int64  `json:"offset"` // in contexts; -1: it came by request
	LogTime   Time   `json:"log_time"`
	Bytes     int    `json:"bytes"`
	Kept      bool   `json:"kept"`               // the record is still in contexts, and is what was decided
	Text      string `json:"text,omitempty"`     // as JSON; only where features may be shown
	NotRead   string `json:"not_read,omitempty"` // names of features that the model does not list, and keys that no context has; where features may not be shown how many
}

// Decision is what was decided, and why.
type Decision struct {
	Partition  int      `json:"partition"`
	N          int64    `json:"n"`
	Offset     int64    `json:"offset"`
	LogTime    Time     `json:"log_time"`
	Epoch      int64    `json:"epoch"`
	Gamma      float64  `json:"gamma"`
	Mu         *float64 `json:"mu"` // of p(a) = 1/(μ + γ·(f̂(a) − min f̂)), where the law is that
	Action     string   `json:"action"`
	Propensity float64  `json:"propensity"`
	Draw       *float64 `json:"draw"` // in [0,1): the intervals of the actions in their order hold it
	Actions    []Action `json:"actions"`
	Mode       string   `json:"mode"` // live: the learner answered; else the baseline, and propensities are its
	Why        string   `json:"why"`
}

// Action is one eligible action.
type Action struct {
	Action     string   `json:"action"`
	Propensity float64  `json:"propensity"`
	Predicted  *float64 `json:"predicted"` // loss f̂ in [0,1] that the model expected
	Drawn      bool     `json:"drawn"`
	Would      *float64 `json:"would,omitempty"` // in shadow: the probability that the learner would have given it
}

// Had says which feedback the model had learned when it decided.
type Had struct {
	LearnedThrough int64  `json:"learned_through"` // feedbacks 1..τ
	Learned        int64  `json:"learned"`         // rounds of this epoch among them that were learned
	OwnThrough     *int64 `json:"own_through"`     // of its own partition, rounds 1..this had theirs
	Outstanding    *int64 `json:"outstanding"`     // rounds of its partition that had not
	LastAt         Time   `json:"last_at"`         // log time of feedback τ, if it was read
}

// Outcome is one record of outcomes that names the round.
type Outcome struct {
	Partition int      `json:"partition"`
	Offset    int64    `json:"offset"`
	LogTime   Time     `json:"log_time"`
	Kind      string   `json:"kind"`  // loss, reward, withdrawn, activated; "": it cannot be read
	Value     *float64 `json:"value"` // on the user's scale
	Action    string   `json:"action,omitempty"`
	Became    string   `json:"became"`           // counted, or the reason of its reject
	Detail    string   `json:"detail,omitempty"` // of the reject
}

// Feedback is what became of the round.
type Feedback struct {
	N         int64   `json:"n"`
	Offset    int64   `json:"offset"`
	LogTime   Time    `json:"log_time"`
	Fate      string  `json:"fate"`
	Reason    string  `json:"reason,omitempty"`
	Loss      float64 `json:"loss"`
	ClosedAt  Time    `json:"closed_at"`
	Delay     float64 `json:"delay_seconds"` // from the decision to what closed it, in log time
	Waited    float64 `json:"waited_seconds"`
	Overtaken int64   `json:"not_learned_before"` // σ: feedbacks before its own that the decision did not have
}

// Taught is what learning the round changed for a context like it.
type Taught struct {
	Learned bool      `json:"learned"`
	Actions []Changed `json:"actions"`
}

// Changed is what changed for one action.
type Changed struct {
	Action           string   `json:"action"`
	PredictedBefore  *float64 `json:"predicted_before"`
	PredictedAfter   *float64 `json:"predicted_after"`
	PropensityBefore float64  `json:"propensity_before"`
	PropensityAfter  float64  `json:"propensity_after"`
}

// Time is a log time: RFC 3339 in JSON, null if it is not known.
type Time int64 // ns since 1970; 0: not known

// MarshalJSON implements [encoding/json.Marshaler].
func (t Time) MarshalJSON() ([]byte, error) {
	if t == 0 {
		return []byte("null"), nil
	}
	return time.Unix(0, int64(t)).UTC().MarshalJSON()
}

// UnmarshalJSON implements [encoding/json.Unmarshaler].
func (t *Time) UnmarshalJSON(b []byte) error {
	var at *time.Time
	if err := json.Unmarshal(b, &at); err != nil {
		return err
	}
	if *t = 0; at != nil {
		*t = Time(at.UnixNano())
	}
	return nil
}

// String returns the time for people.
func (t Time) String() string {
	if t == 0 {
		return "an unknown time"
	}
	return time.Unix(0, int64(t)).UTC().Format("2006-01-02 15:04:05.000 UTC")
}
