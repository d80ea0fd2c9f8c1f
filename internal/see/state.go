package see

import (
	"time"

	"hindsight/internal/service"
)

// state is the JSON of /state. What this process does not know, or nothing is known of yet, is null.
type state struct {
	Program   string    `json:"program"`    // decider or feedback-joiner
	Version   string    `json:"version"`    // of the build
	Model     string    `json:"model"`      // name of the model
	Time      time.Time `json:"time"`       // now, by this process's clock
	UpSeconds float64   `json:"up_seconds"` // since the process started
	Ready     bool      `json:"ready"`      // as /readyz says
	Why       string    `json:"why"`        // why it is not ready
	Verdict   string    `json:"verdict"`    // whether what is decided is worth having, in a sentence
	Deciders  []int     `json:"deciders"`   // partitions decided here
	Joiner    bool      `json:"joiner"`     // the joiner is at work here
	Idle      idle      `json:"idle"`       // what of this process is not at work now, and why
	Mode      string    `json:"mode"`       // live, shadow, apprentice or paused; empty: no decider is at work here

	Flow    flows   `json:"flow"`    // what passes a second, over the last 5 to 10 seconds
	Waiting waits   `json:"waiting"` // what waits where
	Actions actions `json:"actions"` // what was played in the last 1,000 decisions known here
	// decisions of others, since the start; they count nowhere else but in fates and delays
	Assigned assigned `json:"assigned"`
	// how widely those explore, and whether draws follow their propensities
	Exploration exploration `json:"exploration"`
	// what the learner would have done in the last rounds of mode shadow
	Shadow shadow `json:"shadow"`
	// how often the learner agrees with its baseline, in the last rounds of mode apprentice
	Apprentice apprentice `json:"apprentice"`
	Losses     losses     `json:"losses"`  // what rounds were worth beside uniform play
	Budgets    []budget   `json:"budgets"` // how each budget of the model is kept; looked at every 5 s
	// as /candidates: what the policies that the model names are worth; null: the joiner is not at work here, or the
	// model names none
	Candidates *service.CandidatesPage `json:"candidates"`
	// how late outcomes come, and how many feedbacks decisions did without
	Delays delays `json:"delays"`
	// rounds released since the start, or since the snapshot that the process started from, by fate
	Fates map[string]int64 `json:"fates"`
	// outcomes and contexts rejected since the start, by reason
	Refused     map[string]float64       `json:"refused"`
	Certificate *service.CertificatePage `json:"certificate"` // as /certificate; null: no decider is at work here
	// since it was computed: it takes the decider's time, and is kept for 5 s; what else is here is of now
	CertAge float64 `json:"certificate_age_seconds"`
	// the last rejects written here, at most 20 and some of each reason, newest first, without their bytes
	Rejects   []reject     `json:"rejects"`
	Alarms    []alarmState `json:"alarms"`    // whose condition holds, the most urgent first
	Elsewhere []string     `json:"elsewhere"` // alarms that one process cannot judge: Prometheus can
}

// idle says why a part that is in this process does not work now.
type idle struct {
	Decider string `json:"decider"` // why no decider is at work here; empty: one is, or none is in this process
	Joiner  string `json:"joiner"`  // why the joiner is not at work here; empty: it is, or none is in this process
}

// flows is what passes a second.
type flows struct {
	Topic     float64 `json:"topic_contexts"`      // decisions of contexts that came by topic
	Requests  float64 `json:"requests"`            // decisions of contexts that came by request
	Decisions float64 `json:"decisions"`           // both
	Reported  float64 `json:"outcomes_by_request"` // outcomes stored for callers
	Outcomes  float64 `json:"outcomes"`            // outcomes read by the joiner
	Feedback  float64 `json:"feedback"`            // rounds released by the joiner
	Learned   float64 `json:"learned"`             // feedbacks taken by a decider, the mean over those here
	Rejects   float64 `json:"rejects"`             // records rejected
	Refused   float64 `json:"refused"`             // requests answered with an error
}

