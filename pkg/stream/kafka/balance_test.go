package kafka

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	kafkago "github.com/segmentio/kafka-go"
	"pgregory.net/rapid"
)

func upTo(n int) (all []int) {
	for p := range n {
		all = append(all, p)
	}
	return all
}

// TestAssign holds hand-worked cases.
func TestAssign(t *testing.T) {
	type members = map[string]claim
	for _, c := range []struct {
		name   string
		n      int
		claims members
		want   map[string][]int
	}{
		{"the first takes all", 3, members{"a": {-1, nil}}, map[string][]int{"a": {0, 1, 2}}},
		{"two at once", 3, members{"a": {-1, nil}, "b": {-1, nil}}, map[string][]int{"a": {0, 1}, "b": {2}}},
		{"a second one comes: nothing of the first is given away yet", 4,
			members{"a": {1, []int{0, 1, 2, 3}}, "b": {-1, nil}}, map[string][]int{"a": {0, 1}, "b": nil}},
		{"the first has stopped with its excess", 4, members{"a": {2, []int{0, 1}}, "b": {2, nil}},
			map[string][]int{"a": {0, 1}, "b": {2, 3}}},
		{"one is gone", 4, members{"a": {3, []int{0, 1}}}, map[string][]int{"a": {0, 1, 2, 3}}},
		{"one was away for long", 2, members{"a": {3, []int{0, 1}}, "b": {7, []int{0, 1}}},
			map[string][]int{"b": {0}, "a": nil}},
		{"two that were given it at once", 1, members{"b": {7, []int{0}}, "a": {7, []int{0}}, "c": {7, []int{0}}},
			map[string][]int{"a": {0}, "b": nil, "c": nil}},
		{"more members than partitions", 1, members{"a": {4, []int{0}}, "b": {4, nil}, "c": {4, nil}},
			map[string][]int{"a": {0}, "b": nil, "c": nil}},
		{"a partition that is no more", 1, members{"a": {4, []int{0, 5}}}, map[string][]int{"a": {0}}},
	} {
		for range 8 { // whichever member is looked at first
			if got := assign(upTo(c.n), c.claims); !maps.EqualFunc(got, c.want, slices.Equal) {
				t.Fatalf("%s: %v, want %v", c.name, got, c.want)
			}
			back := upTo(c.n)
			slices.Reverse(back)
			if got := assign(back, c.claims); !maps.EqualFunc(got, c.want, slices.Equal) {
				t.Fatalf("%s, from the last partition on: %v, want %v", c.name, got, c.want)
			}
		}
	}
}

// TestAssignGroups holds which partitions are shared: those of the topic, all of them or the first.
func TestAssignGroups(t *testing.T) {
	var partitions []kafkago.Partition
	for _, id := range []int{2, 0, 1, 3} {
		partitions = append(partitions, kafkago.Partition{Topic: "t", ID: id}, kafkago.Partition{Topic: "other",
			ID: id})
	}
	members := []kafkago.GroupMember{{ID: "a", UserData: []byte("what?")}}
	for shared, want := range map[int][]int{0: {0, 1, 2, 3}, 2: {0, 1}, 9: {0, 1, 2, 3}} {
		got := (&sticky{topic: "t", partitions: shared}).AssignGroups(members, partitions)
		if len(got) != 1 || len(got["a"]) != 1 || !slices.Equal(got["a"]["t"], want) {
			t.Errorf("%d of four: %v, want %v", shared, got, want)
		}
	}
	members = []kafkago.GroupMember{{ID: "a"}, {ID: "b", UserData: []byte(`{"own":[0,1,2,3],"generation":"x"}`)}}
	if got := (&sticky{topic: "t"}).AssignGroups(members, partitions); len(got["a"]["t"]) != 2 ||
		len(got["b"]["t"]) != 2 {
		t.Errorf("a claim that cannot be read counts: %v", got)
	}
}

// TestAssignProperties holds for any claims: nothing is given twice, nothing that
// another one works on is given away, who has no more than its part keeps it, and
// when all give up what they lost, all is even after one more assignment, which
// is then stable.
func TestAssignProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 12).Draw(t, "partitions")
		k := rapid.IntRange(1, 5).Draw(t, "members")
		claims := map[string]claim{}
		for i := range k {
			own := rapid.SliceOfDistinct(rapid.IntRange(0, 14), rapid.ID[int]).Draw(t, "own")
			claims[fmt.Sprint("m", i)] = claim{Generation: rapid.Int32Range(-1, 3).Draw(t, "generation"), Own: own}
		}
		for round := range 3 {
			got := assign(upTo(n), claims)
			checkAssignment(t, n, claims, got)
			next := map[string]claim{}
			for id := range claims {
				next[id] = claim{Generation: int32(10 + round), Own: got[id]}
			}
			if round == 2 {
				checkEven(t, n, got)
				if !maps.EqualFunc(got, assign(upTo(n), next), slices.Equal) {
					t.Fatalf("it moves on from %v", got)
				}
			}
			claims = next
		}
	})
}

func checkAssignment(t *rapid.T, n int, claims map[string]claim, got map[string][]int) {
	seen := map[int]string{}
	for id, own := range got {
		if len(own) > (n+len(claims)-1)/len(claims) {
			t.Fatalf("%s gets %v of %d, among %d", id, own, n, len(claims))
		}
		for _, p := range own {
			if seen[p] != "" {
				t.Fatalf("partition %d goes to %s and %s", p, seen[p], id)
			}
			seen[p] = id
			for other, c := range claims {
				if other != id && slices.Contains(c.Own, p) &&
					(!slices.Contains(claims[id].Own, p) || claims[id].Generation < c.Generation) {
					t.Fatalf("%s gets partition %d, on which %s works", id, p, other)
				}
			}
		}
	}
}

func checkEven(t *rapid.T, n int, got map[string][]int) {
	least, most, all := n, 0, 0
	for _, own := range got {
		least, most, all = min(least, len(own)), max(most, len(own)), all+len(own)
	}
	if all != n || most-least > 1 {
		t.Fatalf("%d partitions are shared so: %v", n, got)
	}
}

// FuzzClaims holds that no user data of a foreign member makes the leader panic, or
// give a partition twice.
func FuzzClaims(f *testing.F) {
	f.Add([]byte(`{"generation":3,"own":[0,1]}`), []byte(`{"generation":-1,"own":[]}`))
	f.Add([]byte(`{`), []byte(`{"own":[0,0,-4,1000000]}`))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		s := &sticky{topic: "t", claim: func() claim { return claim{} }}
		partitions := []kafkago.Partition{{Topic: "t", ID: 0}, {Topic: "t", ID: 1}, {Topic: "other", ID: 2}}
		got := s.AssignGroups([]kafkago.GroupMember{{ID: "a", UserData: a}, {ID: "b", UserData: b}}, partitions)
		seen := map[int]bool{}
		for _, topics := range got {
			for _, p := range topics["t"] {
				if seen[p] || p > 1 || p < 0 {
					t.Fatalf("%s, %s: %v", a, b, got)
				}
				seen[p] = true
			}
		}
	})
}

// TestUserData holds that what a member says of itself comes back.
func TestUserData(t *testing.T) {
	s := &sticky{claim: func() claim { return claim{Generation: 7, Own: []int{1, 4}} }}
	b, err := s.UserData()
	var c claim
	if err != nil || json.Unmarshal(b, &c) != nil || c.Generation != 7 || !slices.Equal(c.Own, []int{1, 4}) {
		t.Errorf("%s %v", b, err)
	}
}
