package loop

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// A table equals a Go map, with ids that collide and slots that stay.
func TestTableIsMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tab := newTable[int](rapid.Uint64().Draw(t, "seed"))
		want := map[string]int{}
		slots := map[string]int32{}
		id := rapid.Custom(func(t *rapid.T) string {
			return strings.Repeat("x", rapid.SampledFrom([]int{0, 1, 2, 12, 13, 14, 15, 40, 300}).Draw(t, "prefix")) +
				fmt.Sprint(rapid.IntRange(0, 60).Draw(t, "id"))
		})
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				k, v := id.Draw(t, "id"), rapid.Int().Draw(t, "v")
				if _, ok := want[k]; ok {
					*tab.value(tab.get(k)) = v
				} else {
					b := []byte(k) // the table must keep its own copy
					slots[k] = tab.put(string(b), v)
				}
				want[k] = v
			},
			"del": func(t *rapid.T) {
				k := id.Draw(t, "id")
				if _, ok := want[k]; ok {
					tab.del(slots[k])
					delete(want, k)
					delete(slots, k)
				}
			},
			"reserve": func(t *rapid.T) { tab.reserve(rapid.IntRange(-1, 200).Draw(t, "n")) },
			"": func(t *rapid.T) {
				if tab.live != len(want) {
					t.Fatalf("%d entries, want %d", tab.live, len(want))
				}
				for k, v := range want {
					s := tab.get(k)
					if s != slots[k] || *tab.value(s) != v {
						t.Fatalf("%q is in slot %d with %d, want %d with %d", k, s, *tab.value(s), slots[k], v)
					}
				}
				if s := tab.get("nobody"); s >= 0 {
					t.Fatalf("an unknown id is in slot %d", s)
				}
			},
		})
	})
}

// Probe sequences survive deletion: a small table, full of neighbours, is emptied in
// every order.
func TestTableShiftBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tab := newTable[int](0)
		tab.index = make([]int32, 64)
		var ids []string
		for i := 0; len(ids) < 30; i++ { // ids whose home is one of the last four places or the first
			id := fmt.Sprint("k", i)
			if home := hashString(0, id) & 63; home >= 60 || home == 0 {
				tab.put(id, i)
				ids = append(ids, id)
			}
		}
		for len(ids) > 0 {
			k := rapid.IntRange(0, len(ids)-1).Draw(t, "which")
			tab.del(tab.get(ids[k]))
			if tab.get(ids[k]) >= 0 {
				t.Fatalf("%q is still there", ids[k])
			}
			ids = slices.Delete(ids, k, k+1)
			for _, id := range ids {
				if tab.get(id) < 0 {
					t.Fatalf("%q is lost", id)
				}
			}
		}
	})
}

// Both hash functions agree, and the seed matters.
func TestHash(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, seed := rapid.String().Draw(t, "s"), rapid.Uint64().Draw(t, "seed")
		if hashString(seed, s) != hashBytes(seed, []byte(s)) {
			t.Fatal("hashes of text and bytes differ")
		}
		if hashString(seed, s) == hashString(seed+1, s) || hashString(seed, s) == hashString(seed, s+"\x00") {
			t.Fatal("another seed, or another length, has the same hash")
		}
	})
}

// A ring equals a slice.
func TestRingIsQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r ring[int]
		var want []int
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				for range rapid.IntRange(1, 9).Draw(t, "many") {
					v := rapid.Int().Draw(t, "v")
					r.push(v)
					want = append(want, v)
				}
			},
			"pop": func(t *rapid.T) {
				for range min(len(want), rapid.IntRange(1, 9).Draw(t, "many")) {
					if v := r.pop(); v != want[0] {
						t.Fatalf("popped %d, want %d", v, want[0])
					}
					want = want[1:]
				}
			},
			"": func(t *rapid.T) {
				if r.len() != len(want) {
					t.Fatalf("%d elements, want %d", r.len(), len(want))
				}
				for i, v := range want {
					if *r.at(i) != v {
						t.Fatalf("element %d is %d, want %d", i, *r.at(i), v)
					}
				}
			},
		})
	})
}

// The partition of a key is that of the Java client; the values are those of its
// own test (UtilsTest.testMurmur2 of Apache Kafka).
func TestMurmur2(t *testing.T) {
	for key, want := range map[string]int32{
		"21": -973932308, "foobar": -790332482, "a-little-bit-long-string": -985981536,
		"a-little-bit-longer-string": -1486304829, "lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
		"abc": 479470107,
	} {
		if got := int32(murmur2([]byte(key))); got != want {
			t.Errorf("%q: %d, want %d", key, got, want)
		}
		if p := PartitionOf([]byte(key), 7); p != int(want&0x7fffffff)%7 {
			t.Errorf("%q goes to partition %d", key, p)
		}
	}
}

// TestHashContent: no bit, length, seed or order of words is lost in the hash by which repeats are told.
func TestHashContent(t *testing.T) {
	b := make([]byte, 150)
	for i := range b {
		b[i] = byte(i*i>>3 + 1)
	}
	seen := map[uint64]string{}
	note := func(what string, h uint64) {
		if was, ok := seen[h]; ok {
			t.Errorf("%s has the hash of %s", what, was)
		}
		seen[h] = what
	}
	for n := 1; n <= len(b); n++ {
		note(fmt.Sprint("length ", n), hashContent(7, b[:n]))
		note(fmt.Sprint("zeros ", n), hashContent(7, make([]byte, n)))
		note(fmt.Sprint("seed ", n), hashContent(8, b[:n]))
	}
	for i := range 8 * len(b) {
		b[i/8] ^= 1 << (i % 8)
		note(fmt.Sprint("bit ", i), hashContent(7, b))
		b[i/8] ^= 1 << (i % 8)
	}
	for i := 0; i+8 <= len(b); i += 8 {
		for j := i + 8; j+8 <= len(b); j += 8 {
			other := append([]byte(nil), b...)
			copy(other[i:i+8], b[j:])
			copy(other[j:j+8], b[i:])
			note(fmt.Sprint("words ", i, j), hashContent(7, other))
		}
	}
}
