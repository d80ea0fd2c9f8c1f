package delay

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

// TestDelayMeterAgainstTwin holds that a run that is measured while it goes on has the
// figures of one that is measured as a whole.
func TestDelayMeterAgainstTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		delays := rapid.SliceOfN(rapid.OneOf(rapid.Int64Range(0, 4), rapid.Int64Range(Never, 400)), 1,
			300).Draw(t, "delays")
		slow := rapid.Int64Range(0, 3).Draw(t, "learns later")
		n := len(delays)
		m, s := NewMeter(n), NewSchedule(n, nil)
		var raw, through []int64
		came, learned := int64(0), int64(0)
		for i, d := range delays {
			s.Add(d, 0)
			if next := came - slow; next > learned && next <= int64(i) {
				learned = next
			}
			m.Decided(int64(i), s.Cut, came, learned)
			raw, through = append(raw, s.Cut), append(through, learned)
			for _, r := range s.After(i) {
				m.Came(int64(r.Round), int64(i))
				came++
			}
		}
		for _, r := range s.Rest() {
			m.Came(int64(r.Round), int64(n-1))
		}
		got, bins := m.Report("x")
		want := twin(raw, through)
		want.Spec = "x"
		if got != want {
			t.Fatalf("%+v, want %+v", got, want)
		}
		if _, want := Measure("x", raw, through); !reflect.DeepEqual(bins, want) {
			t.Fatalf("%+v, want %+v", bins, want)
		}
		rounds := [2]int{}
		for _, b := range bins {
			rounds[0], rounds[1] = rounds[0]+int(b.Raw), rounds[1]+int(b.Released)
		}
		if rounds != [2]int{n, n} {
			t.Fatalf("%+v hold %v of %d rounds", bins, rounds, n)
		}
	})
}

// TestDelayCountsAreSparse: rounds whose outcome never comes take a bit, not a number for
// every delay that there may be.
func TestDelayCountsAreSparse(t *testing.T) {
	const n = 1 << 20
	m := NewMeter(n)
	for t := range int64(n) {
		delay := int64(0)
		if t%16 == 0 {
			delay = Never
		}
		m.Decided(t, delay, t, t)
	}
	if held := len(m.raw.of) + len(m.raw.cut); held > n/64+4096 {
		t.Errorf("%d words for %d rounds", held, n)
	}
	// All but a 16th came at once, and of these one waits for 15, for 31, and so on.
	r, bins := m.Report("x")
	rounds := int64(0)
	for _, b := range bins {
		rounds += int64(b.Raw)
	}
	if r.Raw.DMax != n-1 || r.Raw.P99 != 16*((99*n+99)/100-n/16*15)-1 || rounds != n {
		t.Errorf("%+v, %d rounds", r.Raw, rounds)
	}
}
