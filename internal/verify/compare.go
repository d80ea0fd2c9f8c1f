package verify

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"

	"hindsight/pkg/codec"
)

// pair is one field of two records.
type pair struct {
	field     string
	want, got any
}

// firstUnequal returns the first field in which two records differ, "" if none.
func firstUnequal(fields []pair) (field, want, got string) {
	for _, f := range fields {
		if w, g := fmt.Sprintf("%v", f.want), fmt.Sprintf("%v", f.got); w != g {
			return f.field, w, g
		}
	}
	return "", "", ""
}

// exact shows a float exactly.
func exact(x float64) string { return fmt.Sprintf("%v (%016x)", x, math.Float64bits(x)) }

// lawField compares two laws entry by entry.
func lawField(wantNames, gotNames []string, want, got []float64) (field, w, g string) {
	if !slices.Equal(wantNames, gotNames) {
		return "propensities", fmt.Sprintf("actions %q", wantNames), fmt.Sprintf("actions %q", gotNames)
	}
	for i := range want {
		if math.Float64bits(want[i]) != math.Float64bits(got[i]) {
			return "propensities." + wantNames[i], exact(want[i]), exact(got[i])
		}
	}
	return "", "", ""
}

// decisionField names the first field in which two decisions differ.
func decisionField(want, got *codec.Decision) (field, w, g string) {
	if field, w, g = firstUnequal([]pair{
		{"partition", want.Partition, got.Partition}, {"n", want.N, got.N}, {"id", want.ID, got.ID},
		{"source", want.Source, got.Source}, {"epoch", want.Epoch, got.Epoch},
		{"learned_through", want.LearnedThrough, got.LearnedThrough},
		{"contexts_through", want.ContextsThrough, got.ContextsThrough}, {"time", want.Time, got.Time},
	}); field != "" {
		return field, w, g
	}
	if !bytes.Equal(want.Context, got.Context) {
		_, w, g = bytesField(want.Context, got.Context)
		return "context", w, g
	}
	if field, w, g = firstUnequal([]pair{
		{"learned", want.Learned, got.Learned}, {"gamma", exact(want.Gamma), exact(got.Gamma)},
	}); field != "" {
		return field, w, g
	}
	if field, w, g = lawField(want.Actions, got.Actions, want.Propensities, got.Propensities); field != "" {
		return field, w, g
	}
	return firstUnequal([]pair{{"action", want.Actions[want.Action], got.Actions[got.Action]}, {"mode", want.Mode, got.Mode}, {"would", exactly(want.Would), exactly(got.Would)}})
}

// exactly shows numbers in full.
func exactly(x []float64) string {
	out := make([]string, len(x))
	for i, v := range x {
		out[i] = exact(v)
	}
	return strings.Join(out, " ")
}

// feedbackField names the first field in which two feedbacks differ.
func feedbackField(want, got *codec.Feedback) (field, w, g string) {
	if field, w, g = firstUnequal([]pair{
		{"n", want.N, got.N}, {"partition", want.Partition, got.Partition}, {"round", want.Round, got.Round},
		{"id", want.ID, got.ID}, {"epoch", want.Epoch, got.Epoch}, {"learned_through", want.LearnedThrough, got.LearnedThrough},
		{"gamma", exact(want.Gamma), exact(got.Gamma)}, {"time", want.Time, got.Time},
	}); field != "" {
		return field, w, g
	}
	if field, w, g = lawField(want.Actions, got.Actions, want.Propensities, got.Propensities); field != "" {
		return field, w, g
	}
	if field, w, g = firstUnequal([]pair{
		{"action", want.Actions[want.Action], got.Actions[got.Action]}, {"fate", want.Fate, got.Fate}, {"reason", want.Reason, got.Reason},
		{"loss", exact(want.Loss), exact(got.Loss)}, {"outcome_partition", want.OutcomePartition, got.OutcomePartition},
		{"outcome_offset", want.OutcomeOffset, got.OutcomeOffset}, {"closed_at", want.ClosedAt, got.ClosedAt},
		{"mode", want.Mode, got.Mode}, {"would", exactly(want.Would), exactly(got.Would)},
	}); field != "" {
		return field, w, g
	}
	if !bytes.Equal(want.Context, got.Context) {
		_, w, g = bytesField(want.Context, got.Context)
		return "context", w, g
	}
	return "", "", ""
}

// bytesField shows where two byte strings part; not what they say, for that may be
// about people.
func bytesField(want, got []byte) (field, w, g string) {
	i := 0
	for i < len(want) && i < len(got) && want[i] == got[i] {
		i++
	}
	show := func(b []byte) string {
		if i == len(b) {
			return fmt.Sprintf("%d bytes", len(b))
		}
		return fmt.Sprintf("%d bytes, with %#02x at %d", len(b), b[i], i)
	}
	return "bytes", show(want), show(got)
}
