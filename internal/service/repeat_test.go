package service

// forget drops the bytes of decisions, and keeps none from here on: repeats are read back.
func (r *recent) forget() {
	for i := range r.rounds {
		r.rounds[i].value = nil
	}
	r.bytes, r.most = 0, 0
}
