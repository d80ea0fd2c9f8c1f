package service

import (
	"context"
	"strings"
	"testing"

	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/mem"
)

// lastDecisionMark returns the last mark in decisions.
func (v *visited) lastDecisionMark() (last codec.DecisionMark) {
	v.Helper()
	must(v.T, 0, stream.Scan(v.Context(), v.log, v.topics.Decisions, 0, stream.Earliest, 1<<40,
		func(r *stream.Record) (err error) {
			if r.Type == codec.TypeMark {
				last, err = codec.ParseDecisionMark(r.Value)
			}
			return err
		}))
	return last
}

// TestLostRejects: a decider that opens over rejects which have lost their tail, and have perhaps grown again,
// says of which contexts they were, once.
func TestLostRejects(t *testing.T) {
	for name, grown := range map[string]bool{"short": false, "grown again": true} {
		t.Run(name, func(t *testing.T) {
			log := mem.New(mem.Options{})
			v := newVisited(t, log)
			malformed := func() {
				v.write(v.topics.Contexts, stream.Record{Value: []byte("{")})
				v.next()
			}
			malformed()
			kept := v.lastDecisionMark()
			malformed()
			malformed()
			m := v.lastDecisionMark()
			if kept.Rejects == 0 || m.Rejects != kept.Rejects+2 || m.RejectsTo != 0 {
				t.Fatalf("%+v, %+v", kept, m)
			}
			must(t, 0, log.DropTail(v.topics.Rejects, 0, kept.Rejects))
			if grown {
				for range 3 {
					other := codec.Reject{Topic: "outcomes", Reason: codec.ReasonOrphan}
					v.write(v.topics.Rejects, stream.Record{Value: codec.AppendReject(nil, &other)})
				}
			}
			must(t, 0, v.reopenDecider())
			told := v.lastDecisionMark()
			if told.RejectsFrom != kept.ContextsThrough || told.RejectsTo != m.ContextsThrough ||
				told.Rejects != kept.Rejects {
				t.Errorf("the last mark before the loss is %+v, the first behind it %+v", m, told)
			}
			if !strings.Contains(v.told.String(), "lost their tails") {
				t.Errorf("no log line tells of the loss: %s", v.told.String())
			}
			v.told.Reset()
			must(t, 0, v.reopenDecider())
			if v.told.Len() > 0 || v.lastDecisionMark() != told {
				t.Errorf("the loss is told twice: %s%+v", v.told.String(), v.lastDecisionMark())
			}
			malformed()
			if again := v.lastDecisionMark(); again.Rejects <= kept.Rejects || again.RejectsTo > 0 {
				t.Errorf("behind it: %+v", again)
			}
		})
	}
}

// TestLostContextsAreTold: only their rejects tell of contexts that are gone and that no decision passes.
func TestLostContextsAreTold(t *testing.T) {
	log := mem.New(mem.Options{})
	v := newVisited(t, log)
	v.next()
	for range 3 {
		v.write(v.topics.Contexts, stream.Record{Value: []byte("{")})
	}
	must(t, 0, v.decide())
	must(t, 0, v.d.rejects.Flush(t.Context()))
	_, end, err := log.Bounds(t.Context(), v.topics.Contexts, 0)
	must(t, 0, err)
	through := v.d.heart.ContextsThrough()
	must(t, 0, v.reopenDecider())
	if m := v.lastDecisionMark(); m.ContextsLost > 0 {
		t.Errorf("all contexts are there: %+v", m)
	}
	must(t, 0, log.DropTail(v.topics.Contexts, 0, end-2))
	must(t, 0, v.reopenDecider())
	if m := v.lastDecisionMark(); m.ContextsLost != through || m.ContextsThrough != end-3 {
		t.Errorf("contexts before %d were rejected, before %d decided: %+v", through, end-3, m)
	}
	v.next()
}

// eagerLog drops a topic's records before an offset when it was first asked what is kept of them.
type eagerLog struct {
	*mem.Log
	topic  string
	before int64
}

func (l *eagerLog) Bounds(ctx context.Context, topic string, partition int) (first, next int64, err error) {
	first, next, err = l.Log.Bounds(ctx, topic, partition)
	if topic == l.topic && err == nil {
		l.topic = ""
		err = l.Truncate(topic, partition, l.before)
	}
	return first, next, err
}

// TestDroppedWhileSought: what retention drops while it is looked for is not lost.
func TestDroppedWhileSought(t *testing.T) {
	log := mem.New(mem.Options{})
	v := newVisited(t, log)
	v.next()
	through := v.d.heart.ContextsThrough()
	v.write(v.topics.Contexts, stream.Record{Value: []byte("{")})
	must(t, 0, v.decide())
	must(t, 0, v.d.rejects.Flush(t.Context()))
	v.d.heart.Pass(through)
	eager := &eagerLog{log, v.topics.Contexts, through + 1}
	v.d.cfg.Log = eager
	var m codec.DecisionMark
	if err := v.d.lostRefused(t.Context(), &m); err != nil || m.ContextsLost > 0 || eager.topic != "" {
		t.Errorf("a refused context: %v, lost before %d", err, m.ContextsLost)
	}
	_, end, err := log.Bounds(t.Context(), v.topics.Decisions, 0)
	must(t, 0, err)
	eager.topic, eager.before = v.topics.Decisions, end
	dropped, gone, err := (&claim{n: 1, offset: end - 1}).look(t.Context(), eager, v.topics.Decisions, 0)
	if err != nil || !dropped || gone {
		t.Errorf("a decision: dropped %v, gone %v, %v", dropped, gone, err)
	}
}
