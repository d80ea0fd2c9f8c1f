package nats

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	natsgo "github.com/nats-io/nats.go"

	"hindsight/pkg/stream"
)

// Headers of the server, and ours.
const (
	headerMsgID        = "Nats-Msg-Id"
	headerExpectedID   = "Nats-Expected-Last-Msg-Id"
	headerExpectedSeq  = "Nats-Expected-Last-Sequence"
	headerPending      = "Nats-Pending-Messages"
	headerLastSeq      = "Nats-Last-Stream"  // of a heartbeat: what the consumer has passed
	headerSeq          = "Nats-Sequence"     // of a record that was got
	headerRequestInfo  = "Nats-Request-Info" // of a request from another account
	headerStatus       = "Status"
	headerDescription  = "Description"
	headerBinaryKey    = "hindsight-key-base64" // a key that is not plain ASCII
	statusNoResponders = "503"
	statusHeartbeat    = "100"
	statusNoMessages   = "404" // ends a pull at the end of the stream
)

var errHeader = fmt.Errorf("%w: header: names are visible ASCII without ':', values are one line without spaces around",
	stream.ErrUnfit)

// setHeaders puts a record's type, key and headers into h.
func setHeaders(h natsgo.Header, r *stream.Record) error {
	if r.Type != "" {
		if !(stream.Header{Key: stream.HeaderType, Value: r.Type}).Plain() {
			return fmt.Errorf("record type %q: %w", r.Type, errHeader)
		}
		h[stream.HeaderType] = []string{r.Type}
	}
	if len(r.Key) > 0 {
		if plain(r.Key) {
			h[stream.HeaderKey] = []string{string(r.Key)}
		} else {
			h[headerBinaryKey] = []string{base64.StdEncoding.EncodeToString(r.Key)}
		}
	}
	for _, x := range r.Headers {
		if !x.Plain() {
			return fmt.Errorf("record header %q: %w", x.Key, errHeader)
		}
		h[x.Key] = append(h[x.Key], x.Value)
	}
	return nil
}

// plain reports whether a key can stand in a header as it is.
func plain(key []byte) bool {
	for _, c := range key {
		if c < ' ' || c > '~' {
			return false
		}
	}
	return key[0] != ' ' && key[len(key)-1] != ' '
}

// getHeaders takes a record's type, key and headers out of h. Headers of the server's own are left out.
func getHeaders(r *stream.Record, h natsgo.Header) {
	for k, values := range h {
		switch k {
		case headerMsgID, headerExpectedID, headerExpectedSeq, headerBatchID, headerBatchSeq, headerBatchCommit:
		case stream.HeaderType:
			r.Type = values[0]
		case stream.HeaderKey:
			r.Key = []byte(values[0])
		case headerBinaryKey:
			if key, err := base64.StdEncoding.DecodeString(values[0]); err == nil {
				r.Key = key
			}
		default:
			for _, v := range values {
				r.Headers = append(r.Headers, stream.Header{Key: k, Value: v})
			}
		}
	}
	// map order is random
	slices.SortStableFunc(r.Headers, func(a, b stream.Header) int { return strings.Compare(a.Key, b.Key) })
}

// Stored takes a record's type, key and headers out of its headers as they are stored: one line each. It
// reports false for a record that only fills a place, which readers do not show.
func Stored(r *stream.Record, headers []byte) (shown bool, err error) {
	if len(headers) == 0 {
		return true, nil
	}
	if !storedPlainly(r, headers) {
		h, err := natsgo.DecodeHeadersMsg(headers)
		if err != nil {
			return false, err
		}
		getHeaders(r, natsgo.Header(h))
	}
	return r.Type != typeFill, nil
}

