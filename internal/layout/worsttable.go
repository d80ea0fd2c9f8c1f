package layout

import (
	"fmt"
	"io"
	"math"

	"hindsight/internal/replay"
	"hindsight/internal/words"
)

// WriteWorst writes the report of a search for people, at most 80 columns wide.
func WriteWorst(w io.Writer, r *replay.WorstReport) error {
	t := table{right: true}
	t.row("delays", "by search", "by fresh draws", "skipped", "D/T in→out")
	for _, row := range append(append([]*replay.WorstRow{r.None, r.Random}, r.Plans...), r.Found) {
		cells := []string{row.Name, "", "", "", ""}
		if row.Search != nil {
			cells[1] = words.Digits(*row.Search)
		}
		if row.Fresh != nil {
			cells[2] = words.Digits(*row.Fresh)
			if row.FreshSE != nil {
				cells[2] += " ± " + words.Figure(*row.FreshSE, 2)
			}
			cells[3] = words.Percent(row.Skipped)
			cells[4] = words.Figure(row.Delays.Raw.Mean, 3) + "→" + words.Figure(row.Delays.Released.Mean, 3)
		}
		t.row(cells...)
	}
	if err := t.write(w, 80); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n"+wrap(found(r), 80, 0)+"\n")
	return err
}

// found says what was found.
func found(r *replay.WorstReport) string {
	text := fmt.Sprintf("The %s of %s over %s rounds of %s, window %s, under delays that sum to %s, none above %s. The "+
		"search tried %s sequences, each with the same %d draws; %d of its %d steps found worse. ",
		r.Of, r.Learner, words.Count(int64(r.Rounds)), r.Environment, r.Window, words.Count(r.Total), words.Count(r.Max),
		words.Count(int64(r.Tried)), r.Draws, r.Better, r.Steps)
	worst, random := *r.Found.Fresh, *r.Random.Fresh
	se := math.Hypot(orZero(r.Found.FreshSE), orZero(r.Random.FreshSE))
	switch {
	case worst > random+2*se && random > 0:
		text += fmt.Sprintf("By %d fresh draws what it found costs %.2f × as much as random delays of the same total. ",
			replay.FreshDraws, worst/random)
	case worst > random+2*se:
		text += fmt.Sprintf("By %d fresh draws what it found costs more than random delays of the same total. ", replay.FreshDraws)
	default:
		text += fmt.Sprintf("By %d fresh draws it is not worse than random delays by more than two standard errors: the "+
			"learner does not mind when these delays come, or the search was too short (--steps, --draws). ", replay.FreshDraws)
	}
	return text + fmt.Sprintf("The true worst case is at least as bad. Play it again: --delays recorded:%s", r.File)
}

func orZero(x *float64) float64 {
	if x == nil {
		return 0
	}
	return *x
}
