package verify

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"slices"

	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// Topics that rejects name.
const (
	contextsTopic = "contexts"
	outcomesTopic = "outcomes"
)

// rejectKey says what a reject is of: where a log has lost its tail another record may have the place, at
// another log time.
type rejectKey struct {
	outcomes     bool
	partition    int
	offset, time int64
}

// rejectInfo is a reject without its bytes.
type rejectInfo struct {
	offset, time int64 // of the reject
	reason       string
	again        []string // other reasons: who was killed before its log told of the reject refuses the context anew
	bytes, id    uint64
	kept, size   int  // bytes kept of a record, and its size if it was too large for a reject, else 0
	met          bool // the record was met
}

// rejectIndex knows all rejects that are kept of contexts, and of outcomes in partitions that are not
// the model's, by the records they tell of.
type rejectIndex struct {
	c     *logCursor
	seed  maphash.Seed
	all   map[rejectKey]*rejectInfo
	times []int64 // log times of all that are kept, of outcomes too
}

var rejectReasons = []string{codec.ReasonMalformed, codec.ReasonDuplicateID, codec.ReasonLate, codec.ReasonDuplicate,
	codec.ReasonOrphan, codec.ReasonMismatch}

// readRejects reads all rejects.
func (v *verification) readRejects(ctx context.Context) error {
	c, err := v.openCursor(ctx, v.topics.Rejects, 0)
	if err != nil {
		return err
	}
	x := &rejectIndex{c: c, seed: maphash.MakeSeed(), all: map[rejectKey]*rejectInfo{}}
	v.rejects = x
	return c.walk(ctx, func(r *stream.Record) error {
		x.times = append(x.times, r.Time)
		if r.Type != "" {
			if r.Type != codec.TypeOpen {
				v.differ(at(c, r, "type", "data", r.Type))
			}
			return nil
		}
		v.report.Rejects.Records++
		rej, err := codec.ParseReject(r.Value)
		if err != nil {
			return v.unread(c, r, "bytes", "a reject", err, 0)
		}
		key := rejectKey{rej.Topic == outcomesTopic, rej.Partition, rej.Offset, rej.Time}
		if v.checkReject(r, &rej); !key.outcomes || rej.Partition >= v.partitions {
			x.add(v, key, r, &rej)
		} else if rej.Reason == codec.ReasonLate { // the rest is compared with what follows from the cuts
			v.late.AddReject(&rej)
		}
		return nil
	})
}

// checkReject checks what holds for all rejects.
func (v *verification) checkReject(r *stream.Record, rej *codec.Reject) {
	wantKey := ""
	if rej.Topic == outcomesTopic {
		wantKey = rej.ID
	}
	c := v.rejects.c
	switch {
	case rej.Topic != contextsTopic && rej.Topic != outcomesTopic:
		v.differ(at(c, r, "topic", "contexts or outcomes", rej.Topic))
	case rej.Partition < 0:
		v.differ(at(c, r, "partition", "0 or more", rej.Partition))
	case !slices.Contains(rejectReasons, rej.Reason):
		v.differ(at(c, r, "reason", "a reason", rej.Reason))
	case string(r.Key) != wantKey:
		v.differ(at(c, r, "key", wantKey, string(r.Key)))
	}
}

// add notes a reject. It is stored at least once: a repeat says the same, but perhaps another reason, by a later model.
func (x *rejectIndex) add(v *verification, key rejectKey, r *stream.Record, rej *codec.Reject) {
	info := &rejectInfo{offset: r.Offset, time: r.Time, reason: rej.Reason, bytes: maphash.Bytes(x.seed, rej.Bytes),
		id: maphash.String(x.seed, rej.ID), kept: len(rej.Bytes), size: rej.Size}
	if i := slices.Index(rejectReasons, rej.Reason); i >= 0 {
		info.reason = rejectReasons[i]
	}
	was := x.all[key]
	if was == nil {
		x.all[key] = info
		return
	}
	if was.reason != info.reason && !slices.Contains(was.again, info.reason) {
		was.again = append(was.again, info.reason)
	}
	field, want, got := firstUnequal([]pair{{"id", was.id, info.id}, {"bytes", was.bytes, info.bytes}})
	if field != "" {
		v.differ(at(x.c, r, field, want+", as at offset "+i64(was.offset), got).in(0, rej.ID))
	}
}

// find returns the reject of a record, and notes that the record was met.
func (x *rejectIndex) find(key rejectKey) *rejectInfo {
	info := x.all[key]
	if info != nil {
		info.met = true
	}
	return info
}

// dropped reports whether the reject of a record may be gone: it came later than the record.
func (x *rejectIndex) dropped(logTime int64) bool {
	return x.c.cut() && (len(x.times) == 0 || logTime <= x.times[0])
}

// lastBefore returns the log time of the last reject before one, 0 if there is none.
func (x *rejectIndex) lastBefore(before int64) (last int64) {
	for _, t := range x.times {
		if t < before {
			last = max(last, t)
		}
	}
	return last
}

// compare compares a reject with the record it tells of, which had no id.
func (x *rejectIndex) compare(info *rejectInfo, r *stream.Record) (field, want, got string) {
	record := r.Value
	cutOff := info.size == len(record) && codec.MaxRejectBytes <= info.kept && info.kept < info.size
	if cutOff {
		record = record[:info.kept]
	}
	switch {
	case info.size > 0 && !cutOff || info.bytes != maphash.Bytes(x.seed, record):
		return "bytes", "the bytes of the record at offset " + i64(r.Offset), "others"
	case info.id != maphash.String(x.seed, ""):
		return "id", `""`, "another"
	}
	return "", "", ""
}

func (x *rejectIndex) wrong(info *rejectInfo, id, field, want, got string) Difference {
	d := Difference{Topic: x.c.topic, Offset: info.offset, Time: info.time, Field: field, Want: want, Got: got}
	return d.in(0, id)
}

// finishRejects looks for rejects of records that do not exist.
func (v *verification) finishRejects(ctx context.Context) error {
	for key, info := range v.rejects.all {
		if info.met {
			continue
		}
		topic, name := v.topics.Contexts, contextsTopic
		if key.outcomes {
			topic, name = v.topics.Outcomes, outcomesTopic
		}
		behind := int64(math.MaxInt64) // log time of what lies behind it
		err := stream.Scan(ctx, v.Log, topic, key.partition, key.offset, math.MaxInt64, func(r *stream.Record) error {
			behind = r.Time
			return stream.ErrStop
		})
		kept, _, bounds := v.Log.Bounds(ctx, topic, key.partition)
		if err = errors.Join(err, bounds); err != nil && !errors.Is(err, stream.ErrNotFound) {
			return err
		}
		if err == nil && (key.offset < kept || v.losses.parts(info.time, behind)) {
			v.report.Rejects.TooOld++
			continue
		}
		v.differ(v.rejects.wrong(info, "", "offset", "a record of "+name,
			fmt.Sprintf("none of log time %d at partition %d, offset %d", key.time, key.partition, key.offset)))
	}
	return nil
}
