package lease

import (
	"cmp"
	"slices"
	"strings"
)

// Share says how many of n parts a process takes so that all members share them: as even as can be, and the older ones
// get what is left over. me is a member's nonce; a process that is no member takes nothing. Members are the claims
// whose keys have the prefix.
func Share(n int, claims []Claim, prefix, me string) int {
	var members []Claim
	for _, c := range claims {
		if strings.HasPrefix(c.Key, prefix) {
			members = append(members, c)
		}
	}
	slices.SortFunc(members, func(a, b Claim) int {
		return cmp.Or(cmp.Compare(a.Since, b.Since), cmp.Compare(a.Key, b.Key))
	})
	rank := slices.IndexFunc(members, func(c Claim) bool { return c.Nonce == me })
	if rank < 0 {
		return 0
	}
	share := n / len(members)
	if rank < n%len(members) {
		share++
	}
	return share
}
