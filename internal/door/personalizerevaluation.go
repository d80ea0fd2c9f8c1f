package door

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"hindsight/internal/judge"
	"hindsight/internal/loop"
	"hindsight/internal/ope"
)

// mostEvaluations is how many are kept, while the process runs.
const mostEvaluations = 100

// evaluations are those that were asked for. One runs at a time.
type evaluations struct {
	ctx  context.Context
	room chan struct{}

	mu  sync.Mutex
	all []*evaluation
}

// policySpec is a policy that is judged.
type policySpec struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"` // as in replayer backtest --policy
	source    string // as Personalizer has it
}

// evaluation judges policies on what was decided between two times.
type evaluation struct {
	id, name          string
	from, to, created time.Time
	policies          []policySpec
	cancel            context.CancelFunc

	done    bool
	err     error
	results []policyResult
	flags   []string // what speaks against believing them, in words
}

// policyResult is what a log says of a policy, in rewards.
type policyResult struct {
	policySpec
	rows, nonZero  int
	events, weight float64    // that the rows stand for, and the mean importance weight
	ips            float64    // estimate by importance weights
	reward         ope.Figure // doubly robust estimate
	interval       [2]ope.Figure
}

// createEvaluation begins an evaluation: of the policy at work, of the baseline where events name some, of uniform
// play, and of others.
func (d *Door) createEvaluation(w http.ResponseWriter, r *http.Request, _ client) *problem {
	const code = "InvalidEvaluationContract"
	var asked struct {
		Name                         string
		StartTime, EndTime           time.Time
		Policies                     []policySpec
		EnableOfflineExperimentation bool // before the latest version
		EnablePolicyOptimization     bool
	}
	if p := d.readJSON(w, r, &asked, expected, code); p != nil {
		return p
	}
	switch {
	case asked.Name == "":
		return refused(http.StatusBadRequest, code, "name", "name is missing")
	case !asked.StartTime.Before(asked.EndTime):
		return refused(http.StatusBadRequest, code, "endTime", "endTime must come after startTime")
	case asked.EnableOfflineExperimentation || asked.EnablePolicyOptimization:
		return refused(http.StatusBadRequest, code, "", "policies are not optimised here: send false; replayer "+
			"backtest compares learners, with several --learner and --oracle")
	}
	policies := []policySpec{{"Online", "logging", "Online"}, {"Baseline", "baseline", "Baseline"},
		{"Random", "uniform", "Random"}}
	for i, x := range asked.Policies {
		target := fmt.Sprintf("policies[%d]", i)
		if slices.ContainsFunc(policies, func(o policySpec) bool { return o.Name == x.Name }) {
			return refused(http.StatusBadRequest, "DuplicateCustomPolicyNames", target, fmt.Sprintf("the name %q is "+
				"used twice", x.Name))
		}
		kind, _, _ := strings.Cut(judge.Mixed(x.Arguments), ":")
		if !slices.Contains([]string{"logging", "uniform", "baseline", "always", "hash"}, kind) {
			return refused(http.StatusBadRequest, "InvalidPolicyContract", target, fmt.Sprintf("arguments are %.64q: "+
				"expected logging, uniform, baseline, always:ACTION, hash:FEATURE or eps:E,POLICY; replayer backtest "+
				"judges learners, too",
				x.Arguments))
		}
		x.source = "Custom"
		policies = append(policies, x)
	}
	e := &evaluation{id: r.PathValue("id"), name: asked.Name, from: asked.StartTime.UTC(), to: asked.EndTime.UTC(),
		created: time.Now().UTC(), policies: policies}
	status := http.StatusOK
	if e.id == "" {
		e.id, status = rand.Text(), http.StatusCreated
	}
	ctx, cancel := context.WithCancel(d.judged.ctx)
	e.cancel = cancel
	if p := d.judged.add(e); p != nil {
		cancel()
		return p
	}
	go d.evaluateInTurn(ctx, e, d.rules().Range)
	w.Header().Set("Location", strings.TrimSuffix(r.URL.Path, "/"+r.PathValue("id"))+"/"+e.id)
	return sendJSON(w, r, status, d.judged.view(e, ofLatest(r)))
}

func (s *evaluations) add(e *evaluation) *problem {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case slices.ContainsFunc(s.all, func(x *evaluation) bool { return x.id == e.id }):
		return refused(http.StatusConflict, "EvaluationAlreadyExists", "evaluationId", "there is an evaluation with "+
			"this id")
	case len(s.all) >= mostEvaluations:
		return refused(http.StatusConflict, "OperationNotAllowed", "", fmt.Sprintf("%d evaluations are kept at most: "+
			"delete some", mostEvaluations))
	}
	s.all = append(s.all, e)
	return nil
}

// evaluateInTurn judges when no other evaluation does.
func (d *Door) evaluateInTurn(ctx context.Context, e *evaluation, scale loop.Range) {
	defer e.cancel()
	s := &d.judged
	select {
	case <-ctx.Done():
		return
	case s.room <- struct{}{}:
		defer func() { <-s.room }()
	}
	results, flags, err := d.judge(ctx, e, scale)
	s.mu.Lock()
	defer s.mu.Unlock()
	e.done, e.err, e.results, e.flags = true, err, results, flags
}

