package codec

// cloudMark is the attribute that tells a CloudEvent in structured JSON.
// https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/formats/json-format.md
const cloudMark = "specversion"

// CloudEventID returns the id of a CloudEvent in binary mode, whose attributes are the record's headers (ce_id on
// Kafka, ce-id on NATS) and whose data is its value; ok says whether the headers are those of such an event. The id is
// the round's if a context itself has none, and the outcome_id of an outcome that has none. header returns "" for a
// header that is not there.
func CloudEventID(header func(key string) string) (id string, ok bool) {
	for _, of := range [...]struct{ mark, id string }{{"ce_" + cloudMark, "ce_id"}, {"ce-" + cloudMark, "ce-id"}} {
		if header(of.mark) == "1.0" {
			if id = header(of.id); id != "" {
				return id, true
			}
		}
	}
	return "", false
}

// isCloudEvent reports whether r, which read all it could of a record as a plain event, met a CloudEvent instead. An
// attribute of the producer's may be what an event's own key is not, so after an error the rest is searched too.
func (r *reader) isCloudEvent() bool {
	if r.cloud || r.err == nil || !r.json {
		return r.cloud
	}
	again := newReader(r.b)
	s := again.open(tokMap)
	return again.find(&s, cloudMark)
}

// MediaType returns the media type of an event that a client wrote.
func MediaType(event []byte) string {
	r := newReader(event)
	if s := r.open(tokMap); r.json && r.find(&s, cloudMark) {
		return "application/cloudevents+json"
	}
	return EncodingOf(event).ContentType()
}

// openCloudEvent reads the envelope and returns a reader at its data, and its id.
func openCloudEvent(b []byte) (data reader, id string) {
	r := newReader(b)
	from, to := -1, 0
	var seen uint32
	s := r.entries()
	for r.entry(&s) {
		switch s.key {
		case cloudMark:
			if r.once(&seen, 0).text() != "1.0" {
				r.fail(errSpec)
			}
		case "id":
			id = r.once(&seen, 1).text()
		case "data":
			r.once(&seen, 2)
			from = r.i
			r.skip()
			to = r.i
		default:
			r.skip()
		}
	}
	if r.space(); r.err == nil && r.i != len(r.b) {
		r.fail(errTrailing)
	}
	r.require(seen, cloudKeys)
	if r.err == nil && (from < 0 || r.b[from] != '{') {
		r.fail(errNoData)
		r.in("data")
	}
	if r.err != nil {
		return r, ""
	}
	return reader{b: b[:to], i: from, json: true, inner: true}, id
}

var cloudKeys = []string{cloudMark, "id"}
