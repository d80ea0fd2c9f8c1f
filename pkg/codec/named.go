package codec

// The keys of records that only models with named outcomes or budgets have. Maps of names keep the order of the
// bytes; the programs write them in the order of the names.

func appendValues(dst []byte, values []Value) []byte {
	dst = appendMap(dst, len(values))
	for i := range values {
		if dst = appendText(dst, values[i].Name); values[i].Withdrawn {
			dst = append(dst, mpNil)
		} else {
			dst = appendFloat(dst, values[i].X)
		}
	}
	return dst
}

// values reads named outcomes and appends them; null is none.
func (r *reader) values(dst []Value) []Value {
	if r.null() {
		return dst
	}
	s := r.entries()
	for r.entry(&s) {
		v := Value{Name: s.key}
		if v.Withdrawn = r.null(); !v.Withdrawn {
			v.X = r.finite()
		}
		if dst = append(dst, v); len(dst) > MaxOutcomes {
			r.fail(errManyOutcomes)
		}
	}
	return dst
}

func checkValues(values []Value, named bool) (string, error) {
	if named != (len(values) > 0) {
		return "outcomes", errNamed
	}
	if len(values) > MaxOutcomes {
		return "outcomes", errManyOutcomes
	}
	for i := range values {
		v := &values[i]
		if err := checkName(v.Name, MaxNameBytes); err != nil {
			return "outcomes." + label(v.Name), err
		}
		if !finite(v.X) {
			return "outcomes." + label(v.Name), errNotFinite
		}
		if v.Withdrawn && v.X != 0 {
			return "outcomes." + label(v.Name), errValueless
		}
	}
	if i := Repeated(len(values), func(i int) string { return values[i].Name }); i != -1 {
		return "outcomes." + label(values[i].Name), errDuplicate
	}
	return "", nil
}

// closedKeys are the keys of what became of an outcome, but for "stage". All must be there.
var closedKeys = []string{"fate", "value", "partition", "offset", "closed_at"}

func appendClosed(dst []byte, closed []Closed) []byte {
	dst = appendMap(dst, len(closed))
	for i := range closed {
		c := &closed[i]
		n := len(closedKeys)
		if c.Stage > 0 {
			n++
		}
		dst = appendMap(appendText(dst, c.Name), n)
		dst = appendText(appendKey(dst, "fate"), c.Fate.name())
		dst = appendFloat(appendKey(dst, "value"), c.Value)
		dst = appendInt(appendKey(dst, "partition"), int64(c.Partition))
		dst = appendInt(appendKey(dst, "offset"), c.Offset)
		if dst = appendInt(appendKey(dst, "closed_at"), c.ClosedAt); c.Stage > 0 {
			dst = appendInt(appendKey(dst, "stage"), int64(c.Stage))
		}
	}
	return dst
}

// closed reads what became of outcomes and appends it.
func (r *reader) closed(dst []Closed) []Closed {
	s := r.entries()
	for r.entry(&s) {
		c := Closed{Name: s.key}
		r.closedOne(&c)
		if dst = append(dst, c); len(dst) > MaxOutcomes {
			r.fail(errManyOutcomes)
		}
	}
	return dst
}

func (r *reader) closedOne(c *Closed) {
	var seen uint32
	s := r.entries()
	for r.entry(&s) {
		switch s.key {
		case "fate":
			c.Fate = r.once(&seen, 0).fate()
		case "value":
			c.Value = r.once(&seen, 1).float()
		case "partition":
			c.Partition = r.once(&seen, 2).small()
		case "offset":
			c.Offset = r.once(&seen, 3).int()
		case "closed_at":
			c.ClosedAt = r.once(&seen, 4).int()
		case "stage":
			c.Stage = r.once(&seen, 5).small()
		default:
			r.skip()
		}
	}
	r.require(seen, closedKeys)
}

func checkClosed(closed []Closed, stage int) (string, error) {
	if len(closed) > MaxOutcomes {
		return "outcomes", errManyOutcomes
	}
	for i := range closed {
		c := &closed[i]
		err := checkName(c.Name, MaxNameBytes)
		switch {
		case err != nil:
		case i > 0 && closed[i-1].Name >= c.Name:
			err = errOrder
		case c.Fate < Observed || c.Fate > WithdrawnRound:
			err = errUnknown
		case !finite(c.Value):
			err = errNotFinite
		case c.Value != 0 && c.Fate != Observed && c.Fate != Imputed:
			err = errNoLoss
		case c.Partition < -1 || c.Offset < -1:
			err = errSource
		case (c.Partition < 0) != (c.Offset < 0):
			err = errHalfOutcome
		case c.Fate == Observed && c.Offset < 0:
			err = errNoOutcome
		case c.ClosedAt < 0:
			err = errNegative
		case c.Stage < 0 || stage > 0 && c.Stage > 0:
			err = errStage
		}
		if err != nil {
			return "outcomes." + label(c.Name), err
		}
	}
	return "", nil
}

func appendPrices(dst []byte, prices []Price) []byte {
	dst = appendMap(dst, len(prices))
	for i := range prices {
		dst = appendFloat(appendText(dst, prices[i].Name), prices[i].X)
	}
	return dst
}

// prices reads prices and appends them.
func (r *reader) prices(dst []Price) []Price {
	s := r.entries()
	for r.entry(&s) {
		if dst = append(dst, Price{Name: s.key, X: r.float()}); len(dst) > MaxOutcomes {
			r.fail(errManyOutcomes)
		}
	}
	return dst
}

func checkPrices(prices []Price) (string, error) {
	if len(prices) > MaxOutcomes {
		return "prices", errManyOutcomes
	}
	for i := range prices {
		p := &prices[i]
		err := checkName(p.Name, MaxNameBytes)
		switch {
		case err != nil:
		case i > 0 && prices[i-1].Name >= p.Name:
			err = errOrder
		case !finite(p.X):
			err = errNotFinite
		case p.X < 0:
			err = errNegative
		}
		if err != nil {
			return "prices." + label(p.Name), err
		}
	}
	return "", nil
}
