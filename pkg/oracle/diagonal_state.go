package oracle

import (
	"encoding/binary"
	"slices"
)

// AppendBinary implements [Regressor]. The first byte is the version of what is computed.
func (o *Diagonal) AppendBinary(b []byte) ([]byte, error) {
	b = appendFloats(append(b, byte(o.version)), []float64{o.o.Beta, o.o.Lambda})
	for _, v := range []int64{int64(o.o.Places), int64(o.most), o.fed, o.resets, o.strange, o.dropped,
		int64(len(o.cols) - 1), int64(len(o.names))} {
		b = binary.AppendUvarint(b, uint64(v))
	}
	b = appendFloats(b, []float64{o.sumLoss, o.regret})
	b = o.appendColumns(b, &o.watches)
	for _, name := range o.names {
		b = appendString(b, name)
	}
	return o.wide.append(b), nil
}

// UnmarshalBinary implements [Regressor].
func (o *Diagonal) UnmarshalBinary(b []byte) error {
	r := wireReader{b: b}
	switch v := r.byte(); {
	case v < 1 || v > Newest:
		return versionError("diagonal", v, Newest)
	case int(v) != o.version:
		return snapshotError("diagonal", "another version of what is computed")
	}
	if r.float() != o.o.Beta || r.float() != o.o.Lambda || r.int64() != int64(o.o.Places) ||
		r.int64() != int64(o.most) {
		return snapshotError("diagonal", "other parameters")
	}
	n := &Diagonal{features: o.features.fresh(), o: o.o, byAction: map[string]int32{}, beginning: o.beginning}
	n.fed, n.resets, n.strange, n.dropped = r.int64(), r.int64(), r.int64(), r.int64()
	columns, actions := r.count(4), r.count(1)
	n.sumLoss, n.regret = r.float(), r.float()
	if r.bad || columns > o.most || actions > o.o.MaxActions || n.fed == 0 && actions > 0 ||
		!(n.sumLoss >= 0 && n.sumLoss <= float64(n.fed)) || !(n.regret >= 0) {
		return snapshotError("diagonal", "damaged header")
	}
	if err := n.readColumns(&r, columns, &n.watches, n.fed, "diagonal"); err != nil {
		return err
	}
	for i := range actions {
		name := r.string()
		if _, twice := n.byAction[name]; twice || r.bad {
			return snapshotError("diagonal", "damaged action")
		}
		n.names, n.byAction[name] = append(n.names, name), int32(i)
	}
	wide, ok := o.wide.read(&r, columns+1)
	if !ok || len(wide.actions) != actions || len(r.b) != 0 {
		return snapshotError("diagonal", "damaged regression")
	}
	n.wide = wide
	for i, name := range n.names {
		n.wide.begin(int32(i), n.about[name])
	}
	*o = *n
	return nil
}

// append appends the weights of all regressions.
func (d *diagonals) append(b []byte) []byte {
	n := 16 * (len(d.own) + 8*len(d.actions))
	for i := range d.actions {
		n += 16 * (len(d.actions[i].cols) + len(d.actions[i].terms))
	}
	b = binary.AppendUvarint(slices.Grow(b, n), uint64(len(d.actions)))
	for i := range d.actions {
		b = appendWeights(appendWeights(b, d.actions[i].cols), d.actions[i].terms)
	}
	return appendWeights(b, d.own)
}

func appendWeights(b []byte, w []weight) []byte {
	b = binary.AppendUvarint(b, uint64(len(w)))
	for i := range w {
		b = appendFloat(appendFloat(b, w[i].w), w[i].v)
	}
	return b
}

// read reads regressions with these parameters, of at most so many columns.
func (d *diagonals) read(r *wireReader, columns int) (n diagonals, ok bool) {
	n = diagonals{places: d.places, lambda: d.lambda}
	n.actions = make([]diagonal, r.count(2))
	for i := range n.actions {
		a := &n.actions[i]
		if a.cols, ok = d.readWeights(r); !ok || len(a.cols) > columns {
			return n, false
		}
		if a.terms, ok = d.readPlaces(r); !ok {
			return n, false
		}
	}
	n.own, ok = d.readPlaces(r)
	return n, ok
}

func (d *diagonals) readPlaces(r *wireReader) (w []weight, ok bool) {
	w, ok = d.readWeights(r)
	return w, ok && (w == nil || len(w) == d.places)
}

func (d *diagonals) readWeights(r *wireReader) (w []weight, ok bool) {
	n := r.count(16)
	if n == 0 {
		return nil, !r.bad
	}
	w = make([]weight, n)
	for i := range w {
		w[i] = weight{r.float(), r.float()}
		if c := w[i]; c.w-c.w != 0 || !(c.v > 0 && c.v <= 1/d.lambda) {
			return nil, false
		}
	}
	return w, !r.bad
}
