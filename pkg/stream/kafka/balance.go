package kafka

import (
	"cmp"
	"encoding/json"
	"slices"

	kafkago "github.com/segmentio/kafka-go"
)

// stickyName is the protocol of our groups: a consumer of another kind that joins one is refused by the coordinator.
const stickyName = "hindsight-sticky-1"

// claim is what a member says of itself when it joins.
type claim struct {
	Generation int32 `json:"generation"` // in which it got its last assignment; -1: it had none
	Own        []int `json:"own"`        // partitions that it works on, those that it is giving up too
}

// sticky balances partitions so that those at work stay where they are: it moves only what makes the shares even, and
// in two steps. First the owner is not given the partition any more; when it has stopped, and joined without it,
// another one gets it. So no process is fenced in the middle of its work (KIP-429's idea, on the eager protocol). What
// no member claims is given away at once.
type sticky struct {
	topic      string
	partitions int // shared, of the topic's: the first; 0: all
	claim      func() claim
}

func (s *sticky) ProtocolName() string { return stickyName }

func (s *sticky) UserData() ([]byte, error) { return json.Marshal(s.claim()) }

// AssignGroups implements [kafkago.GroupBalancer] for the member that leads.
func (s *sticky) AssignGroups(members []kafkago.GroupMember,
	partitions []kafkago.Partition) kafkago.GroupMemberAssignments {
	var all []int
	for _, p := range partitions {
		if p.Topic == s.topic && (s.partitions == 0 || p.ID < s.partitions) {
			all = append(all, p.ID)
		}
	}
	claims := make(map[string]claim, len(members))
	for _, m := range members {
		c := claim{Generation: -1}
		if json.Unmarshal(m.UserData, &c) != nil {
			c = claim{Generation: -1}
		}
		claims[m.ID] = c
	}
	out := kafkago.GroupMemberAssignments{}
	for id, own := range assign(all, claims) {
		out[id] = map[string][]int{s.topic: own}
	}
	return out
}

// share is one member's part of the work.
type share struct {
	id    string
	own   []int // claimed, and by no later generation
	quota int
	gets  []int
}

// assign says which partitions each member may work on. A partition that a member claims is given to no other.
func assign(partitions []int, claims map[string]claim) map[string][]int {
	partitions = slices.Clone(partitions)
	slices.Sort(partitions)
	shares, free := owners(partitions, claims)
	slices.SortFunc(shares, func(a, b *share) int { // the member with most keeps what is left over
		return cmp.Or(cmp.Compare(len(b.own), len(a.own)), cmp.Compare(a.id, b.id))
	})
	for i, s := range shares {
		s.quota = len(partitions) / len(shares)
		if i < len(partitions)%len(shares) {
			s.quota++
		}
		s.gets = append(s.gets, s.own[:min(len(s.own), s.quota)]...)
	}
	for _, p := range free {
		least := slices.MinFunc(shares, func(a, b *share) int {
			return cmp.Compare(len(a.gets)-a.quota, len(b.gets)-b.quota)
		})
		least.gets = append(least.gets, p)
	}
	out := make(map[string][]int, len(shares))
	for _, s := range shares {
		slices.Sort(s.gets)
		out[s.id] = s.gets
	}
	return out
}

// owners returns what each member owns, in order, and what no member claims. Of two that claim a partition the one with
// the later assignment owns it: the other one was away when it was given to another.
func owners(partitions []int, claims map[string]claim) (shares []*share, free []int) {
	byID := make(map[string]*share, len(claims))
	for id := range claims {
		byID[id] = &share{id: id}
		shares = append(shares, byID[id])
	}
	for _, p := range partitions {
		owner := ""
		for id, c := range claims {
			if !slices.Contains(c.Own, p) {
				continue
			}
			if have := claims[owner]; owner == "" || c.Generation > have.Generation ||
				c.Generation == have.Generation && id < owner {
				owner = id
			}
		}
		if owner == "" {
			free = append(free, p)
		} else {
			byID[owner].own = append(byID[owner].own, p)
		}
	}
	return shares, free
}
