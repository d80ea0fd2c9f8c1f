package verify

import (
	"context"
	"crypto/sha256"
	"fmt"

	"hindsight/internal/follow"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// snapshotInfo is a snapshot without its bytes.
type snapshotInfo struct {
	place
	offset, time int64
	rounds       []int64
	sum          [sha256.Size]byte
	stored       *follow.Snapshot // with its bytes; nil: it was too large to be kept
	checked      bool
}

// keptSnapshots is how many bytes of snapshots are kept in memory: a running system drops
// the old ones, and verifying may begin with one of them much later than it was read.
const keptSnapshots = 64 << 20

// readSnapshots reads the snapshots and keeps their hashes, and their models for both checks.
func (v *verification) readSnapshots(ctx context.Context, fates *follow.Epochs) error {
	c, err := v.openCursor(ctx, v.topics.Snapshots, 0)
	if err != nil {
		return err
	}
	times, kept, models := map[int64]int64{}, 0, follow.NewEpochs(v.Build)
	err = c.walk(ctx, func(r *stream.Record) error {
		times[r.Offset] = r.Time
		if r.Type != "" && r.Type != codec.TypeOpen {
			v.differ(at(c, r, "type", "none", r.Type))
		}
		c.keyless(v, r)
		return nil
	})
	if err != nil {
		return err
	}
	return follow.ReadSnapshots(ctx, v.Log, v.topics, func(s *follow.Snapshot, err error) error {
		v.report.Snapshots.Records++
		if err == nil {
			err = v.addModel(s, models, fates)
		}
		if newer(err) {
			return c.failed(s.Offset, err)
		}
		if err != nil {
			v.differ(Difference{Topic: c.topic, Offset: s.Offset, Time: times[s.Offset], Field: "bytes",
				Want: "a snapshot that can be read", Got: err.Error()})
			return nil
		}
		info := &snapshotInfo{place: place{s.Era, s.Through, s.Rec.Epoch}, offset: s.Offset, time: times[s.Offset],
			rounds: s.Rounds, sum: sha256.Sum256(s.Bytes)}
		if kept += len(s.Bytes); kept <= keptSnapshots {
			info.stored = s
		}
		v.snapshots = append(v.snapshots, info)
		return nil
	})
}

// addModel takes the model of a snapshot, which may be older than any that the feedback log keeps.
func (v *verification) addModel(s *follow.Snapshot, models, fates *follow.Epochs) error {
	if v.models.epochs[s.Rec.Epoch] != nil {
		return nil
	}
	ep, err := models.AddSnapshot(s)
	if err != nil {
		return err
	}
	if err := v.models.add(ep); err != nil {
		return err
	}
	_, err = fates.AddSnapshot(s)
	return err
}

// snapshot checks a snapshot against the replica's state.
func (d *decisionCheck) snapshot(ctx context.Context, s *snapshotInfo) error {
	v := d.v
	if s.checked { // it is where recomputing began
		return nil
	}
	if d.dead == errNoStart || s.before(d.from) {
		v.count(&v.report.Snapshots, Tally{TooOld: 1})
		return nil
	}
	wrong := func(field, want, got string) {
		v.differ(Difference{Topic: v.topics.Snapshots, Offset: s.offset, Time: s.time, Field: field, Want: want, Got: got})
	}
	if _, err := d.follow(ctx, s.place); err != nil || d.dead != nil {
		return err
	}
	if !d.reached(s.place) {
		wrong("learned_through", "a place in the feedback log", s.place.String())
		return nil
	}
	if d.from.through > 0 {
		d.audit.AdoptRounds(s.rounds)
	}
	var err error
	if d.state, err = d.audit.AppendState(d.state[:0]); err != nil {
		return err
	}
	v.count(&v.report.Snapshots, Tally{Checked: 1})
	sum := sha256.Sum256(d.state)
	if sum == s.sum {
		return nil
	}
	earlier, err := d.audit.AppendEarlierState(nil)
	if err != nil {
		return err
	}
	if sha256.Sum256(earlier) != s.sum {
		wrong("bytes", fmt.Sprintf("SHA-256 %x", sum), fmt.Sprintf("SHA-256 %x", s.sum))
	}
	return nil
}

// restore brings the replica to a snapshot.
func (d *decisionCheck) restore(ctx context.Context, s *snapshotInfo) error {
	if s.stored != nil {
		return d.audit.Restore(s.stored)
	}
	found := false
	err := follow.ReadSnapshots(ctx, d.v.Log, d.v.topics, func(b *follow.Snapshot, err error) error {
		if err == nil && b.Offset == s.offset {
			found = true
			return d.audit.Restore(b)
		}
		return nil
	})
	if err == nil && !found {
		err = &stream.Error{Op: "restore", Topic: d.v.topics.Snapshots, Offset: s.offset, Err: stream.ErrTruncated}
	}
	return err
}
