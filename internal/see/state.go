package see

import (
	"time"

	"hindsight/internal/service"
)

// State is the JSON of /state. What this process does not know, or nothing is known of yet, is
// null.
type State struct {
	Program   string    `json:"program" doc:"decider or feedback-joiner"`
	Version   string    `json:"version" doc:"of the build"`
	Model     string    `json:"model" doc:"name of the model"`
	Time      time.Time `json:"time" doc:"now, by this process's clock"`
	UpSeconds float64   `json:"up_seconds" doc:"since the process started"`
	Ready     bool      `json:"ready" doc:"as /readyz says"`
	Why       string    `json:"why" doc:"why it is not ready"`
	Deciders  []int     `json:"deciders" doc:"partitions decided here"`
	Joiner    bool      `json:"joiner" doc:"the joiner is at work here"`
	Idle      Idle      `json:"idle" doc:"what of this process is not at work now, and why"`
	Mode      string    `json:"mode" doc:"live, shadow, apprentice or paused; empty: no decider is at work here"`

	Flow        Flow                     `json:"flow" doc:"what passes a second, over the last 5 to 10 seconds"`
	Waiting     Waiting                  `json:"waiting" doc:"what waits where"`
	Actions     Actions                  `json:"actions" doc:"what was played in the last 1,000 decisions known here"`
	Exploration Exploration              `json:"exploration" doc:"how widely those explore, and whether draws follow their propensities"`
	Shadow      Shadow                   `json:"shadow" doc:"what the learner would have done in the last rounds of mode shadow"`
	Apprentice  Apprentice               `json:"apprentice" doc:"how often the learner would have done what its baseline did, in the last rounds of mode apprentice"`
	Losses      Losses                   `json:"losses" doc:"what rounds were worth beside uniform play"`
	Delays      Delays                   `json:"delays" doc:"how late outcomes come, and how many feedbacks decisions did without"`
	Fates       map[string]int64         `json:"fates" doc:"rounds released since the start, or since the snapshot that the process started from, by fate"`
	Refused     map[string]float64       `json:"refused" doc:"outcomes and contexts rejected since the start, by reason"`
	Certificate *service.CertificatePage `json:"certificate" doc:"as /certificate; null: no decider is at work here"`
	CertAge     float64                  `json:"certificate_age_seconds" doc:"since it was computed: it takes the decider's time, and is kept for 5 s; what else is here is of now"`
	Rejects     []Reject                 `json:"rejects" doc:"the last rejects written here, at most 20 and some of each reason, newest first, without their bytes"`
	Alarms      []AlarmState             `json:"alarms" doc:"whose condition holds, the most urgent first"`
	Elsewhere   []string                 `json:"elsewhere" doc:"alarms that one process cannot judge: Prometheus can"`
}

// Idle says why a part that is in this process does not work now.
type Idle struct {
	Decider string `json:"decider" doc:"why no decider is at work here; empty: one is, or none is in this process"`
	Joiner  string `json:"joiner" doc:"why the joiner is not at work here; empty: it is, or none is in this process"`
}

// Flow is what passes a second.
type Flow struct {
	Topic     float64 `json:"topic_contexts" doc:"decisions of contexts that came by topic"`
	Requests  float64 `json:"requests" doc:"decisions of contexts that came by request"`
	Decisions float64 `json:"decisions" doc:"both"`
	Reported  float64 `json:"outcomes_by_request" doc:"outcomes stored for callers"`
	Outcomes  float64 `json:"outcomes" doc:"outcomes read by the joiner"`
	Feedback  float64 `json:"feedback" doc:"rounds released by the joiner"`
	Learned   float64 `json:"learned" doc:"feedbacks taken by a decider, the mean over those here"`
	Rejects   float64 `json:"rejects" doc:"records rejected"`
	Refused   float64 `json:"refused" doc:"requests answered with an error"`
}

// Waiting is what waits.
type Waiting struct {
	Contexts    *float64 `json:"contexts" doc:"not yet read by a decider"`
	Feedback    *float64 `json:"feedback" doc:"not yet learned"`
	Outstanding *float64 `json:"outstanding" doc:"decisions whose feedback is not learned"`
	Joiner      *float64 `json:"joiner" doc:"decisions and outcomes not yet read by the joiner"`
	Pending     *float64 `json:"pending" doc:"rounds that wait for their fate or their turn"`
	Held        *float64 `json:"held" doc:"of them, those that have their fate and wait for rounds before them (the FIFO tax)"`
	Window      *float64 `json:"window_seconds" doc:"how long a round waits at most; null: as many rounds as the model says"`
	Head        *Head    `json:"head" doc:"the round that all others wait for"`
}

// Head is the head of the line.
type Head struct {
	Partition  int     `json:"partition" doc:"of its decision"`
	Round      int64   `json:"round" doc:"its number there"`
	ID         string  `json:"id" doc:"of the round, for /explain"`
	AgeSeconds float64 `json:"age_seconds" doc:"in log time, which goes on while the joiner stands still"`
}

// Actions is what was played.
type Actions struct {
	Decisions int           `json:"decisions" doc:"of which this is"`
	Most      []ActionShare `json:"most" doc:"the most frequent actions"`
	Others    int           `json:"others" doc:"decisions for any other action"`
}

// ActionShare is how often an action was played.
type ActionShare struct {
	Action    string   `json:"action" doc:"its name"`
	Decisions int      `json:"decisions" doc:"for it"`
	Share     float64  `json:"share" doc:"of those decisions"`
	Rounds    int      `json:"rounds" doc:"of the last 1,000 released, those with it that have a loss"`
	Mean      *float64 `json:"mean" doc:"their mean loss or reward, as losses.of says"`
}