// waits is what waits.
type waits struct {
	Contexts    *float64 `json:"contexts"`    // not yet read by a decider
	Feedback    *float64 `json:"feedback"`    // not yet learned
	Outstanding *float64 `json:"outstanding"` // decisions whose feedback is not learned
	Joiner      *float64 `json:"joiner"`      // decisions and outcomes not yet read by the joiner
	Pending     *float64 `json:"pending"`     // rounds that wait for their fate or their turn
	// of them, those that have their fate and wait for rounds before them (the FIFO tax)
	Held *float64 `json:"held"`
	// that the learner knows by a provisional loss; null: the model has no early, or no decider is at work here
	Provisional *float64 `json:"provisional"`
	// how long a round waits at most; null: as many rounds as the model says
	Window *float64 `json:"window_seconds"`
	Head   *head    `json:"head"` // the round that all others wait for
}

// head is the head of the line.
type head struct {
	Partition  int     `json:"partition"`   // of its decision
	Round      int64   `json:"round"`       // its number there
	ID         string  `json:"id"`          // of the round, for /explain
	AgeSeconds float64 `json:"age_seconds"` // in log time, which continues while the joiner is stuck
}

// actions is what was played.
type actions struct {
	Decisions int           `json:"decisions"` // of which this is
	Most      []actionShare `json:"most"`      // the most frequent actions
	Others    int           `json:"others"`    // decisions for any other action
}

// actionShare is how often an action was played.
type actionShare struct {
	Action    string   `json:"action"`    // its name
	Decisions int      `json:"decisions"` // for it
	Share     float64  `json:"share"`     // of those decisions
	Rounds    int      `json:"rounds"`    // of the last 1,000 released, those with it that have a loss
	Mean      *float64 `json:"mean"`      // their mean loss or reward, as losses.of says
}

// assigned counts the rounds that another system decided.
type assigned struct {
	Rounds  int64 `json:"rounds"`
	Unknown int64 `json:"without_propensity"` // of them: no estimate takes them
}

// exploration is how widely the last decisions explore.
type exploration struct {
	// γ of the last decision, of the first partition here: the larger, the less is explored
	Gamma    *float64 `json:"gamma"`
	Floor    *float64 `json:"floor"`    // least propensity of any action
	Entropy  *float64 `json:"entropy"`  // mean entropy of the laws as a share of the uniform law's
	Draws    int64    `json:"draws"`    // checked against their propensities
	Evidence *float64 `json:"evidence"` // that draws do not follow them, anytime-valid; null: they cannot
	Refuted  bool     `json:"refuted"`  // the evidence has reached 10,000
	// effective share of the last 1,000 rounds released in an estimate for uniform play
	Effective *float64 `json:"effective"`
	Largest   *float64 `json:"largest"` // the largest of those importance weights as a share of all
	// values since the start that were outside the range which the model states for their feature; the log names
	// some features
	Outside   float64  `json:"outside_values"`
	TopWeight *float64 `json:"top_weight"` // largest weight of a function, policy or member
	Surviving *float64 `json:"surviving"`  // functions of the class that the data have not refuted
	Functions *float64 `json:"functions"`  // of the class
}

// shadow is what the learner would have done where the baseline answered.
type shadow struct {
	Decisions int      `json:"decisions"` // of the last 1,000, made in shadow
	Agreement *float64 `json:"agreement"` // mean probability that the learner agrees with the baseline
	Rounds    int      `json:"rounds"`    // of the last 1,000 released, made in shadow and with a loss
	// mean share of the learner's law that the baseline never plays
	Uncovered *float64 `json:"uncovered"`
	// estimate of what the learner would have lost a round over the baseline; null if more than 5 % is uncovered
	Excess *float64 `json:"excess"`
	Error  *float64 `json:"error"` // standard error of that
	// the same difference as losses.of says: of rewards what the learner would have earned over the baseline
	Gap      *float64 `json:"gap"`
	GapError *float64 `json:"gap_error"` // standard error of that
}

// apprentice is how near a learner is to what it learns from.
type apprentice struct {
	Rounds int `json:"rounds"` // of the last 1,000 of mode apprentice
	// mean probability that the learner, asked just before it learned a round, would have done what the baseline did
	Match *float64 `json:"match"`
}

