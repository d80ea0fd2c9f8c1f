package codec

import (
	"encoding/hex"
	"math"
	"os"
	"strings"
	"testing"
)

// appendOldMark appends a mark of a joiner that logged no cuts, but for keys that no program reads any more.
func appendOldMark(x *OldMark) []byte { return appendRare(nil, oldMarkRecord, max(1, x.V), x) }

// golden returns the bytes of a golden record.
func golden(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile("testdata/v1/" + name + ".golden")
	if err != nil {
		t.Fatal(err)
	}
	b, err := hex.DecodeString(strings.Join(strings.Fields(string(text)), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestOldMark holds that a mark of a joiner that logged no cuts is read as one that stands where a restart
// reads again.
func TestOldMark(t *testing.T) {
	const at = 1_700_000_000_000_000_000
	want := FeedbackMark{V: 1, N: 1000, Time: 0, Epochs: []EpochRef{{Epoch: 1, Offset: 0}, {Epoch: 2, Offset: 500}},
		Positions: []Position{
			{Partition: 0, Round: 600, Time: 5, Decisions: 598, DecisionsSince: 598, Outcomes: 850, OutcomesSince: 850,
				Done: []Run{{602, 602}, {700, 700}}},
			{Partition: 1, Round: 400, Decisions: 401, DecisionsSince: 401, Outcomes: 65_000, OutcomesSince: 65_000},
		}}
	for _, name := range []string{"feedback-mark", "feedback-mark-stored"} {
		if got, err := ParseFeedbackMark(golden(t, name)); err != nil || !same(got, want) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	for what, x := range map[string]struct {
		old  OldMark
		want FeedbackMark
	}{
		"lost feedback and void snapshots": {OldMark{V: 1, Lost: 7, Void: []SnapshotRef{{"ab"}}, Guard: []byte{1}},
			FeedbackMark{V: 1, Lost: 7, Void: []SnapshotRef{{"ab"}}, Guard: []byte{1}}},
		"many rounds ahead": {OldMark{V: 3, Time: at, Positions: []OldPosition{{Released: 8, AheadBits: []byte{6, 0x81},
			DecisionsTime: at - 1, OutcomesTime: at - 2}}},
			FeedbackMark{V: 3, Time: at - 2, Positions: []Position{{Round: 8, Time: at - 1,
				Done: []Run{{10, 11}, {17, 17}, {24, 24}}}}}},
	} {
		got, err := ParseFeedbackMark(appendOldMark(&x.old))
		if !same(got.Epochs, x.want.Epochs) && len(got.Epochs) == 0 {
			got.Epochs = x.want.Epochs
		}
		if len(got.Positions) == 0 {
			got.Positions = x.want.Positions
		}
		if err != nil || !same(got, x.want) {
			t.Errorf("%s: %+v, %v", what, got, err)
		}
	}
	_, err := ParseFeedbackMark(appendOldMark(&OldMark{Positions: []OldPosition{{Released: math.MaxInt64 - 15,
		AheadBits: []byte{1, 1}}}}))
	checkError(t, err, "positions[0].ahead_bits", errRange)
}