// Exploration is how widely the last decisions explore.
type Exploration struct {
	Gamma     *float64 `json:"gamma" doc:"γ of the last decision, of the first partition here: the larger, the less is explored"`
	Floor     *float64 `json:"floor" doc:"least propensity of any action"`
	Entropy   *float64 `json:"entropy" doc:"mean entropy of the laws as a share of the uniform law's"`
	Draws     int64    `json:"draws" doc:"checked against their propensities"`
	Evidence  *float64 `json:"evidence" doc:"that draws do not follow them, anytime-valid; null: they cannot"`
	Refuted   bool     `json:"refuted" doc:"the evidence has reached 10,000"`
	Effective *float64 `json:"effective" doc:"effective share of the last 1,000 rounds released in an estimate for uniform play"`
	Largest   *float64 `json:"largest" doc:"the largest of those importance weights as a share of all"`
	Outside   float64  `json:"outside_values" doc:"values since the start that were outside the range which the model states for their feature; the log names some features"`
	TopWeight *float64 `json:"top_weight" doc:"largest weight of a function, policy or member"`
	Surviving *float64 `json:"surviving" doc:"functions of the class that the data have not refuted"`
	Functions *float64 `json:"functions" doc:"of the class"`
}

// Shadow is what the learner would have done where the baseline answered.
type Shadow struct {
	Decisions int      `json:"decisions" doc:"of the last 1,000, made in shadow"`
	Agreement *float64 `json:"agreement" doc:"mean probability that the learner would have done what the baseline did"`
	Rounds    int      `json:"rounds" doc:"of the last 1,000 released, made in shadow and with a loss"`
	Uncovered *float64 `json:"uncovered" doc:"mean probability that the learner would have done what the baseline never does"`
	Excess    *float64 `json:"excess" doc:"estimate of what the learner would have lost a round over the baseline; null if more than 5 % is uncovered"`
	Error     *float64 `json:"error" doc:"standard error of that"`
	Gap       *float64 `json:"gap" doc:"the same difference as losses.of says: of rewards what the learner would have earned over the baseline"`
	GapError  *float64 `json:"gap_error" doc:"standard error of that"`
}

// Apprentice is how near a learner is to what it learns from.
type Apprentice struct {
	Rounds int      `json:"rounds" doc:"of the last 1,000 of mode apprentice"`
	Match  *float64 `json:"match" doc:"mean probability that the learner, asked just before it learned a round, would have done what the baseline did"`
}

// Losses is what rounds were worth: as losses on the scale of 0 to 1, and as what the outcomes
// are.
type Losses struct {
	Of            string     `json:"of" doc:"reward or loss: what mean and uniform_mean are, by the model, or reward once an outcome told one"`
	Rounds        int        `json:"rounds" doc:"of the last 1,000 released that have a loss"`
	Mean          *float64   `json:"mean" doc:"of them: of rewards on the model's own range, else as loss"`
	UniformMean   *float64   `json:"uniform_mean" doc:"what uniform play would have had in them, as uniform"`
	Loss          *float64   `json:"loss" doc:"their mean"`
	Uniform       *float64   `json:"uniform" doc:"what uniform play would have lost in them (self-normalised importance weights)"`
	JoinRatio     *float64   `json:"join_ratio" doc:"share of the last 1,000 released, withdrawn ones left out, whose outcome came in time"`
	Start         *time.Time `json:"start" doc:"log time at which the buckets begin"`
	BucketSeconds float64    `json:"bucket_seconds" doc:"their width; it doubles when there would be more than 96"`
	Buckets       []Bucket   `json:"buckets" doc:"by the log time of the decision"`
}

// Bucket is one stretch of log time.
type Bucket struct {
	Rounds  int64    `json:"rounds" doc:"with a loss"`
	Loss    *float64 `json:"loss" doc:"their mean"`
	Uniform *float64 `json:"uniform" doc:"the estimate for uniform play"`

	Mean        *float64 `json:"mean" doc:"their mean as losses.of says"`
	UniformMean *float64 `json:"uniform_mean" doc:"the estimate for uniform play, likewise"`
}

// Delays is how late outcomes are.
type Delays struct {
	Seconds Spread `json:"seconds" doc:"from decision to outcome, in log time, of rounds observed"`
	Rounds  Spread `json:"rounds" doc:"feedbacks released and not yet learned at the decision (σ)"`
}

// Spread is how numbers are spread.
type Spread struct {
	N       int64       `json:"n" doc:"how many"`
	P50     *float64    `json:"p50" doc:"median, by buckets of powers of two"`
	P90     *float64    `json:"p90" doc:"90th percentile"`
	P99     *float64    `json:"p99" doc:"99th percentile"`
	Most    *float64    `json:"most" doc:"the largest"`
	Buckets []HistCount `json:"buckets" doc:"the powers of two between the smallest and the largest"`
}

// HistCount counts the numbers in one bucket.
type HistCount struct {
	To float64 `json:"to" doc:"upper end"`
	N  int64   `json:"n" doc:"below it and not in a bucket before"`
}

// Reject is a record that was rejected.
type Reject struct {
	Time      *time.Time `json:"time" doc:"log time of the record"`
	Topic     string     `json:"topic" doc:"contexts or outcomes"`
	Partition int        `json:"partition" doc:"of it"`
	Offset    int64      `json:"offset" doc:"of the record"`
	Reason    string     `json:"reason" doc:"late, duplicate, orphan, mismatch, malformed or duplicate-id"`
	Detail    string     `json:"detail" doc:"what is wrong with the record, if there is more to say than the reason; at most 200 bytes of it"`
	ID        string     `json:"id" doc:"of the round, if it could be read"`
	Means     string     `json:"means" doc:"the reason in words"`
}
