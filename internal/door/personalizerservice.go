package door

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"hindsight/internal/follow"
	"hindsight/internal/join"
	"hindsight/internal/loop"
	"hindsight/internal/model"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// definition is the model that the process decides by, nil if it decides by none.
func (d *Door) definition() *follow.Definition {
	if d.o.Definition == nil {
		return nil
	}
	return d.o.Definition()
}

// configuration answers with values at work. It takes values that are those; for another one it says what sets it.
func (d *Door) configuration(values func(*follow.Definition) (map[string]any, error), keys map[string]string,
	code string) handler {
	return func(w http.ResponseWriter, r *http.Request, _ client) *problem {
		at := d.definition()
		if at == nil {
			return newProblem(http.StatusServiceUnavailable, "not ready: this process decides by no model now")
		}
		now, err := values(at)
		if err != nil {
			return newProblem(http.StatusInternalServerError, err.Error())
		}
		var asked map[string]any
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			if p := d.readJSON(w, r, &asked, expected, code); p != nil {
				return p
			}
		}
		for _, key := range slices.Sorted(maps.Keys(asked)) {
			if v := asked[key]; v != nil && !reflect.DeepEqual(v, now[key]) {
				return refused(http.StatusBadRequest, code, key, fmt.Sprintf("%s cannot be set by a request, it is "+
					"%v; what sets it: %s", key, cmp.Or(now[key], any("not set")), cmp.Or(keys[key], "nothing, there "+
					"is no such thing here")))
			}
		}
		return sendJSON(w, r, http.StatusOK, now)
	}
}

// settingKeys says what sets each setting of a service here.
func settingKeys() map[string]string {
	const atOnce = "nothing, the learner learns at once from each feedback"
	return map[string]string{
		"rewardWaitTime":        "window in the model file",
		"defaultReward":         "missing: impute and default_loss in the model file",
		"rewardAggregation":     "outcomes in the model file",
		"explorationPercentage": "learner: {egreedy: …} in the model file",
		"learningMode":          "mode in the model file: live, apprentice, or shadow to log only",
		"modelExportFrequency":  atOnce,
		"modelRetrainDays":      atOnce,
		"logRetentionDays":      "decider --retention, when the log is made",
	}
}

// settings are those of a model as Personalizer has them. What the model does not have is left out: a wait in rounds,
// a default reward where silence is skipped, a share of exploration of a learner that explores where it is unsure.
func (d *Door) settings(at *follow.Definition) (map[string]any, error) {
	m, err := model.ParseLogged("model", at.Rec.LoggedModel())
	if err != nil {
		return nil, err
	}
	modes := []string{codec.Live: "Online", codec.Shadow: "LoggingOnly", codec.Apprentice: "Apprentice",
		codec.Paused: "LoggingOnly"}
	out := map[string]any{"rewardAggregation": loop.Aggregates()[m.Outcomes], "learningMode": modes[m.Mode],
		"modelExportFrequency": "PT0S", "modelRetrainDays": 0., "isAutoOptimizationEnabled": false,
		"logMirrorEnabled": false}
	if m.Outcomes == loop.First {
		out["rewardAggregation"] = "earliest"
	}
	if m.Window.Rounds == 0 {
		out["rewardWaitTime"] = iso(m.Window)
	}
	if m.Impute {
		out["defaultReward"] = m.Range.Max - m.DefaultLoss*(m.Range.Max-m.Range.Min)
	}
	if share, ok := m.Learner.Explores(); ok {
		out["explorationPercentage"] = share
	}
	return out, nil
}

// iso writes a window as ISO 8601 does.
func iso(w loop.Window) string {
	if w.Nanos < 1e9 {
		return fmt.Sprintf("PT%vS", float64(w.Nanos)/1e9)
	}
	return "PT" + strings.ToUpper(model.FormatWindow(w))
}

func policyKeys() map[string]string {
	return map[string]string{"name": "name in the model file",
		"arguments": "learner, explore and oracle in the model file"}
}

// policy is the learner of a model as a policy.
func (d *Door) policy(at *follow.Definition) (map[string]any, error) {
	var lines []string
	for line := range bytes.Lines(at.Rec.Model) {
		switch key, _, _ := strings.Cut(string(line), ":"); key {
		case "learner", "explore", "oracle":
			lines = append(lines, strings.TrimSpace(string(line)))
		}
	}
	return map[string]any{"name": d.o.Model, "arguments": strings.Join(lines, ", ")}, nil
}

func (d *Door) personalizerStatus(w http.ResponseWriter, r *http.Request, _ client) *problem {
	page, p := d.look(r, "/state", "")
	if p != nil {
		return p
	}
	var state struct {
		Ready bool
		Why   string
	}
	if err := json.Unmarshal(page.body.Bytes(), &state); err != nil {
		return newProblem(http.StatusInternalServerError, "the page /state cannot be read")
	}
	status, message := "Valid", "ready"
	if !state.Ready {
		status, message = "Invalid", state.Why
	}
	return sendJSON(w, r, http.StatusOK, map[string]string{"service": d.o.Model, "apiStatus": status,
		"apiStatusMessage": message})
}

// modelProperties tells since when feedback is kept, and when the last one came.
func (d *Door) modelProperties(w http.ResponseWriter, r *http.Request, _ client) *problem {
	from, to, p := d.span(r.Context(), join.TopicsOf(d.o.Model).Feedback, false)
	if p != nil {
		return p
	}
	return sendJSON(w, r, http.StatusOK, map[string]time.Time{"creationTime": from, "lastModifiedTime": to})
}

// logProperties tells from when to when decisions are kept.
func (d *Door) logProperties(w http.ResponseWriter, r *http.Request, _ client) *problem {
	from, to, p := d.span(r.Context(), join.TopicsOf(d.o.Model).Decisions, true)
	if p != nil {
		return p
	}
	return sendJSON(w, r, http.StatusOK, map[string]any{"dateRange": map[string]time.Time{"from": from, "to": to}})
}

// spanLimit is how long the ends of a topic are looked for.
const spanLimit = 5 * time.Second

// span returns the log times of the first and the last record of a topic; of data, control records are passed over.
func (d *Door) span(ctx context.Context, topic string, data bool) (from, to time.Time, p *problem) {
	ctx, cancel := context.WithTimeout(ctx, spanLimit)
	defer cancel()
	first, last := int64(math.MaxInt64), int64(math.MinInt64)
	n, err := d.o.Log.Partitions(ctx, topic)
	for i := range n {
		found := false
		err = errors.Join(err, stream.Scan(ctx, d.o.Log, topic, i, stream.Earliest, math.MaxInt64,
			func(r *stream.Record) error {
				if data && r.Type != "" {
					return nil
				}
				first = min(first, r.Time)
				return stream.ErrStop
			}), stream.ScanBack(ctx, d.o.Log, topic, i, math.MaxInt64, 1, func(r *stream.Record) error {
			if !data || r.Type == "" {
				last, found = max(last, r.Time), true
			}
			return nil
		}, func() bool { return found }))
	}
	switch {
	case err != nil:
		return from, to, newProblem(http.StatusServiceUnavailable, "the log cannot be read: "+err.Error())
	case first > last:
		return from, to, refused(http.StatusNotFound, "LogsPropertiesNotFound", "", "the log is empty")
	}
	return time.Unix(0, first).UTC(), time.Unix(0, last).UTC(), nil
}
