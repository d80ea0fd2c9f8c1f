package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"hindsight/internal/daemon"
	"hindsight/internal/model"
	"hindsight/internal/testkit/landed"
	"hindsight/internal/verify"
)

// previous are the programs of the last build that landed, or of HINDSIGHT_PREVIOUS.
var previous = sync.OnceValues(func() (dir string, err error) {
	all := landed.All()
	revision := all[len(all)-1].Revision
	if r := os.Getenv("HINDSIGHT_PREVIOUS"); r != "" {
		revision = r
	}
	dir = filepath.Join(scratch, "previous")
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	return dir, landed.Build(ctx, ".", revision, dir, "decider", "feedback-joiner")
})

// shopLinear is a model that means the same in all builds since the first landing.
const shopLinear = "name: shop\nversion: 1\nwindow: 300ms\noracle: {kind: linear}\n"

// TestRollingUpgrade replaces the deciders and the joiner of the previous build by those
// of this one, one by one, while users are at work on two partitions. Nothing is lost,
// nothing decided twice, every record has its fate, and all of it is computed again by
// this build, from records of both. Without the history that the previous build is made
// from it skips; with HINDSIGHT_UPGRADE=require it fails.
func TestRollingUpgrade(t *testing.T) {
	if os.Getenv("HINDSIGHT_LONG") == "" && os.Getenv("HINDSIGHT_CHAOS") == "" {
		t.Skip("builds an earlier revision: HINDSIGHT_CHAOS=1 runs it")
	}
	t.Parallel()
	old, err := previous()
	if errors.Is(err, landed.ErrNoHistory) && os.Getenv("HINDSIGHT_UPGRADE") != "require" {
		t.Skipf("%v; with HINDSIGHT_UPGRADE=require this fails", err)
	} else if err != nil {
		t.Fatal(err)
	}
	seed := testSeed(t)
	s := newShared(t, 2)
	writeModel(t, s.dir, shopLinear)
	apart := []string{"--joiner=false", "--admin", "none"}
	oldDecider := func() *process {
		args := append(append(slices.Clone(s.args), "--partitions", "2"), apart...)
		return start(t, asOld(exec.Command(filepath.Join(old, "decider"), args...)))
	}
	oldJoiner := func() *process {
		return start(
			t, asOld(exec.Command(filepath.Join(old, "feedback-joiner"), append(slices.Clone(s.args), "--admin",
				"none")...)))
	}
	newJoiner := func() *process {
		return start(t, feedbackJoiner(t, append(slices.Clone(s.args), "--admin", "none")...))
	}

	a := oldDecider()
	j := oldJoiner()
	a.ready()
	b := oldDecider().ready()
	s.shares(map[*process]int{a: 1, b: 1})
	u := s.newUsers(seed)
	u.uncut = true
	after(a, 700*time.Millisecond)

	// Each decider is replaced, then a standby of this build takes over from the joiner.
	replace := func(was *process, kept *process) *process {
		is := s.decider(apart...) // stands by: there are as many deciders as partitions
		after(is, 500*time.Millisecond)
		was.stop(15 * time.Second)
		is.ready()
		s.shares(map[*process]int{is: 1, kept: 1})
		s.answered()
		after(is, 500*time.Millisecond)
		return is
	}
	b2 := replace(b, a)
	a2 := replace(a, b2)
	j2 := newJoiner()
	after(a2, 300*time.Millisecond)
	j.stop(15 * time.Second)
	after(a2, 700*time.Millisecond)
	u.end()
	for _, p := range []*process{a2, b2, j2} {
		p.stop(15 * time.Second)
	}
	u.verified()
}

// verified has the logs of two builds recomputed. Fates of before the joiner logged its cuts are too old,
// and the checker knows no such logs.
func (u *users) verified() {
	s := u.s
	s.t.Helper()
	seed, err := daemon.SeedFile(filepath.Join(s.dir, "seed"))
	if err != nil {
		s.t.Fatal(err)
	}
	v, err := verify.Run(s.t.Context(), verify.Config{Log: s.client.Log(), Name: "shop", Seed: seed,
		Build: model.Epoch})
	if err != nil {
		s.t.Fatal(err)
	}
	if v.Differences > 0 || v.Decisions.Checked+v.Decisions.TooOld != v.Decisions.Records ||
		v.Decisions.Records < int64(
			len(u.replies)) || v.Feedback.Checked+v.Feedback.TooOld != v.Feedback.Records || v.Cuts.Checked == 0 {
		v.Write(os.Stderr)
		s.t.Errorf("the logs do not verify: exit code %d, %+v", v.ExitCode(), v.First)
	}
}

// asOld gives a command of another build the environment of the tests.
func asOld(cmd *exec.Cmd) *exec.Cmd {
	cmd.Env = slices.DeleteFunc(environment(), func(v string) bool { return strings.HasPrefix(v, asCommand) })
	return cmd
}
