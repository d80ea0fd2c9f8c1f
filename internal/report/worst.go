package report

import (
	"fmt"
	"math"

	"hindsight/internal/replay"
	"hindsight/internal/words"
)

// Worst makes the page of a search for the worst delays for a terminal.
func Worst(r *replay.WorstReport) *Page {
	t := headed(2, "delays", "by search", "by fresh draws", "skipped", "D/T in→out")
	for _, row := range append(append([]*replay.WorstRow{r.None, r.Random}, r.Plans...), r.Found) {
		cells := []string{row.Name, "", "", "", ""}
		if row.Search != nil {
			cells[1] = words.Digits(*row.Search)
		}
		if row.Fresh != nil {
			cells[2] = meanOfEstimate(&replay.Estimate{Value: *row.Fresh, SE: row.FreshSE}).text()
			cells[3] = words.Percent(row.Skipped)
			cells[4] = inOut(row.Delays.Raw.Mean, row.Delays.Released.Mean)
		}
		t.row(cells...)
	}
	return brief(t, note(worstLegend(r)))
}

// worstLegend says what was found.
func worstLegend(r *replay.WorstReport) string {
	text := fmt.Sprintf("The %s of %s over %s rounds of %s, window %s, under delays that sum to %s, none above %s. "+
		"The search tried %s sequences, each with the same %d draws; %d of its %d steps found worse. ",
		r.Of, r.Learner, words.Count(int64(r.Rounds)), r.Environment, r.Window, words.Count(r.Total),
		words.Count(r.Max),
		words.Count(int64(r.Tried)), r.Draws, r.Better, r.Steps)
	found, random := *r.Found.Fresh, *r.Random.Fresh
	se := math.Hypot(orZero(r.Found.FreshSE), orZero(r.Random.FreshSE))
	switch {
	case found > random+2*se && random > 0:
		text += fmt.Sprintf("By %d fresh draws what it found costs %.2f × as much as random delays of the same total. ",
			replay.FreshDraws, found/random)
	case found > random+2*se:
		text += fmt.Sprintf("By %d fresh draws what it found costs more than random delays of the same total. ",
			replay.FreshDraws)
	default:
		text += fmt.Sprintf("By %d fresh draws it is not worse than random delays by more than two standard errors: "+
			"the order of these delays does not hurt the learner, or the search was too short (--steps, --draws). "+
			"", replay.FreshDraws)
	}
	return text + fmt.Sprintf("The true worst case is at least as bad. Play it again: --delays recorded:%s", r.File)
}

func orZero(x *float64) float64 {
	if x == nil {
		return 0
	}
	return *x
}
