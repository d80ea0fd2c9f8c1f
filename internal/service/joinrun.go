package service

import (
	"context"
	"sync"
	"time"
)

// Run takes records until the context ends or something fails. A step that is
// under way when the context ends has stopGrace to finish: a mark is only true between
// steps.
func (j *Joiner) Run(ctx context.Context) error {
	work, cancel := outlive(ctx)
	defer cancel()
	for _, in := range j.inputs {
		in.start(work, j.wake)
	}
	watching, over := context.WithCancel(ctx)
	var looks sync.WaitGroup
	looks.Go(func() { lookOn(watching, j.look) })
	defer looks.Wait()
	defer over()
	timer := time.NewTicker(100 * time.Millisecond)
	defer timer.Stop()
	tail := time.NewTicker(markInterval)
	defer tail.Stop()
	alive := j.part.Loop("records")
	j.wall = time.Now
	defer j.cfg.Control.enter(j)()
	j.pause = func() error {
		alive.Beat()
		if ctx.Err() != nil {
			return errOvertaken
		}
		return j.overtaken()
	}
	for {
		alive.Beat()
		j.obey(work)
		busy, err := j.Step(work)
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return j.stop(work)
		}
		if busy {
			continue
		}
		select {
		case <-ctx.Done():
		case <-j.wakeup:
		case o := <-j.orders:
			j.follow(work, o)
		case now := <-timer.C:
			if err := j.Tick(work, now); err != nil {
				return err
			}
		case <-tail.C:
			if err := j.mark(work); err != nil {
				return err
			}
		}
	}
}

// stop stores the joiner's positions, so that the next one starts there.
func (j *Joiner) stop(ctx context.Context) error {
	if err := j.mark(ctx); err != nil {
		return err
	}
	return j.feedback.Flush(ctx)
}
