package main

import (
	"crypto/sha256"
	"fmt"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"hindsight/internal/follow"
	"hindsight/internal/join"
	"hindsight/internal/model"
	"hindsight/pkg/stream"
)

var stopLine = regexp.MustCompile(`msg="decider stops" .*learned_through=(\d+) learner=(\w+)`)

// TestLearnersOfProcesses runs as many processes as partitions, each the owner of one,
// under load: in the end each has the learner, to the byte, that one process has which is
// fed the feedback log. (That the feedback of each partition comes in order, and every
// decision was made with what its learner was then, is in the audit.)
func TestLearnersOfProcesses(t *testing.T) {
	notShort(t)
	t.Parallel()
	counts := []int{2}
	if long(0, 1) > 0 {
		counts = []int{1, 2, 4}
	}
	for _, n := range counts {
		t.Run(fmt.Sprint("partitions=", n), func(t *testing.T) { learnersOfProcesses(t, n) })
	}
}

func learnersOfProcesses(t *testing.T, partitions int) {
	s := newShared(t, partitions)
	s.args = append(s.args, "--admin", "127.0.0.1:0")
	all, one := make([]*process, partitions), map[*process]int{}
	for i := range all {
		all[i] = s.decider().ready()
		one[all[i]] = 1
	}
	s.shares(one)
	s.answered()
	u := s.newUsers(testSeed(t))
	after(all[0], time.Duration(long(700, 3000))*time.Millisecond)
	u.end()
	want, learned := learnerOf(t, s.client.Log(), s.partitions)
	for _, p := range all {
		addr, line := p.admin(),
			regexp.MustCompile(fmt.Sprintf(`(?m)^hindsight_learned_through{partition="\d+"} %d$`, learned))
		eventually(t, fmt.Sprintf("a process has learned through %d", learned), func() bool {
			_, page := p.page(addr, "/metrics")
			return line.MatchString(page)
		})
	}
	for _, p := range all {
		p.signal(syscall.SIGTERM)
	}
	for i, p := range all {
		if code := p.wait(patience); code != 0 {
			t.Fatalf("process %d ended with %d:\n%s", i, code, p.log())
		}
		found := false // it may have given back other partitions earlier
		for _, m := range stopLine.FindAllStringSubmatch(p.log(), -1) {
			if m[1] != fmt.Sprint(learned) {
				continue
			}
			if found = true; m[2] != want {
				t.Errorf("process %d has learner %s after %d feedbacks; one that is fed the log has %s", i, m[2],
					learned, want)
			}
		}
		if !found {
			t.Errorf("process %d does not say what it has learned:\n%s", i, p.log())
		}
	}
	u.audit()
	t.Logf("%d processes with learner %s after %d feedbacks", partitions, want[:16], learned)
}

// learnerOf returns the hash of the learner of one process that is fed the feedback log.
func learnerOf(t testing.TB, log stream.Log, partitions int) (sum string, learned int64) {
	t.Helper()
	audit := follow.New(log, "shop", model.Epoch, partitions)
	topic := join.TopicsOf("shop").Feedback
	_, end, err := log.Bounds(t.Context(), topic, 0)
	if err == nil {
		err = stream.Scan(t.Context(), log, topic, 0, stream.Earliest, end, func(r *stream.Record) error {
			return audit.Take(t.Context(), r)
		})
	}
	state, err2 := audit.AppendState(nil)
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	if learned = audit.Replica().LearnedThrough(); learned < 20 {
		t.Errorf("only %d feedbacks", learned)
	}
	return strings.ToLower(fmt.Sprintf("%x", sha256.Sum256(state))), learned
}
