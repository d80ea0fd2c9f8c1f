package see

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"hindsight/internal/watch"
	"hindsight/internal/words"
	"hindsight/pkg/codec"
)

// mostActions is how many actions are listed.
const mostActions = 12

// meanings says what reasons of rejects mean.
var meanings = map[string]string{
	codec.ReasonDuplicateID: "this id was used by an earlier round",
	codec.ReasonLate:        "it came after the round's window",
	codec.ReasonDuplicate:   "the round has its outcome already",
	codec.ReasonOrphan:      "no decision has this id",
	codec.ReasonMismatch:    "it names another action than was decided",
	codec.ReasonMalformed:   "it is not a valid event, or none that the model takes",
}

// state returns all that is known now.
func (s *See) state(now time.Time) *state {
	out := &state{Program: s.o.Program, Version: s.o.Version, Model: s.o.Model, Time: now,
		UpSeconds: now.Sub(s.began).Seconds(),
		Deciders:  []int{}, Fates: map[string]int64{}, Refused: map[string]float64{}, Rejects: []reject{},
		Alarms:  []alarmState{},
		Actions: actions{Most: []actionShare{}}, Losses: losses{Buckets: []bucket{}}, Budgets: []budget{},
		Elsewhere: s.watch.elsewhere}
	if err := s.o.Health.Ready(); err != nil {
		out.Why = err.Error()
	} else {
		out.Ready = true
	}
	out.Idle = idle{s.o.Health.Idle(watch.RoleDecider), s.o.Health.Idle(watch.RoleJoiner)}
	l := s.live.Load()
	if l == nil {
		return out
	}
	m := &moment{take(l.gather, now), &s.past}
	out.Flow, out.Waiting = flow(m), waiting(m)
	out.Alarms = s.watch.judge(m)
	for i := range out.Alarms {
		if a := &out.Alarms[i]; a.Name == notReady && out.Why != "" {
			a.Says += " It says: " + out.Why
		}
	}
	out.Joiner = m.values["hindsight_at_work"].sum(`role="joiner"`) > 0
	for _, reason := range []string{codec.ReasonLate, codec.ReasonDuplicate, codec.ReasonOrphan, codec.ReasonMismatch,
		codec.ReasonMalformed, codec.ReasonDuplicateID} {
		out.Refused[reason] = m.values["hindsight_rejects_total"].sum(`reason="` + reason + `"`)
	}
	if page := s.o.Control.Judged(); page != nil && len(page.Candidates) > 0 {
		out.Candidates = page
	}
	v := l.scope.View()
	out.scope(&v, m)
	if mode := m.first("hindsight_mode"); mode != nil {
		out.Mode = codec.Mode(*mode).String()
	}
	e := &out.Exploration
	e.Gamma, e.TopWeight = m.first("hindsight_gamma"), m.first("hindsight_top_weight")
	e.Outside = m.values["hindsight_outside_feature_values_total"].sum()
	e.Surviving, e.Functions = m.first("hindsight_models_surviving"), m.first("hindsight_models")
	if page, age := s.cert.look(s.o.Insight, now); page != nil {
		out.Certificate, out.CertAge, out.Deciders = page, age.Seconds(), page.Partitions
	}
	return out
}

func flow(m *moment) flows {
	f := flows{Topic: m.rate("hindsight_decisions_total", `source="topic"`),
		Requests:  m.rate("hindsight_decisions_total", `source="request"`),
		Decisions: m.rate("hindsight_decisions_total"), Reported: m.rate("hindsight_outcomes_stored_total"),
		Outcomes: m.rate("hindsight_outcomes_total"),
		Feedback: m.rate("hindsight_feedback_total"), Rejects: m.rate("hindsight_rejects_total"),
		Refused: m.rate("hindsight_requests_refused_total")}
	if n := m.values["hindsight_at_work"].sum(`role="decider"`); n > 0 {
		f.Learned = m.rate("hindsight_learned_through") / n
	}
	return f
}

func waiting(m *moment) waits {
	return waits{Contexts: m.there("hindsight_contexts_lag_records"),
		Feedback:    m.there("hindsight_feedback_lag_records"),
		Outstanding: m.there("hindsight_decisions_outstanding"), Joiner: m.there("hindsight_joiner_lag_records"),
		Pending: m.there("hindsight_pending_rounds"), Held: m.there("hindsight_fifo_held_rounds"),
		Provisional: m.first("hindsight_provisional_rounds"), Window: m.there("hindsight_window_seconds")}
}

