package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hindsight/internal/join"
	"hindsight/internal/latelosses"
	"hindsight/pkg/stream/kafkatest"
)

// onBroker plays to a real broker, one injection after the other, each to topics of its
// own.
type onBroker struct {
	t       *testing.T
	cluster *kafkatest.Cluster
	rounds  int
}

// regretWindow is the window in rounds of all partitions together: as long in log time
// for any number of them.
const regretWindow = 200

// args are those of an injection, but for its log, and of a backtest of the same.
func (o *onBroker) args(seed int) []string {
	return []string{"--env", "sigmoid", "--rounds", fmt.Sprint(o.rounds), "--delays", "exp:40", "--json", "--seed",
		fmt.Sprint(seed)}
}

// regret plays a seed, has the logs verified as inject does and by verify, and returns the
// regret.
func (o *onBroker) regret(partitions, seed int) float64 {
	t := o.t
	t.Helper()
	topics := join.TopicsOf(modelName)
	for _, topic := range []string{topics.Contexts, topics.Decisions, topics.Outcomes, topics.Feedback,
		topics.Snapshots, topics.Rejects} {
		o.cluster.DeleteTopic(topic)
	}
	log := []string{"--log", "kafka://" + strings.Join(o.cluster.Brokers(), ","), "--seed-file",
		filepath.Join(t.TempDir(), "seed")}
	args := append([]string{"inject", "--window", fmt.Sprint(regretWindow / partitions), "--partitions",
		fmt.Sprint(partitions)}, log...)
	played := object(t, append(args, o.args(seed)...)...)
	if rounds := number(t, played, "rounds"); rounds != float64(o.rounds) {
		t.Errorf("seed %d, P = %d: %v rounds of %d", seed, partitions, rounds, o.rounds)
	}
	if got := execute(t.Context(), append([]string{"verify", "--name", "replay"}, log...)...); got.code != 0 ||
		!strings.Contains(got.stdout, "identical") {
		t.Errorf("seed %d, P = %d: verify: exit code %d\n%s%s", seed, partitions, got.code, got.stdout, got.stderr)
	}
	return number(t, played, "regret")
}

// backtested returns the regret of a backtest.
func (o *onBroker) backtested(seed int) float64 {
	o.t.Helper()
	runs := object(o.t, append([]string{"backtest", "--window", fmt.Sprint(regretWindow)},
		o.args(seed)...)...)["runs"].([]any)
	return number(o.t, runs[0].(map[string]any), "regret")
}

// TestKafkaRealRegretOfPartitions plays the same contexts, losses and delays on four
// partitions of a real broker and on one, by replayer inject: since all deciders learn
// from one feedback log, more partitions cost no regret. On one it is that of the backtest to
// the bit.
func TestKafkaRealRegretOfPartitions(t *testing.T) {
	kafkatest.Heavy(t)
	seeds, o := 1, &onBroker{t: t, cluster: kafkatest.Shared(t), rounds: 300}
	if os.Getenv("HINDSIGHT_LONG") != "" {
		seeds, o.rounds = 20, 2000
	}
	var one, four, paired latelosses.Moments
	for seed := 1; seed <= seeds; seed++ {
		a, b := o.regret(1, seed), o.regret(4, seed)
		if want := o.backtested(seed); a != want {
			t.Errorf("seed %d: regret %v at P = 1, in the backtest %v", seed, a, want)
		}
		t.Logf("seed %d: regret %.2f at P = 1, %.2f at P = 4", seed, a, b)
		one.Add(a)
		four.Add(b)
		paired.Add(b - a)
	}
	if seeds == 1 {
		return
	}
	se := math.Hypot(one.SE(), four.SE())
	t.Logf("%d seeds of %d rounds: regret %.2f ± %.2f at P = 1, %.2f ± %.2f at P = 4; difference %.2f, 2 se of it "+
		"%.2f; seed by seed %.2f ± %.2f",
		seeds, o.rounds, one.Mean(), one.SE(), four.Mean(), four.SE(), four.Mean()-one.Mean(), 2*se, paired.Mean(),
		paired.SE())
	if !(math.Abs(four.Mean()-one.Mean()) <= 2*se) {
		t.Errorf("regret %.2f at P = 4, %.2f at P = 1: more than two standard errors apart", four.Mean(), one.Mean())
	}
}
