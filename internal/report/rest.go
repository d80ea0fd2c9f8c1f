package report

import (
	"fmt"
	"math"

	"hindsight/internal/dataset"
	"hindsight/internal/style"
	"hindsight/internal/words"
)

var nan = math.NaN()

// facts is a table of names and values.
func facts(caption string) *table {
	return &table{Caption: caption, Columns: []column{{Name: "what", Text: true}, {Name: "how many"},
		{Name: "", Text: true}}}
}

// intake is the part on what was read.
func (b *builder) intake() section {
	s := section{ID: "intake", Title: "What was read"}
	if in := b.Intake; in != nil && in.Read > 0 {
		s.say("Every record has one class: read = events + duplicates + dangling + skipped + malformed.")
		t := facts("Records of the log (" + in.Format + ")")
		t.row("read", words.Count(in.Read), fmt.Sprintf("%s bytes; files: %d", words.Count(in.Bytes), in.Files))
		t.row("events", words.Count(in.Events), words.Percent(float64(in.Events)/float64(in.Read)))
		t.row("duplicates", words.Count(in.Duplicates), "repeats of an event or of an observation")
		t.row("dangling", words.Count(in.Dangling), fmt.Sprintf("observations in a record of their own: %s joined, %s "+
			"without an event", words.Count(in.Joined), words.Count(in.Unmatched)))
		t.row("skipped", words.Count(in.Skipped), "valid, but not usable for learning")
		for _, text := range in.ReasonTexts() {
			t.row("", "", text)
		}
		t.row("malformed", words.Count(in.Malformed), "not valid in this format")
		if in.Malformed > 0 {
			t.mark(warn)
		}
		for _, text := range in.Errors() {
			t.row("", "", text)
		}
		s.add(t)
	}
	d := b.Data
	if d == nil {
		return s
	}
	t := facts("Replayed rounds")
	t.row("rounds", words.Count(d.Rounds), "")
	t.row("with an outcome", words.Count(d.Observed), words.Percent(float64(d.Observed)/float64(max(d.Rounds, 1))))
	if in := b.Intake; in != nil {
		t.intake(in)
	}
	t.row("actions", words.Count(int64(d.Actions)), "")
	t.row("columns of features", words.Count(int64(d.Columns)), "after expansion, with the constant")
	if d.First != nil {
		t.row("from", "", d.First.Format("2006-01-02 15:04:05 UTC"))
		t.row("to", "", d.Last.Format("2006-01-02 15:04:05 UTC"))
	}
	if d.Truth {
		t.row(b.rewards().Of()+" of every action", "known", "regret is exact")
	} else {
		t.row(b.rewards().Of()+" of every action", "not known", "only that of the recorded action")
	}
	s.add(t)
	return s
}

// intake adds what a log told of its events, where it told anything.
func (t *table) intake(in *dataset.Intake) {
	add := func(what string, n int64, means string) {
		if n > 0 {
			t.row(what, words.Count(n), means)
		}
	}
	add("without an outcome", in.Defaulted, "the log names the default value to use")
	add("stand for several", in.Weighted, "pdrop: similar events were dropped from the log; estimates count these in "+
		"their place")
	add("name a baseline", in.Baselines, "the action that would have been played without a learner: --policy "+
		"baseline judges it")
	add("activated later", in.Activated, "deferred at first, then activated by an observation")
	add("withdrawn", in.Withdrawn, "never shown, so they are not rounds")
	add("without a propensity", in.Unpropensed, "so policies cannot be judged")
}

// contexts is the part on where learners do badly.
func (b *builder) contexts() section {
	s := section{ID: "contexts", Title: "Worst contexts"}
	found := false
	for i := range b.Runs {
		r := &b.Runs[i]
		w := r.Contexts
		if w == nil {
			continue
		}
		found = true
		what, shown := w.Of, r.Rewards // of rewards the regret is not known
		each, above, part := what+" a round", "above the rest", "share of all "+what
		if shown != nil {
			what = shown.Of()
			each, above, part = what+" a round", "below the rest", "share of all missed reward"
		}
		if len(w.Worst) == 0 {
			s.add(note(fmt.Sprintf("%s, delays %s: no context of %s rounds or more is worse than the others.",
				r.Learner, r.Delays.Spec, words.Count(w.MinRounds))))
			continue
		}
		t := &table{Caption: "Where " + r.Learner + " did worst (delays " + r.Delays.Spec + ")",
			Columns: []column{{Name: "context", Text: true}, {Name: "rounds"}, {Name: "share", Means: "of all rounds"},
				{Name: each}, {Name: above, Means: "± the standard error of the difference"},
				{Name: part, Means: "of its sum over all rounds"}}}
		clear := 0
		for _, g := range w.Worst {
			t.row(g.Context, words.Count(g.Rounds), words.Percent(g.Share), mean{g.Mean, g.SE}.shown(shown).String(),
				mean{g.Above, g.AboveSE}.length(shown).String(), words.Percent(float64(g.Part)))
			if g.Above > 2*g.AboveSE {
				clear++
			}
		}
		s.add(t, note(fmt.Sprintf("A group is all rounds with the same value of one feature. Of %s groups, the table "+
			"has those furthest %s the mean of all rounds (%s a round: %s). %d of these %d are %s it by more than "+
			"two standard errors; about %s of all groups would be by chance. Groups of fewer than %s rounds (%d) are "+
			"left out.",
			words.Count(int64(w.Groups)), shown.Beyond(), what, words.Digits(shown.Shown(float64(w.Mean))), clear,
			len(w.Worst),
			shown.Beyond(), words.Count(int64(math.Ceil(.025*float64(w.Groups)))), words.Count(w.MinRounds), w.Small)))
	}
	if !found {
		if len(b.Runs) == 0 {
			s.say("No learner was played; --learner names one.")
		} else {
			s.say("The contexts have no features, so they cannot be compared.")
		}
	}
	return s
}

// parameters is the part that says how to make the report again.
func (b *builder) parameters() section {
	s := section{ID: "parameters", Title: "Parameters"}
	p := b.Parameters
	if p == nil {
		return s
	}
	s.say("The same command on the same inputs gives the same figures, except speeds. --json and --csv have the " +
		"figures of this page with all digits.")
	t := &table{Caption: "How this report was made", Columns: []column{{Name: "what", Text: true},
		{Name: "value", Text: true}}}
	t.row("command", "replayer "+p.Command)
	t.row("version", p.Version)
	t.row("seed", fmt.Sprint(p.Seed))
	t.row("made", p.Made.UTC().Format("2006-01-02 15:04:05 UTC"))
	if len(b.Runs) > 0 {
		t.row("window", b.Runs[0].Window)
	}
	t.row("charts", style.Library+", SHA-256 of its script "+style.LibrarySHA256)
	s.add(t)
	files := &table{Caption: "Inputs", Columns: []column{{Name: "role", Text: true}, {Name: "file", Text: true},
		{Name: "bytes"}, {Name: "SHA-256", Text: true}}}
	for _, in := range p.Inputs {
		files.row(in.Role, in.Name, words.Count(in.Bytes), in.SHA256)
	}
	switch {
	case len(p.Inputs) > 0:
	case b.Intake != nil:
		s.add(note("No file was read: the log came from standard input or from topics, which have no checksum."))
	default:
		s.add(note("No file was read: the environment is built in."))
	}
	s.add(files)
	return s
}
