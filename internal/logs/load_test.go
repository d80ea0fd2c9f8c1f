package logs

import "testing"

// Observations find their events before and behind them; the first counts, and an
// activation brings back an event that was skipped.
func TestLoadJoins(t *testing.T) {
	const event = `,"_label_Action":1,"a":[1],"p":[1],"c":{"_multi":[{}]}}` + "\n"
	text := `{"RewardValue":3,"EnqueuedTimeUtc":"2020-01-01T00:00:05Z","EventId":"early"}` + "\n" +
		`{"EventId":"early","_label_cost":0` + event +
		`{"EventId":"has","_label_cost":-1,"o":[{"v":1}]` + event +
		`{"EventId":"has","RewardValue":9}` + "\n" +
		`{"EventId":"asleep","_skipLearn":true,"_label_cost":0` + event +
		`{"EventId":"woken","_skipLearn":true,"_label_cost":0` + event +
		`{"EventId":"woken","DeferredAction":false,"RewardValue":2,"Observations":[{"v":null,"DeferredAction":false},{"v":2,"DeferredAction":true}]}` + "\n" +
		`{"EventId":"nobody","RewardValue":2}` + "\n"
	l, err := Load(openText(t, text, Options{Format: Dsjson, Inactive: true}))
	if err != nil {
		t.Fatal(err)
	}
	if l.Joined != 2 || l.Extra != 1 || l.Unmatched != 1 || l.Activated != 1 || len(l.Events) != 3 {
		t.Fatalf("%+v", l)
	}
	for i, want := range []struct {
		id    string
		value float64
	}{{"early", 3}, {"has", 1}, {"woken", 2}} {
		if e := l.Events[i]; e.ID != want.id || e.Value != want.value || !e.Observed() {
			t.Errorf("%+v, want %+v", e, want)
		}
	}
	if a := l.Account; !a.Balanced() || a.Read != 8 || a.Events != 2 || a.Dangling != 4 || a.Skipped != 2 {
		t.Errorf("%+v", a)
	}
}
