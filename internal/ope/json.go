package ope

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
)

// UnmarshalJSON implements [json.Unmarshaler]: names and order are those of the object.
func (e *Estimates) UnmarshalJSON(b []byte) error {
	d := json.NewDecoder(bytes.NewReader(b))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return fmt.Errorf("estimates: expected an object: %w", cmp.Or(err, errNoObject))
	}
	out := Estimates{}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		// What is null of λ is ∞, and there; a pointer would lose it.
		x := struct {
			*Estimate
			Lambda json.RawMessage `json:"lambda"`
		}{Estimate: &Estimate{}}
		if err := d.Decode(&x); err != nil {
			return fmt.Errorf("estimate %v: %w", name, err)
		}
		x.Name, _ = name.(string)
		if len(x.Lambda) > 0 {
			v := Figure(math.Inf(1))
			if string(x.Lambda) != "null" {
				if err := json.Unmarshal(x.Lambda, &v); err != nil {
					return fmt.Errorf("estimate %v: %w", name, err)
				}
			}
			x.Estimate.Lambda = &v
		}
		out = append(out, *x.Estimate)
	}
	*e = out
	return nil
}

var errNoObject = errors.New("found something else")