// there returns what a metric shows, nil if it is not there or not finite.
func (m *moment) there(name string) *float64 {
	if len(m.values[name]) == 0 {
		return nil
	}
	return watch.Known(m.values[name].sum())
}

// first returns what a metric of deciders shows for the lowest partition here, nil if it is not there.
func (m *moment) first(name string) *float64 {
	lowest, value := math.MaxInt, (*float64)(nil)
	for labels, v := range m.values[name] {
		p, err := strconv.Atoi(strings.Trim(strings.TrimPrefix(labels, "partition="), `"`))
		if x := watch.Known(v); x != nil && err == nil && p < lowest {
			lowest, value = p, x
		}
	}
	return value
}

// scope fills in what the last rounds tell.
func (out *state) scope(v *watch.View, m *moment) {
	for i, a := range v.Actions {
		out.Actions.Decisions += a.Decisions
		if i < mostActions {
			w := v.Worths[a.Action]
			x := actionShare{Action: a.Action, Decisions: a.Decisions,
				Share: float64(a.Decisions) / float64(v.Exploration.Decisions), Rounds: w.Rounds}
			if w.Rounds > 0 {
				x.Mean = watch.Known(v.Rewards.Shown(w.Loss))
			}
			out.Actions.Most = append(out.Actions.Most, x)
		} else {
			out.Actions.Others += a.Decisions
		}
	}
	out.Assigned = assigned(v.Assigned)
	out.Verdict = verdict(v) + guarded(v.Rewards, m.there("hindsight_guard_excess_loss")) +
		heldBack(v.Rewards, m.there("hindsight_guard_held_rounds"), m.there("hindsight_guard_forgone_gain"))
	r := &v.Recent
	e := &out.Exploration
	e.Floor, e.Entropy, e.Draws, e.Evidence, e.Refuted = watch.Known(v.Exploration.Floor),
		watch.Known(v.Exploration.Entropy), v.Draws, watch.Known(v.Evidence), v.Refuted
	e.Effective, e.Largest = watch.Known(r.Effective), watch.Known(r.Largest)
	out.losses(v)
	for i := range v.Spends {
		out.Budgets = append(out.Budgets, kept(&v.Spends[i]))
	}
	x := &v.Shadow
	out.Shadow = shadow{Decisions: x.Decisions, Agreement: watch.Known(x.Agreement), Rounds: x.Rounds,
		Uncovered: watch.Known(x.Uncovered), Excess: watch.Known(x.Excess), Error: watch.Known(x.StdErr),
		Gap: watch.Known(v.Rewards.Gap(x.Excess)), GapError: watch.Known(v.Rewards.Length(x.StdErr))}
	out.Apprentice = apprentice{v.Match.Rounds, watch.Known(v.Match.Rate)}
	out.Delays = delays{spread(&v.Delays), spread(&v.Released)}
	for f, n := range v.Fates {
		out.Fates[f.String()] = n
	}
	for _, x := range v.Rejects {
		out.Rejects = append(out.Rejects, reject{Time: instant(x.Time), Topic: x.Topic, Partition: x.Partition,
			Offset: x.Offset, Reason: x.Reason, Detail: x.Detail, ID: x.ID, Means: meanings[x.Reason]})
	}
	if age := m.there("hindsight_pending_oldest_age_seconds"); v.Head != nil && age != nil {
		// not of a joiner that has left
		h := v.Head
		out.Waiting.Head = &head{Partition: h.Partition, Round: h.N, ID: h.ID, AgeSeconds: *age}
	}
}

// fewestRounds is the least effective sample size that a normal interval is made of.
const fewestRounds = 30

