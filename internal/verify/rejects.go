package verify

import (
	"context"
	"hash/maphash"
	"math"
	"slices"
	"strconv"
	"sync"

	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// Topics that rejects name.
const (
	contextsTopic = "contexts"
	outcomesTopic = "outcomes"
)

// rejectKey is the identity of a reject.
type rejectKey struct {
	outcomes  bool
	partition int
	offset    int64
}

// rejectInfo is a reject without its bytes.
type rejectInfo struct {
	offset, time int64 // of the reject
	of           int64 // log time of the record rejected
	reason       uint8 // index in rejectReasons
	bytes        uint64
	kept, size   int // bytes kept of a record that was too large for a reject, and its size; 0: all
	id           uint64
	next         *rejectInfo // of another record that had the place, before a log lost its tail
	met          bool        // the record was met
	repeat       bool        // the first reject of the record may be gone
}

// rejectIndex knows all rejects that are kept, by the records they tell of.
type rejectIndex struct {
	c     *logCursor
	seed  maphash.Seed
	mu    sync.Mutex
	all   map[rejectKey]*rejectInfo
	since int64 // log time of the first record kept
	lossy bool  // logs have lost their tails
}

// reasons is a set of reasons for a reject.
type reasons uint8

var rejectReasons = []string{codec.ReasonMalformed, codec.ReasonDuplicateID, codec.ReasonLate, codec.ReasonDuplicate, codec.ReasonOrphan, codec.ReasonMismatch}

const (
	malformed reasons = 1 << iota
	duplicateID
	late
	duplicate
	orphan
	mismatch

	again = late | duplicate | orphan // of a repeated reject, whatever the first one was
)

func (s reasons) String() string {
	text := ""
	for i, name := range rejectReasons {
		if s&(1<<i) != 0 {
			if text != "" {
				text += " or "
			}
			text += name
		}
	}
	if text == "" {
		return "no reject"
	}
	return "rejected: " + text
}

// readRejects reads all rejects.
func (v *verification) readRejects(ctx context.Context) error {
	c, err := v.openCursor(ctx, v.topics.Rejects, 0)
	if err != nil {
		return err
	}
	defer c.close()
	x := &rejectIndex{c: c, lossy: v.losses.any(), seed: maphash.MakeSeed(), all: map[rejectKey]*rejectInfo{}}
	v.rejects = x
	x.since = math.MaxInt64
	for {
		r, err := c.head(ctx)
		if err != nil || r == nil {
			return err
		}
		x.since = min(x.since, r.Time)
		v.losses.kept(r.Time)
		if r.Type == "" {
			v.report.Rejects.Records++
			if err := v.addReject(r); err != nil {
				return err
			}
		} else if r.Type != codec.TypeOpen {
			v.differ(at(c, r, "type", "data", r.Type))
		}
		c.take()
	}
}

func (v *verification) addReject(r *stream.Record) error {
	x := v.rejects
	rej, err := codec.ParseReject(r.Value)
	if err != nil {
		return v.unread(x.c, r, "bytes", "a reject", err, 0)
	}
	key := rejectKey{rej.Topic == outcomesTopic, rej.Partition, rej.Offset}
	info := rejectInfo{offset: r.Offset, time: r.Time, of: rej.Time, bytes: maphash.Bytes(x.seed, rej.Bytes), id: maphash.String(x.seed, rej.ID)}
	if rej.Size > 0 {
		info.kept, info.size = len(rej.Bytes), rej.Size
	}
	info.reason = uint8(slices.Index(rejectReasons, rej.Reason))
	wantKey := ""
	if key.outcomes {
		wantKey = rej.ID
	}
	switch {
	case rej.Topic != contextsTopic && rej.Topic != outcomesTopic:
		v.differ(at(x.c, r, "topic", "contexts or outcomes", rej.Topic))
	case rej.Partition < 0:
		v.differ(at(x.c, r, "partition", "0 or more", rej.Partition))
	case int(info.reason) >= len(rejectReasons):
		v.differ(at(x.c, r, "reason", "a reason", rej.Reason))
	case string(r.Key) != wantKey:
		v.differ(at(x.c, r, "key", wantKey, string(r.Key)))
	}
	was := x.all[key]
	if v.replays && key.outcomes && rej.Partition < v.partitions {
		if was == nil {
			x.all[key] = &rejectInfo{met: true}
			v.late.AddReject(&rej)
		}
		return nil // compared with what follows from the cuts
	}
	for was != nil && was.of != info.of && v.losses.any() {
		was = was.next
	}
	if was == nil {
		info.next = x.all[key]
	} else {
		// At least once: the first reject counts. A joiner that has restarted may no
		// longer know more of a round than that it is over, or that it was lost, and
		// come to another reason.
		if key.outcomes {
			info.reason = was.reason
		}
		field, want, got := firstUnequal([]pair{{"time", was.of, info.of}, {"reason", was.reasons(), info.reasons()},
			{"id", was.id, info.id}, {"bytes", was.bytes, info.bytes}})
		if field != "" {
			v.differ(at(x.c, r, field, want+", as at offset "+i64(was.offset), got).in(0, rej.ID))
		}
		return nil
	}
	x.all[key] = &info
	if key.outcomes {
		v.late.AddReject(&rej)
	}
	return nil
}

// reject returns the reject of a record, of a log time, and notes that the record was
// met. Where others had its place there may be rejects of those too.
func (x *rejectIndex) reject(key rejectKey, logTime int64) *rejectInfo {
	x.mu.Lock()
	defer x.mu.Unlock()
	info := x.all[key]
	for info != nil && info.of != logTime && x.lossy {
		info = info.next
	}
	if info != nil {
		info.met = true
	}
	return info
}

// dropped reports whether the reject of a record may be gone: it came later than
// the record.
func (x *rejectIndex) dropped(logTime int64) bool { return x.c.cut() && logTime <= x.since }

// reasons returns the reason as a set.
func (i *rejectInfo) reasons() reasons { return 1 << i.reason }

// unread reports whether a reject is one of somebody who could not read the outcome.
func (x *rejectIndex) unread(info *rejectInfo) bool {
	return info.reasons() == malformed && info.id == maphash.String(x.seed, "")
}

// checkReject compares a reject with the record it tells of. logTime is that
// record's log time as a reject has it.
func (v *verification) checkReject(info *rejectInfo, r *stream.Record, logTime int64, id string) {
	x := v.rejects
	v.count(&v.report.Rejects, Tally{Checked: 1})
	info.repeat = x.dropped(r.Time) || v.losses.between(r.Time, info.time)
	if info.of != logTime {
		v.wrongReject(info, id, "time", i64(logTime), i64(info.of))
	}
	if !x.tells(info, r.Value) {
		v.wrongReject(info, id, "bytes", "the bytes of the record at offset "+i64(r.Offset), "others")
	}
	if info.id != maphash.String(x.seed, id) {
		v.wrongReject(info, id, "id", strconv.Quote(id), "another")
	}
}

// tells reports whether a reject has the bytes of a record, or as many as fit.
func (x *rejectIndex) tells(info *rejectInfo, record []byte) bool {
	if info.size > 0 {
		if info.size != len(record) || info.kept < codec.MaxRejectBytes || info.kept >= info.size {
			return false
		}
		record = record[:info.kept]
	}
	return info.bytes == maphash.Bytes(x.seed, record)
}

// checkReason checks the reason of a reject.
func (v *verification) checkReason(info *rejectInfo, id string, want reasons) {
	if info.repeat && want != 0 {
		want |= again
	}
	if want&info.reasons() == 0 {
		v.wrongReject(info, id, "reason", want.String(), info.reasons().String())
	}
}

func (v *verification) wrongReject(info *rejectInfo, id, field, want, got string) {
	d := Difference{Topic: v.rejects.c.topic, Offset: info.offset, Time: info.time, Field: field, Want: want, Got: got}
	v.differ(d.in(0, id))
}

// finishRejects looks for rejects of records that do not exist.
func (v *verification) finishRejects(d *decisionCheck, f fates) {
	x := v.rejects
	var logs [2][]*logCursor // contexts, outcomes
	for p := range v.partitions {
		logs[0], logs[1] = append(logs[0], d.lanes[p].contexts), append(logs[1], f.outcomes(p))
	}
	for key, info := range x.all {
		topic, list := contextsTopic, logs[0]
		if key.outcomes {
			topic, list = outcomesTopic, logs[1]
		}
		for ; info != nil; info = info.next {
			if info.met {
				continue
			}
			c := v.surplus[rejectKey{key.outcomes, key.partition, 0}] // nil: the partition is the model's, or there is none
			if key.partition >= 0 && key.partition < len(list) {
				c = list[key.partition]
			}
			if c != nil && (key.offset < c.first || c.lost(key.offset, info.time)) {
				v.report.Rejects.TooOld++
				continue
			}
			v.differ(Difference{Topic: x.c.topic, Offset: info.offset, Time: info.time, Field: "offset",
				Want: "a record of " + topic, Got: "no record at partition " + strconv.Itoa(key.partition) + ", offset " + i64(key.offset)})
		}
	}
}
