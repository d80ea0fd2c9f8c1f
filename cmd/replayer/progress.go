package main

import (
	"io"
	"sync/atomic"
	"time"

	"github.com/schollz/progressbar/v3"

	"hindsight/internal/daemon"
)

// progress shows how far a run is. It is safe for concurrent use.
type progress struct {
	bar  *progressbar.ProgressBar
	done atomic.Int64
}

// newProgress returns a bar over a number of rounds, drawn on w, unless that is a file, a
// pipe or a log of lines: there each look at the bar would be one more line of a log.
func newProgress(w io.Writer, total int64, what string) *progress {
	_, terminal := screen(w)
	_, lines := w.(*daemon.Lines)
	return &progress{bar: progressbar.NewOptions64(total, progressbar.OptionSetWriter(w),
		progressbar.OptionSetVisibility(terminal || !lines && daemon.File(w) == nil),
		progressbar.OptionSetDescription(what), progressbar.OptionSetWidth(30),
		progressbar.OptionThrottle(200*time.Millisecond), progressbar.OptionShowCount(), progressbar.OptionShowIts(),
		progressbar.OptionSetItsString("rounds"), progressbar.OptionSetPredictTime(true),
		progressbar.OptionClearOnFinish(), progressbar.OptionUseANSICodes(false),
	)}
}

func (p *progress) add(n int64) { _ = p.bar.Set64(p.done.Add(n)) }

// steps returns a function that takes how far one of the runs of the bar is.
func (p *progress) steps() func(done int) {
	last := 0
	return func(done int) {
		p.add(int64(done - last))
		last = done
	}
}

func (p *progress) finish() { _ = p.bar.Finish() }

// clear takes the bar off the line, for other text; the next add draws it again.
func (p *progress) clear() { _ = p.bar.Clear() }