// verdict says what the rounds that the learner decided were worth beside uniform play; in shadow,
// where the baseline answered, what it would have had beside that.
func verdict(v *watch.View) string {
	r, live, x := &v.Recent, &v.Live, &v.Shadow
	switch {
	case r.Losses > 0 && x.Rounds == r.Losses && x.Rounds >= fewestRounds && !math.IsNaN(x.Excess):
		return v.Rewards.Verdict("The baseline answers. In its last "+words.Count(int64(x.Rounds))+
			" rounds the learner would have", r.Loss+x.Excess, x.Excess, x.StdErr, "the baseline")
	case live.Losses == 0:
		return "Whether the learner is worth having is not known yet: no outcome of a round that it decided has come."
	}
	se := live.StdErr
	if float64(live.Losses)*live.Effective < fewestRounds {
		se = math.NaN()
	}
	return v.Rewards.Verdict("The learner's last "+words.Count(int64(live.Losses))+" rounds", live.Loss,
		live.Excess, se, "uniform play")
}

// guarded says what the guard counts beside the baseline; nil: there is none here.
func guarded(r *words.Rewards, excess *float64) string {
	if excess == nil {
		return ""
	}
	return fmt.Sprintf(" Beside its baseline the guard counts %s a round, without an interval.", gap(r, *excess))
}

// gap is a difference of losses in words, as the model counts.
func gap(r *words.Rewards, loss float64) string {
	more, gap := "more", r.Gap(loss)
	if gap < 0 {
		more, gap = "less", -gap
	}
	return words.Short(gap) + " " + more + " " + r.Of()
}

// heldBack says what a guard that holds the learner back has cost; nil: there is none here.
func heldBack(r *words.Rewards, rounds, forgone *float64) string {
	if rounds == nil || forgone == nil {
		return ""
	}
	return fmt.Sprintf(" The guard held it back in %s rounds, where by itself it would have had %s in all, without "+
		"an interval.", words.Count(int64(*rounds)), gap(r, -*forgone))
}

func (out *state) losses(v *watch.View) {
	r := &v.Recent
	l := &out.Losses
	l.Rounds, l.Loss, l.Uniform, l.JoinRatio = r.Losses, watch.Known(r.Loss), watch.Known(r.Uniform),
		watch.Known(r.JoinRatio)
	l.Of, l.Mean, l.UniformMean = v.Rewards.Of(), watch.Known(v.Rewards.Shown(r.Loss)),
		watch.Known(v.Rewards.Shown(r.Uniform))
	l.BucketSeconds = time.Duration(v.LossWidth).Seconds()
	if len(v.Losses) > 0 {
		l.Start = instant(v.LossStart)
	}
	for _, b := range v.Losses {
		loss, uniform := b.Loss/float64(b.Rounds), b.Weighted/b.Weight
		l.Buckets = append(l.Buckets, bucket{Rounds: b.Rounds, Loss: watch.Known(loss),
			Uniform: watch.Known(uniform),
			Mean:    watch.Known(v.Rewards.Shown(loss)), UniformMean: watch.Known(v.Rewards.Shown(uniform))})
	}
}

func kept(s *watch.Spend) budget {
	b := budget{Name: s.Budget.Name, Limit: s.Budget.Mean, AtLeast: s.Budget.AtLeast, Price: watch.Known(s.Price),
		Rounds: s.Costs, Mean: watch.Known(s.Mean), Late: watch.Known(s.Late), Error: watch.Known(s.Error),
		Next: watch.Known(1000 * s.Expected), Missed: s.Missed, Strange: s.Strange, Points: []spent{}}
	for _, p := range s.Points {
		b.Points = append(b.Points, spent{p.Rounds, watch.Known(p.Price), watch.Known(p.Mean)})
	}
	return b
}

func instant(ns int64) *time.Time {
	t := time.Unix(0, ns).UTC()
	return &t
}

// spread returns a histogram without the empty buckets at its ends.
func spread(h *watch.Histogram) spreads {
	out := spreads{N: h.N, P50: watch.Known(h.Quantile(.5)), P90: watch.Known(h.Quantile(.9)),
		P99: watch.Known(h.Quantile(.99)), Buckets: []histCount{}}
	if h.N == 0 {
		return out
	}
	out.Most = watch.Known(h.Most)
	first, last := -1, 0
	for i, n := range h.Counts {
		if n > 0 {
			if last = i; first < 0 {
				first = i
			}
		}
	}
	for i := first; i <= last; i++ {
		out.Buckets = append(out.Buckets, histCount{To: h.Unit * math.Exp2(float64(i)), N: h.Counts[i]})
	}
	return out
}
