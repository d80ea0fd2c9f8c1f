package verify

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"hindsight/internal/latelosses"
	"hindsight/internal/loop"
	"hindsight/internal/service"
	"hindsight/pkg/codec"
	"hindsight/pkg/oracle"
	"hindsight/pkg/stream"

	"golang.org/x/sync/errgroup"
)

// Config is what Run needs.
type Config struct {
	Log      stream.Log
	Name     string // of the model
	Seed     []byte // the secret seed that the log was created with
	Build    service.Build
	OneClock bool                    // log times of all partitions are of one clock, as those of the embedded log are
	Dedup    int                     // rounds whose ids the service remembers; 0: 100,000
	Progress func(done, total int64) // records read of decisions and feedback; may be nil, called from several goroutines one at a time
}

// ErrSeed reports that the log was created with another seed.
var ErrSeed = errors.New("this is not the seed that the log was created with")

// verification is the state that the parts of Run share.
type verification struct {
	Config
	topics     service.Topics
	partitions int
	models     *service.Models
	epochs     epochTable
	survey     survey
	snapshots  []*snapshotInfo
	rejects    *rejectIndex
	surplus    map[rejectKey]*logCursor // of partitions that were added, at offset 0
	late       latelosses.Outcomes
	losses     losses
	replays    bool // the feedback log has cuts, and its fates are replayed

	// once says that the logs are read once only, and looked over on the way. What can
	// be judged then is judged as ever; what cannot calls [verification.again].
	once  bool
	redo  atomic.Bool // again was called
	abort context.CancelFunc

	opened []logCursor // as they were when they were opened

	mu     sync.Mutex
	report Report
	found  *findings // may be nil
	done   int64
	total  int64
}

// errTwice says that the logs have to be looked over first.
var errTwice = errors.New("what is to be judged hangs on what comes later")

// Run recomputes from the logs, with the code that decides, joins and learns,
// every decision, feedback, snapshot and reject of a model, and compares them with
// what the logs say, byte by byte. It reads the logs as far as they went when it
// began. Its memory is bounded by what the service bounds: the window of waiting
// rounds and the ids remembered; and by the number of rejects. An error means that
// it could not run.
//
// A record may have to be judged by what comes after it: a mark that tells of a log's
// lost tail, or where recomputing can begin in a log that has lost its head. Therefore
// the logs are looked over first. Where nothing is wrong and nothing was lost, what is
// known on the way does as well, and reading is most of the work: so they are read once
// with that in hope, and anew if it fails.
func Run(ctx context.Context, c Config) (*Report, error) {
	start := time.Now()
	if c.Dedup == 0 {
		c.Dedup = 100_000
	}
	if tell, most := c.Progress, int64(0); tell != nil {
		c.Progress = func(done, total int64) { // which never goes back, though all begins again
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

// attempt reads the logs once, or looks over them first. It returns errTwice if once is
// not enough. found takes what it finds; it may be nil.
func (c Config) attempt(ctx context.Context, once bool, found *findings) (v *verification, err error) {
	v = &verification{Config: c, topics: service.TopicsOf(c.Name), models: service.NewModels(c.Build), late: latelosses.Outcomes{}, once: once, found: found}
	v.report.Name = c.Name
	if found != nil {
		found.attempt++
	}
	if v.partitions, err = service.Partitions(ctx, c.Log, c.Name); err != nil {
		return v, err
	}
	ctx, v.abort = context.WithCancel(ctx)
	defer v.abort()
	err = v.run(ctx)
	var broken *brokenLog
	if errors.As(err, &broken) {
		v.differ(broken.Difference)
		if v.report.Start == "" {
			v.report.Start = "nowhere: a log cannot be read"
		}
		err = nil
	}
	if v.redo.Load() {
		return v, errTwice
	}
	return v, err
}

// again ends a verification that reads the logs once.
func (v *verification) again() {
	v.redo.Store(true)
	v.abort()
}

// run reads what everything hangs on first: the models, where they begin, and the
// rejects. Then decisions and fates are recomputed side by side. The ends are fetched
// in an order in which what a record refers to is read too, though the system runs
// on: feedback comes before its decision's end, the learner's feedback after it, and
// after the snapshots.
func (v *verification) run(ctx context.Context) error {
	fates, err := v.openFeedback(ctx)
	if err != nil {
		return err
	}
	defer fates.close()
	if err := v.readSnapshots(ctx); err != nil {
		return err
	}
	decisions, err := v.openDecisions(ctx)
	if err != nil {
		return err
	}
	defer decisions.close()
	look, err := v.lookOver(ctx, decisions)
	if err != nil {
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
	if err := fates.openInputs(ctx); err != nil {
		return err
	}
	v.total = fates.cursor().end - fates.cursor().first
	for _, l := range decisions.lanes {
		v.total += l.decisions.end - l.decisions.first
	}
	v.share(decisions, fates, look)
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { defer decisions.close(); return decisions.run(gctx) })
	g.Go(func() error { defer fates.close(); return fates.run(gctx) })
	if err := g.Wait(); err != nil {
		return err
	}
	v.finishRejects(decisions, fates)
	if look != nil {
		look.finish(decisions.lanes)
	}
	if c := fates.cursor(); c.first == c.end { // a model that began has its epoch there
		if v.report.expired, err = service.Begun(ctx, v.Log, v.Name); v.report.expired {
			v.report.Start = "nowhere: all feedback is older than what the log keeps"
		}
	}
	return err
}

// share lets the two checks read together what both read. look looks over it on the
// way, if it is not nil.
func (v *verification) share(decisions *decisionCheck, fates fates, look *overlook) {
	s := newFeeds(v.partitions + 1)
	s.share(decisions.feedback, fates.cursor(), look.feedback())
	for p, l := range decisions.lanes {
		if c := fates.decisions(p); c != nil {
			s.share(l.decisions, c, look.decisions(l.decisions))
		}
	}
}

// differ notes a difference.
func (v *verification) differ(d Difference) {
	if v.once {
		v.again()
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.report.Differences++
	if f := v.report.First; f == nil || d.before(f) {
		v.report.First = &d
	}
	if d.foreign {
		v.report.Foreign++
	} else if f := v.report.Beside; f == nil || d.before(f) {
		v.report.Beside = &d
	}
	if v.found != nil {
		v.found.add(&d)
	}
}

// stray notes a record that the service did not write.
func (v *verification) stray(d Difference) {
	d.foreign = true
	v.differ(d)
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

// rules returns the rules of an epoch, nil if it is not known.
func (v *verification) rules(epoch int64) *loop.Rules {
	if e := v.epochs.get(epoch); e != nil {
		return e.rules
	}
	return nil
}

// damaged reports whether an error tells of a record's bytes rather than of the
// log or the program.
func damaged(err error) bool {
	e := (*codec.Error)(nil)
	return !newer(err) && (errors.As(err, &e) || errors.Is(err, codec.ErrCorrupt))
}

// newer reports whether an error says that a newer program wrote what could not be read:
// whether it is right is for that program to say.
func newer(err error) bool {
	return errors.Is(err, codec.ErrVersion) || errors.Is(err, oracle.ErrNewer)
}

// unread notes a record that cannot be read; that of a newer program ends the verification.
func (v *verification) unread(c *logCursor, r *stream.Record, field, want string, err error, n int64) error {
	if newer(err) {
		return c.failed(r.Offset, err)
	}
	d := at(c, r, field, want, err).in(n, "")
	d.foreign = codec.Foreign(err)
	v.differ(d)
	return nil
}
