package door

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"
	"sync"

	"hindsight/pkg/codec"
)

// Limits of what is taken from requests.
const (
	maxBody   = 1 << 20
	maxHeld   = 64 << 20 // bodies of all requests together
	firstRead = 64 << 10 // room for a body before it has come
	maxPooled = 64 << 10
)

// Content types of bodies. No form of a web page has one of them.
const (
	typeJSON    = "application/json"
	typePack    = "application/msgpack"
	typeCloud   = "application/cloudevents+json"
	typeProblem = "application/problem+json"
)

// contentType returns the content type of a request without its parameters, if it is one of ours.
func contentType(r *http.Request) (string, *problem) {
	given := r.Header.Get("Content-Type")
	if given == typeJSON { // nearly always, and it needs no parser
		return given, nil
	}
	kind, _, _ := mime.ParseMediaType(given)
	switch kind {
	case typeJSON, typePack, typeCloud:
		return kind, nil
	}
	return "", newProblem(http.StatusUnsupportedMediaType, fmt.Sprintf("Content-Type %.64q: send %s, %s or %s", given,
		typeJSON, typePack, typeCloud))
}

var unzips = sync.Pool{New: func() any { return new(gzip.Reader) }}

// body reads a request's body, of at most maxBody bytes, also when it is inflated. Its capacity counts as held until
// [Door.release].
func (d *Door) body(w http.ResponseWriter, r *http.Request) ([]byte, *problem) {
	if r.ContentLength > maxBody {
		return nil, tooLarge()
	}
	var src io.Reader = r.Body
	size := int64(firstRead)
	if r.ContentLength >= 0 {
		size = min(r.ContentLength+1, size) // with room to see the end
	} else {
		src = http.MaxBytesReader(w, r.Body, maxBody)
	}
	switch coding := r.Header.Get("Content-Encoding"); coding {
	case "", "identity":
	case "gzip":
		z := unzips.Get().(*gzip.Reader)
		defer unzips.Put(z)
		if err := z.Reset(src); err != nil {
			return nil, unread(err)
		}
		src = z
	default:
		w.Header().Set("Accept-Encoding", "gzip")
		return nil, newProblem(http.StatusUnsupportedMediaType, fmt.Sprintf("Content-Encoding %.64q: send gzip, or "+
			"the body as it is", coding))
	}
	return d.readAll(src, max(size, 512))
}

// readAll reads to the end, at first into so many bytes.
func (d *Door) readAll(src io.Reader, size int64) (b []byte, p *problem) {
	for ; ; size = min(2*size, maxBody+1) {
		if d.held.Add(size-int64(cap(b))) > maxHeld {
			d.held.Add(-size)
			return nil, newProblem(http.StatusServiceUnavailable, "overloaded: the bodies of too many requests are "+
				"being read; retry with the same id")
		}
		b = append(make([]byte, 0, size), b...)
		for len(b) < int(size) {
			n, err := src.Read(b[len(b):size])
			b = b[:len(b)+n]
			if err == io.EOF && len(b) <= maxBody {
				return b, nil
			}
			if err != nil && err != io.EOF {
				d.release(b)
				return nil, unread(err)
			}
		}
		if size > maxBody {
			d.release(b)
			return nil, tooLarge()
		}
	}
}

// release says that a body is no longer held.
func (d *Door) release(body []byte) { d.held.Add(-int64(cap(body))) }

func tooLarge() *problem {
	return newProblem(http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is too large: at most %d bytes are "+
		"taken, also when it is inflated", maxBody))
}

// unread says why a body could not be read.
func unread(err error) *problem {
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return tooLarge()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return newProblem(http.StatusRequestTimeout, "the body came too slowly")
	}
	return newProblem(http.StatusBadRequest, fmt.Sprintf("the body cannot be read: %v", err))
}

// notJSON says where a body is not the JSON that a call takes, in no words of this program's types.
func notJSON(err error) string {
	var other *json.UnmarshalTypeError
	if errors.As(err, &other) {
		where := fmt.Sprintf("unexpected %s at byte %d", other.Value, other.Offset)
		if other.Field != "" {
			where = other.Field + ": " + where
		}
		return where
	}
	return err.Error()
}

// matches reports whether a body is what its content type says.
func matches(body []byte, kind string) bool {
	return codec.IsMap(codec.TrimMark(body)) == (kind == typePack)
}

var zips = sync.Pool{New: func() any { return gzip.NewWriter(io.Discard) }}

// leastZipped is the size from which on an answer is compressed: a smaller one is one packet as it is.
const leastZipped = 1400

// send answers with bytes.
func send(w http.ResponseWriter, r *http.Request, status int, kind string, b []byte) {
	h := w.Header()
	if h["Content-Type"] = kinds[kind]; h["Content-Type"] == nil {
		h.Set("Content-Type", kind)
	}
	if len(b) < leastZipped || !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.WriteHeader(status)
		w.Write(b) // an error is the client's: it is gone
		return
	}
	h.Set("Content-Encoding", "gzip")
	h.Add("Vary", "Accept-Encoding")
	w.WriteHeader(status)
	z := zips.Get().(*gzip.Writer)
	defer zips.Put(z)
	z.Reset(w)
	z.Write(b)
	z.Close()
}

// kinds are content types as headers have them: one that is set so is not allocated.
var kinds = map[string][]string{typeJSON: {typeJSON}, typePack: {typePack}}
