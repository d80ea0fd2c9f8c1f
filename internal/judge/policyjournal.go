package judge

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"

	"hindsight/internal/model"
	"hindsight/internal/ope"
	"hindsight/internal/replay"
)

// KeepIn lets what the log says of policies be kept in a journal as it is found.
func (o *OffPolicy) KeepIn(j *replay.Journal) { o.journal = j }

// Kept returns what the journal has of a policy, nil if that is nothing or there is no journal. It also reports what is
// wrong with the specification. It is safe for concurrent use.
func (o *OffPolicy) Kept(spec string, opt ope.Options) (*ope.Evaluation, error) {
	t, err := o.target(spec)
	if err != nil || o.journal == nil || t.madeOf == unknown {
		return nil, err
	}
	e, err := replay.Kept[ope.Evaluation](o.journal, o.key(spec, t, opt))
	if e != nil {
		o.flag(e)
	}
	return e, err
}

// keep writes what the log says of a policy, before the flags that the log itself raises.
func (o *OffPolicy) keep(spec string, t *target, opt ope.Options, e *ope.Evaluation) error {
	if o.journal == nil || t.madeOf == unknown {
		return nil
	}
	return o.journal.Write(o.key(spec, t, opt), e)
}

// unknown is what a policy is made of that nothing finds again.
const unknown = "?"

// key returns the SHA-256 of all that a judgement depends on.
func (o *OffPolicy) key(spec string, t *target, opt ope.Options) string {
	h := sha256.New()
	for _, text := range []string{o.journal.Version, "policy", spec, t.madeOf, fmt.Sprintf("%+v %+v", o.Settings(opt),
		opt), o.digest()} {
		replay.HashPart(h, []byte(text))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// digest returns the SHA-256 of the rows that are judged on and of where they stand in
// the log's file, which tables go by. It is computed once.
func (o *OffPolicy) digest() string {
	o.digested.Do(func() {
		h := sha256.New()
		replay.HashPart(h, []byte(o.env.WithFeatures().Digest()))
		for i, t := range o.rows {
			o.log.Pass(i)
			o.files.Pass(i)
			row := o.row(i)
			value, _, _ := o.env.Worth(int(t))
			replay.HashWords(h, []int64{int64(t), int64(row), int64(o.log.Action[row]), int64(math.Float64bits(value)),
				int64(math.Float64bits(o.log.Stands(row)))})
		}
		o.sum = hex.EncodeToString(h.Sum(nil))
	})
	return o.sum
}

// MadeOf says by what a judgement of the policy is found again in a journal: a digest of
// all that the policy is made of, such as [ModelDigest]. Without it none is kept.
func (p *Progressive) MadeOf(digest string) { p.madeOf = digest }

// ModelDigest returns the SHA-256 of a model with the files that it names.
func ModelDigest(m *model.Model, files map[string][]byte) string {
	h := sha256.New()
	replay.HashModel(h, m, files)
	return hex.EncodeToString(h.Sum(nil))
}
