package service

import (
	"context"
	"math"

	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// claims are what deciders and their snapshots say of epochs. The feedback log may have lost the
// records of the last of them.
type claims struct {
	epoch int64      // the newest
	acted int64      // the newest of which the mode is known, as a decider was in it; 0: none
	mode  codec.Mode // of that one
}

func (c *claims) see(epoch int64, mode codec.Mode) {
	if c.epoch = max(c.epoch, epoch); epoch >= c.acted {
		c.acted, c.mode = epoch, mode
	}
}

// modeBehind returns the mode of an epoch behind another one, if deciders told of it.
func (c *claims) modeBehind(epoch int64) (codec.Mode, bool) { return c.mode, c.acted > epoch }

// readClaims finds out what the last decisions, and all snapshots, had learned ([join.Config]).
func (j *Joiner) readClaims(ctx context.Context, claim func(era, n, epoch int64)) error {
	for p := range j.cfg.Partitions {
		if err := j.readDecisionClaims(ctx, p, claim); err != nil {
			return err
		}
	}
	_, end, err := j.cfg.Log.Bounds(ctx, j.topics.Snapshots, 0)
	if err != nil {
		return err
	}
	return stream.Scan(ctx, j.cfg.Log, j.topics.Snapshots, 0, stream.Earliest, end, func(r *stream.Record) error {
		c, err := codec.ParseSnapshot(r.Value)
		if r.Type != "" || err != nil {
			return nil // it is no use to anyone
		}
		claim(c.Era, c.LearnedThrough, c.Epoch)
		j.lost.epoch = max(j.lost.epoch, c.Epoch)
		return nil
	})
}

func (j *Joiner) readDecisionClaims(ctx context.Context, p int, claim func(era, n, epoch int64)) error {
	found := false
	var d codec.Decision
	return stream.ScanBack(ctx, j.cfg.Log, j.topics.Decisions, p, math.MaxInt64, 512, func(r *stream.Record) error {
		switch r.Type {
		case "":
			if err := codec.ParseDecision(&d, r.Value); err != nil || d.Partition != p {
				return nil // said when it is read
			}
			found = true
			claim(d.Era, d.LearnedThrough, d.Epoch)
			j.lost.see(d.Epoch, d.Mode)
		case codec.TypeMark:
			m, err := codec.ParseDecisionMark(r.Value)
			if err != nil {
				return codec.UnlessForeign(err)
			}
			claim(m.Era, m.LearnedThrough, m.Epoch)
			if mode, err := codec.ParseMode(m.Mode); err == nil && m.Epoch > 0 {
				j.lost.see(m.Epoch, mode)
			}
		}
		return nil
	}, func() bool { return found })
}
