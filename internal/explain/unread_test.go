package explain

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// A round tells what of its context nobody read; where features may not be shown how much.
func TestRoundTellsWhatIsNotRead(t *testing.T) {
	w := newWorld(t, "window: 20 rounds\noracle: {kind: linear}\nfeatures: {hour: number, device: text}\n", 0)
	w.put(w.top.Contexts, `{"id":"typo","features":{"huor":3,"devise":"phone"},"acions":["news"],"actions":["a","b"]}`)
	w.put(w.top.Contexts, `{"id":"good","features":{"hour":3},"actions":["a","b"]}`)
	w.settle()
	for _, c := range []struct {
		id, want string
		features bool
	}{
		{"typo", "not read: acions, huor, devise\n", true},
		{"typo", "not read: 3 features or keys\n", false},
		{"good", "", true},
	} {
		w.c.Features = c.features
		e := w.round(c.id)
		var text bytes.Buffer
		w.must(e.Write(&text))
		page, err := json.Marshal(e)
		w.must(err)
		if !strings.Contains(text.String(), c.want) || strings.Contains(text.String(), "not read") != (c.want != "") ||
			strings.Contains(string(page), `"not_read"`) != (c.want != "") {
			t.Errorf("%s, features %v: %s\n%s", c.id, c.features, &text, page)
		}
		if e.Check != "identical" || !c.features && strings.Contains(string(page), "huor") {
			t.Errorf("%s", page)
		}
	}
}
