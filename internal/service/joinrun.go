package service

import (
	"context"
	"sync"
	"time"
)

// Run takes records until the context ends or something fails. A step that is under way when the context ends has
// stopGrace to finish: a mark is only true between steps.
func (j *Joiner) Run(ctx context.Context) error {
	work, cancel := outlive(ctx)
	defer cancel()
	j.core.Start(work)
	watching, over := context.WithCancel(ctx)
	var looks sync.WaitGroup
	looks.Go(func() { lookOn(watching, j.look) })
	defer looks.Wait()
	defer over()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	tail := time.NewTicker(markInterval)
	defer tail.Stop()
	paced := time.NewTimer(time.Hour)
	defer paced.Stop()
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
		busy, wait, err := j.step(work, time.Now())
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return j.stop(work)
		}
		if busy {
			continue
		}
		if wait > 0 {
			paced.Reset(wait)
		}
		select {
		case <-ctx.Done():
		case <-j.wakeup:
		case <-paced.C:
		case o := <-j.orders:
			j.follow(work, o)
		case now := <-tick.C:
			if err := j.Tick(work, now); err != nil {
				return err
			}
		case <-tail.C:
			if err := j.core.Mark(work); err != nil {
				return err
			}
		}
	}
}
