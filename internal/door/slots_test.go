package door

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"hindsight/pkg/codec"
)

const rankSlotsOf = `{"contextFeatures":[{"timeOfDay":"evening"}],"actions":[{"id":"pasta","features":[{"price":8.5}]},
{"id":"juice","features":[]},{"id":"salad","features":[]}],"slots":[{"id":"hero","baselineAction":"pasta",
"features":[{"size":"large"}],"excludedActions":["juice"]},{"id":"side","baselineAction":"juice"}]}`

// TestSlots holds that a context with slots is decided by a request, alone and in a batch, that outcomes of the
// slots join, and that an audit can tell of each.
func TestSlots(t *testing.T) {
	w := open(t, setting{model: "actions: [x, y, z]\nslots: {hero: [x, y], side: any}\nreward: {min: 0, max: 1}\n"})
	const asked = `{"id":"e","features":{"hour":14},"slots":["hero","side"]}`
	type answer struct {
		ID    string
		Slots map[string]struct {
			ID, Action   string
			Propensities map[string]float64
		}
	}
	var one, batched answer
	got := w.call("POST", "/v1/decide", asked)
	if err := json.Unmarshal(got.body, &one); err != nil || got.status != 200 || one.ID != "e" || len(one.Slots) != 2 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	hero, side := one.Slots["hero"], one.Slots["side"]
	if _, again := side.Propensities[hero.Action]; again || len(hero.Propensities) != 2 || len(side.Propensities) != 2 {
		t.Errorf("%s", got.body)
	}
	r := w.batch([]string{`{"context":` + asked + `}`, `{"outcome":{"id":"e:hero","reward":1}}`,
		`{"outcome":{"id":"e:side","reward":0}}`}).Results
	if err := json.Unmarshal(r[0].Body, &batched); err != nil || batched.Slots["side"].Action != side.Action ||
		r[1].Status != 202 || r[2].Status != 202 {
		t.Errorf("%s", r[0].Body)
	}
	eventually(t, "the slots are joined", func() bool { return len(w.records("shop.feedback")) >= 2 })
	if got := w.call("GET", "/v1/rounds/e:side", ""); got.status != 200 || !strings.Contains(string(got.body),
		"e:side") {
		t.Errorf("%d %s", got.status, got.body)
	}
	for text, says := range map[string]string{
		`{"features":{},"slots":["hero"]}`:                           "id: is missing",
		`{"id":"f","slots":["top"]}`:                                 `slots[0].name: is not a slot of the model: "top"`,
		`{"id":"f","slots":["hero",{"name":"side","actions":[""]}]}`: `slots[1].actions: "" is not among`,
	} {
		if p := w.call("POST", "/v1/decide", text).problem(t); p.Status != 400 || !strings.Contains(p.Detail, says) {
			t.Errorf("%s: %+v, want %q", text, p, says)
		}
	}
	if n := len(w.records("shop.decisions")); n != 2 {
		t.Errorf("%d decisions", n)
	}
}

