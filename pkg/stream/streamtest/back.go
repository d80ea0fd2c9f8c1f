package streamtest

import (
	"errors"
	"math"
	"slices"

	"hindsight/pkg/stream"
)

// testScanBack holds that a scan from the end passes each record once, in order inside a block,
// and stops where it is told.
func testScanBack(s *suite) {
	topic := s.create(1, stream.TopicOptions{})
	none := func(*stream.Record) error { return errors.New("a record of an empty partition") }
	s.check(stream.ScanBack(s.ctx, s.Log, topic, 0, math.MaxInt64, 4, none, func() bool { return false }))
	a := s.writer(topic, nil)
	defer a.Close()
	s.fill(a, "x", 60)
	all := s.all(topic)
	var want []int64
	for i := range all {
		want = append(want, all[i].Offset)
	}
	// back scans until it has passed an offset, and returns the blocks of records that f saw, the last first.
	back := func(end, until int64, f func(*stream.Record) error) (blocks [][]int64, err error) {
		var block []int64
		err = stream.ScanBack(s.ctx, s.Log, topic, 0, end, 4, func(r *stream.Record) error {
			block = append(block, r.Offset)
			return f(r)
		}, func() bool {
			blocks = append(blocks, block)
			block = nil
			return len(blocks[len(blocks)-1]) > 0 && blocks[len(blocks)-1][0] <= until
		})
		return blocks, err
	}
	ok := func(*stream.Record) error { return nil }
	inOrder := func(blocks [][]int64) []int64 {
		slices.Reverse(blocks)
		return slices.Concat(blocks...)
	}
	blocks, err := back(math.MaxInt64, -1, ok)
	s.check(err)
	if len(blocks) < 2 || len(blocks[0]) > 4 || !slices.Equal(inOrder(blocks), want) {
		s.Errorf("all of it: %v, want %v in blocks", blocks, want)
	}
	blocks, err = back(want[10], -1, ok)
	s.check(err)
	if got := inOrder(blocks); !slices.Equal(got, want[:10]) {
		s.Errorf("before offset %d: %v", want[10], got)
	}
	blocks, err = back(math.MaxInt64, want[50], ok)
	s.check(err)
	if got := inOrder(blocks); len(got) == len(want) || !slices.Equal(got, want[len(want)-len(got):]) {
		s.Errorf("as far as offset %d: %v", want[50], got)
	}
	blocks, err = back(math.MaxInt64, -1, func(*stream.Record) error { return stream.ErrStop })
	s.check(err)
	for _, b := range blocks {
		if len(b) > 1 {
			s.Errorf("records after ErrStop: %v", b)
		}
	}
	bad := errors.New("bad")
	_, err = back(math.MaxInt64, -1, func(r *stream.Record) error {
		if r.Offset == want[58] {
			return bad
		}
		return nil
	})
	var at *stream.Error
	if !errors.Is(err, bad) || !errors.As(err, &at) || at.Offset != want[58] || at.Topic != topic {
		s.Errorf("an error of the callee: %v", err)
	}
}
