package replay_test

import (
	"hindsight/internal/inject"
	"hindsight/internal/join"
	"hindsight/internal/replay"
	"hindsight/pkg/stream"
)

// injection is one round after the other, as the backtest plays them.
type injection struct{ inject.Injection }

func (in *injection) Note(partition int, through int64) { in.Learned.Note(partition, through) }

func (in *injection) Score(r *replay.Result) { in.Match.Score(r) }

func init() {
	replay.NewInjection = func(log stream.Log, name string, tr *replay.Trial, speed string) (replay.Injection, error) {
		x, err := inject.ParseSpeed(speed)
		if err != nil {
			return nil, err
		}
		pace, err := inject.NewPace(tr.Rounds, x)
		return &injection{inject.Injection{Log: log, Topics: join.TopicsOf(name), Rounds: tr.Rounds,
			Delays: tr.Delays, Lead: 1, Rules: tr.Model.Rules(), Learned: inject.NewLearned(1), Pace: pace}}, err
	}
}
