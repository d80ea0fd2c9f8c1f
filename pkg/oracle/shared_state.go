package oracle

import (
	"encoding/binary"
	"slices"
)

// AppendBinary implements [Regressor]. The first byte is the version of what is computed.
func (o *Shared) AppendBinary(b []byte) ([]byte, error) {
	b = append(b, byte(o.version), hybridByte(o.o.Hybrid))
	b = appendFloat(b, o.o.Beta)
	b = appendFloat(b, o.o.Lambda)
	for _, v := range []int64{int64(o.o.Hashed), int64(o.most), o.fed, o.resets, o.dropped, int64(len(o.cols) - 1)} {
		b = binary.AppendUvarint(b, uint64(v))
	}
	b = appendFloat(b, o.sumLoss)
	b = appendFloat(b, o.regret)
	b = o.appendColumns(b, &o.watches)
	b = slices.Grow(b, 8*(len(o.ridge.w)+len(o.ridge.p)))
	b = appendFloats(b, o.ridge.w)
	return appendFloats(b, o.ridge.p), nil
}

func hybridByte(hybrid bool) byte {
	if hybrid {
		return 1
	}
	return 0
}

// UnmarshalBinary implements [Regressor].
func (o *Shared) UnmarshalBinary(b []byte) error {
	r := wireReader{b: b}
	switch v := r.byte(); {
	case v < 1 || v > Newest:
		return versionError("shared", v, Newest)
	case int(v) != o.version:
		return snapshotError("shared", "another version of what is computed")
	}
	if r.byte() != hybridByte(o.o.Hybrid) || r.float() != o.o.Beta || r.float() != o.o.Lambda ||
		r.int64() != int64(o.o.Hashed) || r.int64() != int64(o.most) {
		return snapshotError("shared", "other parameters")
	}
	n := &Shared{features: o.features.fresh(), o: o.o, keys: []uint64{0}}
	n.fed, n.resets, n.dropped = r.int64(), r.int64(), r.int64()
	columns := r.count(4)
	n.sumLoss, n.regret = r.float(), r.float()
	if r.bad || columns > o.most || !(n.sumLoss >= 0 && n.sumLoss <= float64(n.fed)) {
		return snapshotError("shared", "damaged header")
	}
	if err := n.readColumns(&r, columns, &n.watches, n.fed, "shared"); err != nil {
		return err
	}
	if len(r.b) != 8*(o.o.Hashed+packedLen(o.o.Hashed)) {
		return snapshotError("shared", "wrong length")
	}
	n.ridge.grow(o.o.Hashed, o.o.Lambda)
	for _, dst := range [][]float64{n.ridge.w, n.ridge.p} { // any bits, as in Linear
		for i := range dst {
			dst[i] = r.float()
		}
	}
	n.scratch()
	n.grow()
	*o = *n
	return nil
}
