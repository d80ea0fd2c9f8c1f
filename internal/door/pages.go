package door

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"hindsight/internal/daemon"
)

// page answers with one of the pages of the admin port.
func (d *Door) page(path string) handler {
	return func(w http.ResponseWriter, r *http.Request, _ client) *problem {
		return d.show(w, r, path, r.URL.RawQuery)
	}
}

// maxID is the longest id that a round has.
const maxID = 256

// round answers with the life of a round.
func (d *Door) round(w http.ResponseWriter, r *http.Request, _ client) *problem {
	if len(r.PathValue("id")) > maxID {
		return newProblem(http.StatusBadRequest, fmt.Sprintf("the id of a round has at most %d bytes", maxID))
	}
	return d.show(w, r, "/explain", url.Values{"id": {r.PathValue("id")}}.Encode())
}

func (d *Door) show(w http.ResponseWriter, r *http.Request, path, query string) *problem {
	page, p := d.look(r, path, query)
	if p == nil {
		send(w, r, page.status, typeJSON, page.body.Bytes())
	}
	return p
}

// look returns one of the pages of the admin port.
func (d *Door) look(r *http.Request, path, query string) (*recorder, *problem) {
	i := slices.IndexFunc(d.o.Pages, func(p daemon.Page) bool { return p.Path == path })
	if i < 0 {
		return nil, newProblem(http.StatusNotFound, "this process has no such page")
	}
	asked := *r
	asked.URL = &url.URL{Path: path, RawQuery: query}
	page := &recorder{header: http.Header{}, status: http.StatusOK}
	d.o.Pages[i].Answer(page, &asked)
	if page.status >= 400 {
		return nil, readProblem(page.body.Bytes())
	}
	return page, nil
}

// recorder keeps an answer.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements [http.ResponseWriter].
func (r *recorder) Header() http.Header { return r.header }

// WriteHeader implements [http.ResponseWriter].
func (r *recorder) WriteHeader(status int) { r.status = status }

// Write implements [http.ResponseWriter].
func (r *recorder) Write(b []byte) (int, error) { return r.body.Write(b) }