// storedPlainly is Stored for a type and a key. It reports false where there may be more.
func storedPlainly(r *stream.Record, headers []byte) bool {
	_, rest, ok := bytes.Cut(headers, lineEnd) // NATS/1.0
	for ok && len(rest) > len(lineEnd) {
		var line []byte
		line, rest, ok = bytes.Cut(rest, lineEnd)
		name, value, found := bytes.Cut(line, []byte(": "))
		switch {
		case !found || len(value) == 0 || value[0] == ' ' || value[0] == '\t' || bytes.IndexByte(value, '\n') >= 0:
			return false
		case string(name) == stream.HeaderKey && r.Key == nil:
			r.Key = value[:len(value):len(value)]
		case string(name) == stream.HeaderType && r.Type == "":
			r.Type = string(value)
		case string(name) != headerMsgID && string(name) != headerExpectedID:
			return false
		}
	}
	return ok
}

var lineEnd = []byte("\r\n")

// pubAck is the server's answer to a published record.
type pubAck struct {
	Error     *apiError `json:"error"`
	Sequence  uint64    `json:"seq"`
	Duplicate bool      `json:"duplicate"`
}

var seqField = []byte(`"seq":`)

// parseAck parses an answer. Good ones end in "seq":N} and are read from the end.
func parseAck(data []byte) (pubAck, error) {
	if i := bytes.LastIndexByte(data, ':') + 1; bytes.HasSuffix(data[:i], seqField) && data[len(data)-1] == '}' {
		seq, err := strconv.ParseUint(string(bytes.TrimLeft(data[i:len(data)-1], " ")), 10, 63)
		if err == nil && seq > 0 {
			return pubAck{Sequence: seq}, nil
		}
	}
	var a pubAck
	if err := json.Unmarshal(data, &a); err != nil {
		return pubAck{}, err
	}
	if a.Error == nil && a.Sequence == 0 {
		return pubAck{}, errors.New("acknowledgement without a sequence")
	}
	return a, nil
}

// scanState finds a stream's first and last sequence in the answer to STREAM.INFO without parsing the rest. No string
// of JSON can hold the text it looks for, since a quote there is escaped.
func scanState(data []byte) (first, last uint64, ok bool) {
	_, state, ok0 := bytes.Cut(data, []byte(`"state":{`))
	state, _, ok1 := bytes.Cut(state, []byte("}"))
	first, ok2 := scanField(state, `"first_seq":`)
	last, ok3 := scanField(state, `"last_seq":`)
	return first, last, ok0 && ok1 && ok2 && ok3
}

// single reports whether the answer to STREAM.INFO is that of a stream without replicas. It may miss one.
func single(data []byte) bool { return bytes.Contains(data, []byte(`"num_replicas":1,`)) }

func scanField(data []byte, name string) (uint64, bool) {
	_, rest, ok := bytes.Cut(data, []byte(name))
	digits, _, _ := bytes.Cut(rest, []byte(","))
	n, err := strconv.ParseUint(string(digits), 10, 63)
	return n, ok && err == nil
}

// parseReply takes stream sequence and time out of the reply subject of a message of a consumer:
//
//	$JS.ACK.<stream>.<consumer>.<delivered>.<stream seq>.<consumer seq>.<time>.<pending>
//	$JS.ACK.<domain>.<account>.<stream>.<consumer>.<delivered>.<stream seq>.<consumer seq>.<time>.<pending>[.<token>]
func parseReply(reply string) (seq, time int64, ok bool) {
	if !strings.HasPrefix(reply, "$JS.ACK.") {
		return
	}
	tokens := strings.Count(reply, ".") + 1
	skip := 5 // tokens before the stream sequence
	switch {
	case tokens >= 11:
		skip = 7
	case tokens != 9:
		return
	}
	for range skip {
		reply = reply[strings.IndexByte(reply, '.')+1:]
	}
	seq, reply, ok1 := cutInt(reply)
	_, reply, ok2 := cutInt(reply)
	time, _, ok3 := cutInt(reply)
	return seq, time, ok1 && ok2 && ok3
}

// cutInt reads the number before the first dot and returns what follows it.
func cutInt(s string) (n int64, rest string, ok bool) {
	digits, rest, _ := strings.Cut(s, ".")
	v, err := strconv.ParseUint(digits, 10, 63)
	return int64(v), rest, err == nil
}
