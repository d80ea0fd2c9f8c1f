package nats

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"

	natsgo "github.com/nats-io/nats.go"

	"hindsight/pkg/stream"
)

// Fencing on replicated streams.
//
// A replicated stream checks the expected last message id only when it applies a record that it has agreed on, and
// nats-server 2.15 gives such a stream up for good after one mismatch ("unexpected error, can't continue"): a fenced
// owner would take the partition down with its late record. What it checks before it agrees on a record, with those on
// their way counted, is the expected last sequence. By itself that is no fence for an owner with several records on
// their way: after the next owner's open record its next but one has the right sequence by accident.
//
// So an Open of a replicated partition leaps: its open record comes as the last of an atomic batch, behind as many
// fillers as an owner may have records on their way. All sequences that the earlier owner expects lie before the end of
// the batch, and its late records are refused, each of them. Readers do not see the fillers: they are holes in the
// numbering.
//
// What this does not hold off is a foreign record, of a program that is no owner: it costs
// the owner its partition, and of the records on their way then one is refused and the
// next may be stored. Only the service may have the right to write there.

// leap is the number of fillers, and the most records that an owner of a replicated
// partition has on their way. It must never be less than in any earlier version.
const leap = replyTokens

const typeFill = "fill" // of a filler

// Headers of an atomic batch (ADR-50).
const (
	headerBatchID     = "Nats-Batch-Id"
	headerBatchSeq    = "Nats-Batch-Sequence"
	headerBatchCommit = "Nats-Batch-Commit"
)

// replicate prepares an appender of a replicated stream. There a refusal overtakes the
// acknowledgements of records before it, and the reply subject must tell whose it is.
func (a *appender) replicate(i *streamInfo) {
	if i.replicated() || i.Config.AllowAtomicPublish {
		a.replicated, a.window = true, min(a.log.o.Window, leap)
	}
}

// publishLeap appends fillers and the open record in one batch, and returns the sequence of that record.
func (l *Log) publishLeap(ctx context.Context, a *appender, i *streamInfo, o stream.OpenOptions,
	polite bool) (uint64, error) {
	if !i.Config.AllowAtomicPublish {
		return 0, fmt.Errorf("stream %s has %d replicas but does not allow atomic publishing, without which it has no "+
			"fence; allow it (allow_atomic, nats-server 2.12 or later), or make streams with --nats-replicas", a.stream,
			i.Config.Replicas)
	}
	last, err := openMessage(a, &o)
	if err != nil {
		return 0, err
	}
	id := rand.Text()
	for n := 1; n <= leap; n++ {
		m := &natsgo.Msg{Subject: a.subject, Header: natsgo.Header{stream.HeaderType: {typeFill}, headerBatchID: {id},
			headerBatchSeq: {strconv.Itoa(n)}}}
		if n == 1 && polite {
			m.Header[headerExpectedSeq] = []string{strconv.FormatUint(i.State.LastSeq, 10)}
		}
		if err := l.conn.PublishMsg(m); err != nil {
			return 0, fmt.Errorf("%w: %w", stream.ErrUnavailable, classify(err)) // without its end the batch is dropped
		}
	}
	last.Header[headerBatchID], last.Header[headerBatchSeq], last.Header[headerBatchCommit] = []string{id},
		[]string{strconv.Itoa(leap + 1)}, []string{"1"}
	reply, err := l.askOpen(ctx, last)
	if err != nil {
		return 0, err
	}
	return openedAt(reply)
}

// overtook notes a refusal that came before the acknowledgements of records before
// it. It reports whether m is one. ackMu is held.
func (a *appender) overtook(m *natsgo.Msg, next uint64) bool {
	if !a.replicated {
		return false
	}
	for seq, sent := next+1, a.sent.Load(); seq <= sent; seq++ {
		if m.Subject != a.replies[seq%replyTokens] {
			continue
		}
		p, err := parseAck(m.Data)
		if err != nil || p.Error == nil {
			return false
		}
		if a.refused == 0 || seq < a.refused {
			a.refused, a.refusal = seq, p.Error
		}
		return true
	}
	return false
}