// TestPersonalizerSlots holds that several slots are ranked and rewarded as Personalizer does: each slot is a round, an
// excluded action is not played there, and no action twice.
func TestPersonalizerSlots(t *testing.T) {
	w := open(t, setting{model: "activation: required\nreward: {min: -1, max: 1}\n"})
	const root = "/personalizer/v1.1-preview.3/multislot"
	for i := range 20 {
		body := strings.Replace(rankSlotsOf, "{", fmt.Sprintf(`{"eventId":"e%d",`, i), 1)
		got := w.call("POST", root+"/rank", body)
		var ranked slotsResponse
		if err := json.Unmarshal(got.body, &ranked); err != nil || got.status != 201 || len(ranked.Slots) != 2 ||
			ranked.Slots[0].ID != "hero" || ranked.Slots[1].ID != "side" || ranked.Slots[0].RewardActionID == "juice" ||
			ranked.Slots[0].RewardActionID == ranked.Slots[1].RewardActionID {
			t.Fatalf("%d %s", got.status, got.body)
		}
		if again := w.call("POST", root+"/rank", body); string(again.body) != string(got.body) {
			t.Errorf("%s, then %s", got.body, again.body)
		}
	}
	var stored codec.Decision
	if err := codec.ParseDecision(&stored, w.records("shop.decisions")[0]); err != nil {
		t.Fatal(err)
	}
	const want = `{"id":"e0:hero","features":{"timeOfDay":"evening","slot":"hero","slot.size":"large"},` +
		`"baseline":"pasta","actions":[{"name":"pasta","features":{"price":8.5}},"salad"]}`
	if string(stored.Context) != want {
		t.Errorf("asked %s\nwant  %s", stored.Context, want)
	}
	got := w.call("POST", root+"/events/e0/reward",
		`{"reward":[{"slotId":"hero","value":1},{"slotId":"side","value":-0.5}]}`, "X-Ms-Client-Request-Id: first")
	outcomes := w.records("shop.outcomes")
	if n := len(outcomes); got.status != 204 || n != 82 || string(outcomes[0]) != `{"id":"e0:hero","activated":true}` ||
		string(outcomes[n-1]) != `{"id":"e0:side","reward":-0.5,"outcome_id":"first"}` {
		t.Errorf("%d, outcomes %s", got.status, outcomes)
	}
	if got := w.call("POST", root+"/rank", rankSlotsOf); got.status != 201 || got.object(t)["eventId"] == "" {
		t.Errorf("without an eventId: %d %s", got.status, got.body)
	}
	n := len(w.records("shop.outcomes"))
	for _, c := range []struct{ path, body, code, says string }{
		{"/rank", `{"actions":[{"id":"a"}]}`, "InvalidRankRequest", "slots: none is listed"},
		{"/rank", `{"actions":[{"id":"a"}],"slots":[{"baselineAction":"a"}]}`, "InvalidRankRequest",
			"slots[0]: it has no id"},
		{"/rank", `{"actions":[{"id":"a"}],"slots":[{"id":"s"}]}`, "InvalidRankRequest",
			"slots[0]: it has no baselineAction"},
		{"/rank", `{"actions":[{"id":"a"},{"id":"b"}],"slots":[{"id":"s","baselineAction":"a","excludedActions":
			["a"]}]}`,
			"InvalidRankRequest", `slots[0].baselineAction: "a" is not among`},
		{"/rank", `{"actions":[{"id":"a"}],"slots":[{"id":"s","baselineAction":"a"},{"id":"t","baselineAction":"a"}]}`,
			"InvalidRankRequest", "slots[1]: the slots before it may leave it no action"},
		{"/rank", `{"actions":[{"id":"a"}],"slots":[{"id":"s","baselineAction":"a"}],"deferActivation":true}`,
			"InvalidRankRequest", "cannot be deferred"},
		{"/events/e/reward", `{}`, "InvalidRewardRequest", "reward lists no slot"},
		{"/events/e/reward", `{"reward":[{"value":1}]}`, "InvalidRewardRequest", "slotId is missing"},
		{"/events/e/reward", `{"reward":[{"slotId":"a","value":1},{"slotId":"b","value":2}]}`, "InvalidRewardRequest",
			"rewards from -1 to 1"},
		{"/events/" + strings.Repeat("x", 257) + "/activate", "", "InvalidEventIdToActivate", "at most 256 bytes"},
	} {
		got := w.call("POST", root+c.path, c.body)
		if e := got.asVendor(t); got.status != 400 || e.Code != c.code || !strings.Contains(e.Message, c.says) {
			t.Errorf("%s %s: %d %+v", c.path, c.body, got.status, e)
		}
	}
	if more := len(w.records("shop.outcomes")); more != n {
		t.Errorf("%d outcomes of what was refused", more-n)
	}
}

// TestDeferredSlots: the slots of an event whose activation is deferred are learned if it comes, else withdrawn; of a
// page whose ids lie in several partitions each slot is joined.
func TestDeferredSlots(t *testing.T) {
	w := open(t, setting{partitions: 3, model: "activation: required\nslots: {hero: any, side: any}\nwindow: 300ms\n" +
		"reward: {min: 0, max: 1}\n"})
	const root = "/personalizer/v1.1-preview.3/multislot"
	const pages = 8
	for i := range pages {
		body := strings.Replace(rankSlotsOf, "{", fmt.Sprintf(`{"deferActivation":true,"eventId":"e%d",`, i), 1)
		if got := w.call("POST", root+"/rank", body); got.status != 201 {
			t.Fatalf("%d %s", got.status, got.body)
		}
		event := fmt.Sprintf("%s/events/e%d", root, i)
		for _, c := range [][2]string{{"/reward", `{"reward":[{"slotId":"hero","value":1},{"slotId":"side","value":0}]}`},
			{"/activate", ""}} {
			if i%2 > 0 && c[1] == "" {
				continue
			}
			if got := w.call("POST", event+c[0], c[1]); got.status != 204 {
				t.Fatalf("%d %s", got.status, got.body)
			}
		}
	}
	fates, partitions := map[string]codec.Fate{}, map[int]bool{}
	eventually(t, "all slots have their feedback", func() bool {
		for _, b := range w.records("shop.feedback") {
			var f codec.Feedback
			if err := codec.ParseFeedback(&f, b); err != nil {
				t.Fatal(err)
			}
			fates[strings.Clone(f.ID)], partitions[f.Partition] = f.Fate, true
		}
		return len(fates) == 2*pages
	})
	for i := range pages {
		for _, slot := range []string{"hero", "side"} {
			want := [...]codec.Fate{codec.Observed, codec.WithdrawnRound}[i%2]
			if got := fates[fmt.Sprintf("e%d:%s", i, slot)]; got != want {
				t.Errorf("e%d:%s: %v, want %v", i, slot, got, want)
			}
		}
	}
	if len(partitions) != 3 {
		t.Errorf("slots in the partitions %v", partitions)
	}
}

// TestSlotsPage holds that the calls of docs/slots.md are answered.
func TestSlotsPage(t *testing.T) {
	w := open(t, setting{model: "reward: {min: 0, max: 1}\n"})
	n := w.playPage("slots.md", "slots")
	eventually(t, "the slots are joined", func() bool { return len(w.records("shop.feedback")) >= 2 })
	if n != 2 || len(w.records("shop.decisions")) != 2 {
		t.Errorf("%d calls", n)
	}
}
