package oracle

import (
	"fmt"
	"math"
)

// mostActions returns how many actions o may learn. In version 1 they fit in 1 GiB with all columns that o allows, of
// which bytes tells the memory; since version 2 [Linear.full] says when there is no room, by the columns seen.
func mostActions(name string, o *LinearOptions, bytes func(k int) float64) (int, error) {
	if o.Version > 1 {
		if o.MaxActions == 0 {
			return math.MaxInt32, nil
		}
		return o.MaxActions, nil
	}
	fit := int(maxLinearBytes / bytes(1))
	if o.MaxActions > fit {
		return 0, fmt.Errorf("%s: %d actions with %d features and %d random ones need %.1f GiB, more than 1: lower "+
			"max_actions, max_features or fourier",
			name, o.MaxActions, o.MaxFeatures, o.Fourier, bytes(o.MaxActions)/maxLinearBytes)
	}
	if o.MaxActions == 0 {
		return max(fit, 1), nil
	}
	return o.MaxActions, nil
}

// bytes returns the memory of the matrices of k actions with d columns, the constant
// included. Random features of an aggregate that follow what comes take at most 5 MB more.
func (o *Linear) bytes(k, d int) float64 {
	if o.aggregated {
		return AggregateBytes(k, d, max(o.o.Fourier, 0), o.places)
	}
	return LinearBytes(k, d+o.o.Fourier)
}

// full reports whether no further action can be learned.
func (o *Linear) full() bool {
	k := len(o.actions)
	return k == o.maxActions || o.version > 1 && o.bytes(k+1, len(o.cols)) > o.room
}

// size lets β, λ and the limit of columns follow the actions and columns learned. They are
// functions of their numbers, which only grow, so that a restored oracle has them too.
func (o *Linear) size() {
	if o.version == 1 {
		return
	}
	k, d := len(o.actions), len(o.cols)
	for o.most >= d && o.bytes(k, o.most+1) > o.room {
		o.most--
	}
	if !o.aggregated {
		d += o.o.Fourier
	}
	if o.o.Beta == ByWhatComes && !o.sober {
		o.beta = AutoBeta(k, d)
	}
	if o.o.Lambda == ByWhatComes {
		o.lambda = AutoLambda(d)
	}
}

// size is that of core 1, with the other cores: random features go for good once an update of them would cost too much.
func (o *Aggregate) size() {
	if o.lin.version == 1 {
		return
	}
	d := max(len(o.lin.cols), o.o.Columns)
	o.lambda = [...]float64{AutoLambda(d), AutoLambda(d), AutoLambda(d + len(o.fourier.phase))}
	if o.o.Fourier == ByWhatComes && o.members == mostMembers && AutoFourier(len(o.lin.actions), len(o.lin.cols)) == 0 {
		o.dropRandom()
	}
}

// dropRandom ends core 3; its weight goes to the others.
func (o *Aggregate) dropRandom() {
	o.members = mostMembers - 1
	sum := o.q[0] + o.q[1] + o.q[wideMember]
	o.q = [...]float64{o.q[0] / sum, o.q[1] / sum, 0, o.q[wideMember] / sum}
	o.lost[2] = 0
	o.fourier, o.phi = fourier{}, nil
	for i := range o.fadings {
		o.fadings[i].random = fading{}
	}
}

// Lost returns the sum of the losses fed, each in [0,1].
func (o *Linear) Lost() float64 { return o.sumLoss }

// Lost returns the sum of the losses fed, each in [0,1].
func (o *Aggregate) Lost() float64 { return o.lin.sumLoss }
