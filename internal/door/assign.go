package door

import (
	"net/http"

	"hindsight/pkg/codec"
)

// assign takes a decision that another system made: a context that says so, which the decider of its id records as it
// does with any other context that says so.
func (d *Door) assign(w http.ResponseWriter, r *http.Request, c client) *problem {
	return d.relay(w, r, c, "decide", http.StatusOK, func(body []byte) *problem {
		var ctx codec.Context
		if codec.ParseContext(&ctx, body) != nil || ctx.Assigned.Action != "" {
			return nil // the decider says what is wrong, if anything is
		}
		return newProblem(http.StatusBadRequest, "context: assigned: the key is missing: {\"action\": …} says what "+
			"was decided; without it /v1/decide makes a decision")
	})
}
