package replay

import (
	"testing"

	"hindsight/internal/model"
)

// lossOfOrders returns the mean loss over row orders in the order of release that the model
// names, under delays, with a window of 200 rounds.
func lossOfOrders(t *testing.T, env *Rounds, oracle, delay string, early bool, orders int) (loss, released float64) {
	t.Helper()
	for order := range orders {
		tr := trialOf(t, env, "dafa", "200", delay)
		useOracle(t, tr, env, oracle)
		tr.Model.Early = early
		tr.Rounds, tr.Order = Order(env, order, 1), order
		r, err := tr.Run(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		loss += *r.MeanLoss / float64(orders)
		released += r.Delays.Released.Mean / float64(orders)
	}
	return loss, released
}

// TestEarlyOrder holds that rounds decided early, learned as their outcomes come, save most of
// what waiting for the head of the line costs in a short run; without delay the order changes
// nothing.
func TestEarlyOrder(t *testing.T) {
	env := environment(t, "sigmoid", 1, 600)
	fifo, held := lossOfOrders(t, env, model.Linear, "lognormal:20,1.5", false, 4)
	early, sooner := lossOfOrders(t, env, model.Linear, "lognormal:20,1.5", true, 4)
	t.Logf("mean loss in order %.4f, early %.4f; mean delay as released %.0f, %.0f", fifo, early, held, sooner)
	if early > fifo-0.04 || sooner > 0.75*held {
		t.Errorf("mean loss in order %.4f, early %.4f; mean delay as released %.0f, %.0f", fifo, early, held, sooner)
	}
	a, _ := lossOfOrders(t, env, model.Linear, "none", false, 1)
	if b, _ := lossOfOrders(t, env, model.Linear, "none", true, 1); a != b {
		t.Errorf("without delay the mean loss is %v in order, %v early", a, b)
	}
}

// TestEarlyOrderOnSegment holds what delay costs on a small set.
func TestEarlyOrderOnSegment(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector has nothing to find in one goroutine")
	}
	env := sharedSet(t, "segment")
	loss, _ := lossOfOrders(t, env, model.Auto, "lognormal:20,1.5", true, 5)
	t.Logf("mean loss %.4f", loss)
	if loss > 0.18 {
		t.Errorf("segment under lognormal:20,1.5, window 200: mean loss %.4f, want at most 0.18", loss)
	}
}
