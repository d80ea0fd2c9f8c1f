package verify

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"hindsight/internal/follow"
	"hindsight/internal/join"
	"hindsight/internal/latelosses"
	"hindsight/internal/topics"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"

	"golang.org/x/sync/errgroup"
)

// Config is what Run needs.
type Config struct {
	Log   stream.Log
	Name  string // of the model
	Seed  []byte // the secret seed that the log was created with
	Build follow.Build
	// Skew is by how much the clocks differ that give partitions their log times; 0: they are of one clock.
	Skew  time.Duration
	Dedup int // rounds whose ids a decider remembers; 0: 100,000
	// records read of decisions and feedback; may be nil, called from several goroutines one at a time
	Progress func(done, total int64)
}

// errSeed reports that the log was created with another seed.
var errSeed = errors.New("this is not the seed that the log was created with")

// verification is the state that the two checks share.
type verification struct {
	Config
	topics     join.Topics
	partitions int
	models     modelReader
	snapshots  []*snapshotInfo
	rejects    *rejectIndex
	late       latelosses.Outcomes
	losses     losses
	opened     []logCursor // as they were when they were opened

	mu       sync.Mutex
	report   Report
	suspects []suspicion
	found    map[site]Difference
	done     int64
	total    int64
}

// Run recomputes from the logs, with the code that decides, joins and learns, every decision, feedback, snapshot and
// reject of a model, and compares them with what the logs say, byte by byte. It reads the logs as far as they went when
// it began. Its memory is bounded by what the service bounds, the window of waiting rounds and the ids remembered, and
// by the number of rejects. An error means that it could not run.
func Run(ctx context.Context, c Config) (*Report, error) {
	start := time.Now()
	if tell, most := c.Progress, int64(0); tell != nil {
		c.Progress = func(done, total int64) { // it never goes back, though a new attempt begins
			most = max(most, done)
			tell(most, total)
		}
	}
	r, err := c.judge(ctx)
	if err != nil {
		return nil, fmt.Errorf("verify %s: %w", c.Name, err)
	}
	r.Seconds = time.Since(start).Seconds()
	r.PerSecond = float64(r.Decisions.Checked) / max(r.Seconds, 1e-9)
	return r, nil
}

// attempt verifies the logs once.
func (c Config) attempt(ctx context.Context) (v *verification, err error) {
	c.Log = storage{c.Log}
	v = &verification{Config: c, topics: join.TopicsOf(c.Name), late: latelosses.Outcomes{},
		found: map[site]Difference{}}
	v.report.Name = c.Name
	v.models = newModelReader(v)
	if v.partitions, err = topics.Partitions(ctx, c.Log, c.Name); err != nil {
		return v, err
	}
	err = v.run(ctx)
	var broken *brokenLog
	if errors.As(err, &broken) {
		v.differ(broken.Difference)
		if v.report.Start == "" {
			v.report.Start = "nowhere: a log cannot be read"
		}
		err = nil
	}
	return v, err
}

// run reads what everything depends on first: snapshots and rejects. Then decisions and fates are recomputed side by
// side. The ends are fetched in an order in which what a record refers to is read too, though the system runs on:
// feedback comes before its decision's end, the learner's feedback after it, and after the snapshots.
func (v *verification) run(ctx context.Context) error {
	fates, err := v.openFates(ctx)
	if err != nil {
		return err
	}
	defer fates.close()
	if err := v.readSnapshots(ctx, fates.models); err != nil {
		return err
	}
	decisions, err := v.openDecisions(ctx)
	if err != nil {
		return err
	}
	defer decisions.close()
	if err := v.models.readAhead(ctx, decisions.feedback); err != nil {
		return err
	}
	if err := v.readRejects(ctx); err != nil {
		return err
	}
	if err := v.checkSurplus(ctx); err != nil {
		return err
	}
	if err := decisions.openContexts(ctx); err != nil {
		return err
	}
	fates.log = v.handOn(decisions, fates.feedback)
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { defer decisions.close(); return decisions.run(gctx) })
	g.Go(func() error { defer fates.close(); return fates.run(gctx) })
	if err := g.Wait(); err != nil {
		return err
	}
	if err := v.finishRejects(ctx); err != nil {
		return err
	}
	v.settle()
	return v.finish(ctx, decisions.feedback)
}

// finish says what it means that the feedback log holds no model, or nothing.
func (v *verification) finish(ctx context.Context, feedback *logCursor) (err error) {
	if v.models.none() && v.report.Differences == 0 && !feedback.cut() {
		return follow.ErrNoModel
	}
	if feedback.first == feedback.end { // a model that began has its epoch there
		if v.report.expired, err = topics.Begun(ctx, v.Log, v.Name); v.report.expired {
			v.report.Start = "nowhere: all feedback is older than what the log keeps"
		}
	}
	return err
}

// differ notes a difference.
func (v *verification) differ(d Difference) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.report.add(&d)
	if len(v.found) < mostSites {
		v.found[d.site()] = d
	}
}

// stray notes a record that the service did not write.
func (v *verification) stray(d Difference) {
	d.foreign = true
	v.differ(d)
}

// suspicion is a difference unless what is read later excuses it: then one more of a kind is too old to be judged.
type suspicion struct {
	Difference
	excused func() bool
	kind    *Tally
}

// mostSuspects is how many suspicions are kept to the end.
const mostSuspects = 1 << 16

func (v *verification) suspect(d Difference, kind *Tally, excused func() bool) {
	v.mu.Lock()
	kept := len(v.suspects) < mostSuspects
	if kept {
		v.suspects = append(v.suspects, suspicion{d, excused, kind})
	}
	v.mu.Unlock()
	if !kept {
		v.differ(d)
	}
}

// settle judges the suspicions once all was read.
func (v *verification) settle() {
	for i := range v.losses.all {
		m := &v.losses.all[i]
		m.rejects = v.rejects.lastBefore(m.since)
	}
	for _, s := range v.suspects {
		if !s.excused() {
			v.differ(s.Difference)
		} else if s.kind != nil {
			s.kind.TooOld++
		}
	}
}

// count adds to a tally of the report.
func (v *verification) count(t *Tally, add Tally) {
	v.mu.Lock()
	defer v.mu.Unlock()
	t.Records += add.Records
	t.Checked += add.Checked
	t.TooOld += add.TooOld
}

// step tells of records read.
func (v *verification) step(n int) {
	if v.Progress == nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.done += int64(n)
	v.Progress(v.done, v.total)
}

// damaged reports whether an error tells of a record's bytes rather than of the log or the program.
func damaged(err error) bool {
	e := (*codec.Error)(nil)
	return !follow.Newer(err) && (errors.As(err, &e) || errors.Is(err, codec.ErrCorrupt))
}

// unread notes a record that cannot be read; that of a newer program ends the verification.
func (v *verification) unread(c *logCursor, r *stream.Record, field, want string, err error, n int64) error {
	if follow.Newer(err) {
		return c.failed(r.Offset, err)
	}
	d := at(c, r, field, want, err).in(n, "")
	d.foreign = codec.Foreign(err)
	v.differ(d)
	return nil
}
