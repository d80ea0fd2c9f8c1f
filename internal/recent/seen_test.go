package recent

import (
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// TestRecent compares with a map and a list of the ids in order.
func TestRecent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(1, 40).Draw(t, "most")
		s := New[int](most)
		have := map[string]int{}
		var order []string
		for i, n := range rapid.SliceOfN(rapid.IntRange(0, 80), 0, 300).Draw(t, "ids") {
			id := strconv.Itoa(n)
			_, known := have[id]
			if s.Put(1, []byte(id), i) == known {
				t.Fatalf("id %s: known is %v", id, known)
			}
			if have[id] = i; !known {
				order = append(order, id)
			}
			if len(order) > most {
				delete(have, order[0])
				order = order[1:]
			}
			for n := range 81 {
				id := strconv.Itoa(n)
				want, ok := have[id]
				if got, is := s.Get(1, []byte(id)); is != ok || got != want {
					t.Fatalf("id %s is %d, %v, want %d, %v", id, got, is, want, ok)
				}
			}
			used := 0
			for _, place := range s.index {
				if place != 0 {
					used++
				}
			}
			if used != len(order) || 2*used > len(s.index) {
				t.Fatalf("%d of the index's %d places are used, by %d ids", used, len(s.index), len(order))
			}
			if _, other := s.Get(2, []byte(id)); other {
				t.Fatal("an id of another kind is known")
			}
		}
	})
}