// judge says of each policy what the log does, as replayer backtest --policy would.
func (d *Door) judge(ctx context.Context, e *evaluation, scale loop.Range) (out []policyResult, flags []string,
	err error) {
	off, err := judge.Live(ctx, d.o.Log, d.o.Model, e.from, e.to, scale)
	if err != nil {
		return nil, nil, err
	}
	options := off.Options()
	options.Bootstrap = 0 // its intervals are not told
	losses := off.Settings(options).Of == "loss"
	for _, x := range e.policies {
		if x.source == "Baseline" && off.Check(x.Arguments) != nil {
			continue // no event names one
		}
		v, err := off.Evaluate(x.Arguments, options)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, nil, err
		}
		dr, r := v.Estimates.Get("dr"), policyResult{policySpec: x, rows: v.Rows, nonZero: v.NonZero, events: v.Events,
			weight: float64(v.MeanWeight), ips: float64(v.Estimates.Get("ips").Value)}
		r.reward, r.interval = dr.Value, [2]ope.Figure{dr.Low, dr.High}
		if losses { // which are rewards seen from the other end
			ends := ope.Figure(options.Range.Min + options.Range.Max)
			r.ips = r.weight*float64(ends) - r.ips
			r.reward, r.interval = ends-dr.Value, [2]ope.Figure{ends - dr.High, ends - dr.Low}
		}
		out = append(out, r)
		for _, f := range v.Flags {
			if text := x.Name + ": " + f; !slices.Contains(flags, text) {
				flags = append(flags, text)
			}
		}
	}
	return out, flags, nil
}

// view returns an evaluation as the latest version has it, or as those before; the results are of details.
func (s *evaluations) view(e *evaluation, latest bool) map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	states := [...]string{"pending", "completed", "failed"}
	if latest {
		states = [...]string{"Running", "Succeeded", "Failed"}
	}
	status := states[0]
	switch {
	case e.err != nil:
		status = states[2]
	case e.done:
		status = states[1]
	}
	out := map[string]any{"id": e.id, "name": e.name, "startTime": e.from, "endTime": e.to, "creationTime": e.created,
		"status": status, "evaluationType": "Manual"}
	var results []any
	for i := range e.results {
		x := &e.results[i]
		result := map[string]any{"name": x.Name, "arguments": x.Arguments, "policySource": x.source}
		if latest {
			result["summary"] = map[string]any{"expectedReward": x.reward, "confidenceInterval": x.interval}
		} else {
			result["summary"], result["totalSummary"] = []any{}, x.total(e)
		}
		results = append(results, result)
	}
	switch {
	case e.err != nil:
		out["description"] = e.err.Error()
	case !latest:
		out["jobId"], out["policyResults"] = e.id, results
	case e.done:
		out["content"] = map[string]any{"startTime": e.from, "endTime": e.to, "value": results}
		out["description"] = strings.Join(e.flags, "; ")
	}
	return out
}

// total is a result as versions before the latest have it.
func (x *policyResult) total(e *evaluation) map[string]any {
	return map[string]any{"timeStamp": e.to,
		"aggregateTimeWindow":   iso(loop.Window{Nanos: e.to.Sub(e.from).Nanoseconds()}),
		"ipsEstimatorNumerator": x.ips * x.events, "ipsEstimatorDenominator": x.events,
		"snipsEstimatorDenominator": x.weight * x.events, "nonZeroProbability": float64(x.nonZero) / float64(x.rows),
		"averageReward": x.reward, "confidenceInterval": (x.interval[1] - x.interval[0]) / 2}
}

// find returns the evaluation that a request names.
func (s *evaluations) find(r *http.Request) (*evaluation, *problem) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := r.PathValue("id")
	if i := slices.IndexFunc(s.all, func(e *evaluation) bool { return e.id == id }); i >= 0 {
		return s.all[i], nil
	}
	return nil, refused(http.StatusNotFound, "EvaluationNotFound", "evaluationId",
		"there is no such evaluation; it is kept while the process runs")
}

func (d *Door) showEvaluation(w http.ResponseWriter, r *http.Request, _ client) *problem {
	e, p := d.judged.find(r)
	if p != nil {
		return p
	}
	return sendJSON(w, r, http.StatusOK, d.judged.view(e, ofLatest(r)))
}

// listEvaluations lists those that were asked for; for the latest version without their results.
func (d *Door) listEvaluations(w http.ResponseWriter, r *http.Request, _ client) *problem {
	d.judged.mu.Lock()
	all := slices.Clone(d.judged.all)
	d.judged.mu.Unlock()
	list := []any{}
	for _, e := range all {
		view := d.judged.view(e, ofLatest(r))
		delete(view, "content")
		list = append(list, view)
	}
	if !ofLatest(r) {
		return sendJSON(w, r, http.StatusOK, list)
	}
	query := r.URL.Query()
	if n, err := strconv.Atoi(query.Get("skip")); err == nil {
		list = list[min(max(n, 0), len(list)):]
	}
	if n, err := strconv.Atoi(query.Get("top")); err == nil {
		list = list[:min(max(n, 0), len(list))]
	}
	return sendJSON(w, r, http.StatusOK, map[string]any{"value": list})
}

// deleteEvaluation forgets an evaluation, and ends it if it runs.
func (d *Door) deleteEvaluation(w http.ResponseWriter, r *http.Request, _ client) *problem {
	e, p := d.judged.find(r)
	if p != nil {
		return p
	}
	e.cancel()
	d.judged.mu.Lock()
	d.judged.all = slices.DeleteFunc(d.judged.all, func(x *evaluation) bool { return x == e })
	d.judged.mu.Unlock()
	return noContent(w, nil)
}
