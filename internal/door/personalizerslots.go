package door

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"slices"

	"hindsight/internal/logs"
	"hindsight/internal/loop"
	"hindsight/pkg/codec"
)

// slotsRequest is a Rank request of several slots.
type slotsRequest struct {
	rankRequest
	Slots []slotRequest `json:"slots"`
}

type slotRequest struct {
	rankableAction           // the slot's id and features
	BaselineAction  *string  `json:"baselineAction"`
	ExcludedActions []string `json:"excludedActions"`
}

// slotsResponse is the response to it.
type slotsResponse struct {
	EventID string         `json:"eventId"`
	Slots   []slotResponse `json:"slots"`
}

type slotResponse struct {
	ID             string `json:"id"`
	RewardActionID string `json:"rewardActionId"`
}

// rankSlots decides slot by slot, and answers when all are in the log. Where the model waits for activations, the
// rounds of the slots are activated before.
func (d *Door) rankSlots(w http.ResponseWriter, r *http.Request, c client) *problem {
	var request slotsRequest
	if p := d.readJSON(w, r, &request, expected, "InvalidRankRequest"); p != nil {
		return p
	}
	rules := d.rules()
	if request.DeferActivation && (!rules.Activation || rules.Slots == nil) {
		return refused(http.StatusBadRequest, "InvalidRankRequest", "deferActivation", "activation of several slots "+
			"cannot be deferred: set activation: required in the model file, and list the slots there")
	}
	asked, err := request.context()
	if err != nil {
		return refused(http.StatusBadRequest, "InvalidRankRequest", "", err.Error())
	}
	var decided struct {
		Slots map[string]struct{ Action string }
	}
	if p := d.hand(r, c, "decide", codec.AppendContextJSON(nil, asked), &decided); p != nil {
		return p
	}
	response := slotsResponse{EventID: asked.ID}
	for _, s := range asked.Slots {
		if rules.Activation && !request.DeferActivation {
			if p := d.tell(r, c, outcome{ID: loop.SlotID(asked.ID, s.Name), Activated: true}); p != nil {
				return p
			}
		}
		response.Slots = append(response.Slots, slotResponse{s.Name, decided.Slots[s.Name].Action})
	}
	return sendJSON(w, r, http.StatusCreated, &response)
}

// context returns what is asked; an event without an id gets one here, for its slots are named by it.
func (q *slotsRequest) context() (*codec.Context, error) {
	c, err := q.rankRequest.context()
	if err != nil {
		return nil, err
	}
	if c.ID == "" {
		c.ID = rand.Text()
	}
	if len(q.Slots) == 0 {
		return nil, fmt.Errorf("slots: none is listed")
	}
	for i, s := range q.Slots {
		switch {
		case s.ID == nil:
			return nil, fmt.Errorf("slots[%d]: it has no id", i)
		case s.BaselineAction == nil:
			return nil, fmt.Errorf("slots[%d]: it has no baselineAction", i)
		}
		slot := codec.Slot{Name: *s.ID, Baseline: []codec.Share{{Name: *s.BaselineAction, P: 1}}}
		if slot.Features, err = logs.Features(s.Features); err != nil {
			return nil, fmt.Errorf("slots[%d].features: %w", i, err)
		}
		if left := q.actionsOf(&s); len(left) < len(q.Actions) {
			slot.Actions = left
		}
		if !slices.Contains(q.actionsOf(&s), *s.BaselineAction) {
			return nil, fmt.Errorf("slots[%d].baselineAction: %q is not among the slot's actions", i, *s.BaselineAction)
		}
		c.Slots = append(c.Slots, slot)
	}
	return c, c.Validate()
}

// actionsOf returns the ids of the actions that a slot does not exclude.
func (q *slotsRequest) actionsOf(s *slotRequest) (left []string) {
	for _, a := range q.Actions {
		if !slices.Contains(s.ExcludedActions, *a.ID) && !slices.Contains(q.ExcludedActions, *a.ID) {
			left = append(left, *a.ID)
		}
	}
	return left
}

// rewardSlots stores the rewards of slots, each as an outcome of its round.
func (d *Door) rewardSlots(w http.ResponseWriter, r *http.Request, c client) *problem {
	var request struct {
		Reward []struct {
			SlotID *string
			Value  *float64
		}
	}
	if p := d.readJSON(w, r, &request, expected, "InvalidRewardRequest"); p != nil {
		return p
	}
	if len(request.Reward) == 0 {
		return refused(http.StatusBadRequest, "InvalidRewardRequest", "reward", "reward lists no slot")
	}
	for i, s := range request.Reward {
		if s.SlotID == nil {
			return refused(http.StatusBadRequest, "InvalidRewardRequest", "reward",
				fmt.Sprintf("reward[%d]: slotId is missing", i))
		}
		if p := d.checkReward(s.Value); p != nil {
			return p
		}
	}
	for _, s := range request.Reward {
		o := outcome{ID: loop.SlotID(r.PathValue("id"), *s.SlotID), Reward: s.Value, OutcomeID: requestID(r)}
		if p := d.tell(r, c, o); p != nil {
			return p
		}
	}
	return noContent(w, nil)
}

// activateSlots activates the rounds of an event whose activation was deferred: those of the slots of the model, since
// the call names none. Without a list of slots there no event waits.
func (d *Door) activateSlots(w http.ResponseWriter, r *http.Request, c client) *problem {
	p, rules := checkActivated(r), d.rules()
	for i := 0; p == nil && rules.Activation && i < len(rules.Slots); i++ {
		p = d.tell(r, c, outcome{ID: loop.SlotID(r.PathValue("id"), rules.Slots[i].Name), Activated: true})
	}
	return noContent(w, p)
}
