package oracle

// Lost returns the sum of the losses fed, each in [0,1].
func (o *Linear) Lost() float64 { return o.sumLoss }

// Lost returns the sum of the losses fed, each in [0,1].
func (o *Aggregate) Lost() float64 { return o.lin.sumLoss }
