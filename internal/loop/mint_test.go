package loop

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"hindsight/pkg/codec"
)

func TestAppendMinted(t *testing.T) {
	for _, c := range []struct {
		n, offset int64
		try       int
		want      string
	}{
		{7, RequestSource, 0, "r-3-7"},
		{7, 41, 0, "3-41"},
		// Python: hashlib.sha256 over the fields, each after its length.
		{7, RequestSource, 1, "r-3-7-e79452b030d14874"},
		{9, 41, 2, "3-41-8b196331a3df4735"},
	} {
		if got := string(AppendMinted([]byte("x"), testSeed, "shop", 3, c.n, c.offset, c.try)); got != "x"+c.want {
			t.Errorf("n %d, offset %d, try %d: %s, want x%s", c.n, c.offset, c.try, got, c.want)
		}
	}
}

func TestMintedBy(t *testing.T) {
	for id, want := range map[string]int{"r-0-1": 0, "r-12-345": 12, "r-3-7-e79452b030d14874": 3,
		"": -1, "r": -1, "r-": -1, "r-1": -1, "r-1-": -1, "r-1-0": -1, "r-1-02": -1, "r-01-2": -1, "r-+1-2": -1,
		"r--1-2": -1,
		"r-1-+2": -1, "r-1-x": -1, "3-41": -1,
		"r-1-2-": -1, "r-1-2-e7": -1, "r-1-2-e79452b030d1487x": -1, "r-1-2-e79452b030d14874-": -1,
		"r-99999999999999999999-1": -1, "r-1-99999999999999999999": -1} {
		if p, ok := MintedBy(id); ok != (want >= 0) || ok && p != want {
			t.Errorf("%q: %d, %v, want %d", id, p, ok, want)
		}
	}
}

// TestDecideMinted claims ids ahead, those that are minted first and the others, as if their
// rounds had been lost after clients were told of them: each context without an id is
// decided all the same, under the first of its ids that is free, whatever its bytes; and a
// decider that is told of the log's tail goes on in the same way.
func TestDecideMinted(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		const partition, dedup = 2, 30
		replica := newReplica(t, anyRules())
		d := NewDecider(replica, testSeed, "shop", partition, dedup)
		var log [][]byte
		var ids []string // of the rounds
		var dec codec.Decision
		offset := int64(0)
		taken := func(id string) bool {
			for _, x := range ids[max(0, len(ids)-dedup):] {
				if x == id {
					return true
				}
			}
			return false
		}
		minted := func(n, offset int64, try int) string {
			return string(AppendMinted(nil, testSeed, "shop", partition, n, offset, try))
		}
		for range rapid.IntRange(1, 60).Draw(rt, "contexts") {
			n := int64(len(ids) + 1)
			src := Source{Offset: RequestSource}
			if rapid.Bool().Draw(rt, "topic") {
				offset++
				src = Source{Offset: offset, Through: offset + 1}
			}
			raw, id, want := `{"actions":["a","b"]}`, "", ""
			if rapid.IntRange(0, 2).Draw(rt, "claim") > 0 {
				ahead, try := rapid.Int64Range(0, 8).Draw(rt, "ahead"), rapid.IntRange(0, 2).Draw(rt, "try")
				id = minted(n+ahead, RequestSource, try)
				if rapid.Bool().Draw(rt, "of the topic") {
					id = minted(0, offset+ahead, try)
				}
				if want = id; taken(id) {
					continue
				}
				if rapid.Bool().Draw(rt, "in its bytes") { // else in a header: the bytes are those of the others
					raw = fmt.Sprintf(`{"id":%q,"actions":["a","b"]}`, id)
				}
			}
			for try := 0; want == "" || id == "" && taken(want); try++ {
				want = minted(n, src.Offset, try)
			}
			res := d.Decide(&dec, []byte(raw), id, src)
			if res.Verdict != Decided || res.N != n || res.ID != want || dec.ID != want {
				rt.Fatalf("context %q of %+v: %+v, want round %d, %s", id, src, res, n, want)
			}
			ids, log = append(ids, strings.Clone(want)), append(log, codec.AppendDecision(nil, &dec))
			if rapid.IntRange(0, 5).Draw(rt, "restart") > 0 {
				continue
			}
			d = NewDecider(replica, testSeed, "shop", partition, dedup)
			for _, b := range log[rapid.IntRange(0, max(0, len(log)-dedup)).Draw(rt, "from"):] {
				if err := codec.ParseDecision(&dec, b); err != nil {
					rt.Fatal(err)
				}
				d.Remember(&dec)
			}
		}
	})
}

// TestDecideMintedOut: where all ids of a round are taken the search ends, and the next
// round that has an id of its own makes an end of it.
func TestDecideMintedOut(t *testing.T) {
	d := NewDecider(newReplica(t, anyRules()), testSeed, "shop", 0, 100)
	var dec codec.Decision
	decide := func(id string) Result {
		return d.Decide(&dec, []byte(`{"actions":["a"]}`), id, Source{Offset: RequestSource})
	}
	for try := range Mints {
		if res := decide(
			string(AppendMinted(nil, testSeed, "shop", 0, Mints+1, RequestSource, try))); res.Verdict != Decided {
			t.Fatalf("%+v", res)
		}
	}
	if res := decide(""); res.Verdict == Decided || res.Verdict == Invalid {
		t.Errorf("%+v", res)
	}
	if res := decide("own"); res.Verdict != Decided {
		t.Errorf("%+v", res)
	}
	if res := decide(""); res.Verdict != Decided || res.ID != fmt.Sprintf("r-0-%d", Mints+2) {
		t.Errorf("%+v", res)
	}
}