// losses is what rounds were worth: as losses on the scale of 0 to 1, and as what the outcomes are.
type losses struct {
	// reward or loss: what mean and uniform_mean are, by the model, or reward once an outcome told one
	Of          string   `json:"of"`
	Rounds      int      `json:"rounds"`       // of the last 1,000 released that have a loss
	Mean        *float64 `json:"mean"`         // of them: of rewards on the model's own range, else as loss
	UniformMean *float64 `json:"uniform_mean"` // what uniform play would have had in them, as uniform
	Loss        *float64 `json:"loss"`         // their mean
	// what uniform play would have lost in them (self-normalised importance weights)
	Uniform *float64 `json:"uniform"`
	// share of the last 1,000 released, withdrawn ones left out, whose outcome came in time
	JoinRatio     *float64   `json:"join_ratio"`
	Start         *time.Time `json:"start"`          // log time at which the buckets begin
	BucketSeconds float64    `json:"bucket_seconds"` // their width; it doubles when there would be more than 96
	Buckets       []bucket   `json:"buckets"`        // by the log time of the decision
}

// bucket is one stretch of log time.
type bucket struct {
	Rounds  int64    `json:"rounds"`  // with a loss
	Loss    *float64 `json:"loss"`    // their mean
	Uniform *float64 `json:"uniform"` // the estimate for uniform play

	Mean        *float64 `json:"mean"`         // their mean as losses.of says
	UniformMean *float64 `json:"uniform_mean"` // the estimate for uniform play, on the same scale
}

// budget is how one budget is kept.
type budget struct {
	Name    string   `json:"name"`     // by the model
	Limit   float64  `json:"limit"`    // what the mean is to be at most, or at least
	AtLeast bool     `json:"at_least"` // it is to be at least that
	Price   *float64 `json:"price"`    // λ: the loss that a cost as large as the limit is charged
	Rounds  int64    `json:"rounds"`   // whose cost was learned since the limit was set
	Mean    *float64 `json:"mean"`     // of them
	Late    *float64 `json:"late"`     // mean of about the last 1,000 of them
	Error   *float64 `json:"error"`    // standard error of that
	Next    *float64 `json:"next"`     // what the next 1,000 rounds are predicted to cost together
	Missed  bool     `json:"missed"`   // as a whole, and of late by four standard errors
	// costs learned here that were over 100 times what the model says they are about, or below a hundredth
	Strange int64   `json:"strange"`
	Points  []spent `json:"points"` // over the rounds, since this process started
}

// spent is a stretch of rounds whose cost was learned.
type spent struct {
	Rounds int64    `json:"rounds"` // whose cost had been learned at its end
	Price  *float64 `json:"price"`  // λ then
	Mean   *float64 `json:"mean"`   // of the costs in it
}

// delays is how late outcomes are.
type delays struct {
	Seconds spreads `json:"seconds"` // from decision to outcome, in log time, of rounds observed
	Rounds  spreads `json:"rounds"`  // feedbacks released and not yet learned at the decision (σ)
}

// spreads is how numbers are spread.
type spreads struct {
	N       int64       `json:"n"`       // how many
	P50     *float64    `json:"p50"`     // median, by buckets of powers of two
	P90     *float64    `json:"p90"`     // 90th percentile
	P99     *float64    `json:"p99"`     // 99th percentile
	Most    *float64    `json:"most"`    // the largest
	Buckets []histCount `json:"buckets"` // the powers of two between the smallest and the largest
}

// histCount counts the numbers in one bucket.
type histCount struct {
	To float64 `json:"to"` // upper end
	N  int64   `json:"n"`  // below it and not in a bucket before
}

// reject is a record that was rejected.
type reject struct {
	Time      *time.Time `json:"time"`      // log time of the record
	Topic     string     `json:"topic"`     // contexts or outcomes
	Partition int        `json:"partition"` // of it
	Offset    int64      `json:"offset"`    // of the record
	Reason    string     `json:"reason"`    // late, duplicate, orphan, mismatch, malformed or duplicate-id
	// what is wrong with the record, if there is more to say than the reason; at most 200 bytes of it
	Detail string `json:"detail"`
	ID     string `json:"id"`    // of the round, if it could be read
	Means  string `json:"means"` // the reason in words
}
