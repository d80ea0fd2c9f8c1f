package main

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// rankRequest is the body of Personalizer's Rank call.
type rankRequest struct {
	ContextFeatures []any    `json:"contextFeatures"`
	Actions         []action `json:"actions"`
	ExcludedActions []string `json:"excludedActions"`
	EventID         string   `json:"eventId"`
	DeferActivation bool     `json:"deferActivation"` // here the model says it: activation: required
}

type action struct {
	ID       string `json:"id"`
	Features []any  `json:"features"`
}

// rankResponse is its answer.
type rankResponse struct {
	Ranking        []ranked `json:"ranking"`
	EventID        string   `json:"eventId"`
	RewardActionID string   `json:"rewardActionId"`
}

type ranked struct {
	ID          string  `json:"id"`
	Probability float64 `json:"probability"`
}

// decision is the reply to our request.
type decision struct {
	ID           string             `json:"id"`
	Action       string             `json:"action"`
	Propensities map[string]float64 `json:"propensities"`
	Mode         string             `json:"mode"`
}

// context returns what we ask. The first action that is not excluded is the default
// one, as in Personalizer: the baseline of a model in apprentice or shadow mode.
func (r *rankRequest) context() map[string]any {
	id := r.EventID
	if id == "" {
		id = newID()
	}
	var actions []map[string]any
	for _, a := range r.Actions {
		if !slices.Contains(r.ExcludedActions, a.ID) {
			actions = append(actions, map[string]any{"name": a.ID, "features": flat(a.Features)})
		}
	}
	c := map[string]any{"id": id, "features": flat(r.ContextFeatures), "actions": actions}
	if len(actions) > 0 {
		c["baseline"] = actions[0]["name"]
	}
	return c
}

// response puts the action that was drawn first, and the others behind it by their
// probabilities.
func (d *decision) response() *rankResponse {
	r := &rankResponse{EventID: d.ID, RewardActionID: d.Action}
	for id, p := range d.Propensities {
		r.Ranking = append(r.Ranking, ranked{id, p})
	}
	sort.Slice(r.Ranking, func(i, j int) bool {
		a, b := r.Ranking[i], r.Ranking[j]
		if (a.ID == d.Action) != (b.ID == d.Action) {
			return a.ID == d.Action
		}
		if a.Probability != b.Probability {
			return a.Probability > b.Probability
		}
		return a.ID < b.ID
	})
	return r
}

// flat turns features of any depth into one object of numbers, texts and booleans: keys
// are joined by dots, objects in a list belong to the list's own name, other elements of
// lists have their place in it behind them. Keys that begin with _ are no features.
func flat(list []any) map[string]any {
	out := map[string]any{}
	for _, v := range list {
		flatten(out, "", v)
	}
	return out
}

func flatten(out map[string]any, name string, v any) {
	switch v := v.(type) {
	case nil:
	case map[string]any:
		for key, inner := range v {
			if !strings.HasPrefix(key, "_") {
				flatten(out, join(name, key), inner)
			}
		}
	case []any:
		for i, inner := range v {
			if _, object := inner.(map[string]any); object {
				flatten(out, name, inner)
			} else {
				flatten(out, join(name, strconv.Itoa(i)), inner)
			}
		}
	case json.Number:
		out[name] = number(v)
	default:
		out[name] = v
	}
}

// number writes a number as the Python program does: .5 and 0.50 are 0.5, 2.0 is no 2.
// That one has exponents below 1e-4 and from 1e16 on.
func number(n json.Number) json.RawMessage {
	f, err := n.Float64()
	if err != nil || !strings.ContainsAny(n.String(), ".eE") {
		return json.RawMessage(n)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return json.RawMessage(s)
}

// encode writes JSON with its keys sorted and its texts as they are.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimRight(b.Bytes(), "\n"), err
}

func join(name, key string) string {
	if name == "" {
		return key
	}
	return name + "." + key
}

func newID() string {
	b := make([]byte, 16)
	rand.Read(b) // never fails
	return hex.EncodeToString(b)
}
