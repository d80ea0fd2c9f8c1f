package landed

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"
)

// rounds of a turn. A window is 8 of them, at most.
const rounds = 40

// play asks for decisions and reports outcomes in every way that has a fate: in time,
// late, doubled, unknown, of another action, malformed, withdrawn, or never. It returns
// the first decision.
func play(t *testing.T, url string, r *rand.Rand, turn int) (first decision) {
	t.Helper()
	nc, err := natsgo.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	later := map[int][]string{} // outcomes by the round before which they are sent
	for i := range rounds {
		id := fmt.Sprintf("%d-%d", turn, i)
		body := fmt.Sprintf(
			`{"id":%q,"features":{"hour":%d,"country":%q,"vip":%t},"actions":["a",{"name":"b","features":{"price":%g}},"c"]}`,
			id, r.IntN(24), []string{"DE", "FR"}[r.IntN(2)], r.IntN(2) == 0, float64(r.IntN(8))/4)
		d := ask(t, nc, "decide", body)
		if d.Action == "" {
			t.Fatalf("%s has no action: %+v", id, d)
		}
		if i == 0 {
			first = d
		}
		for wait, outcome := range outcomes(r, id, d.Action) {
			later[i+wait] = append(later[i+wait], outcome)
		}
		for _, o := range later[i] {
			ask(t, nc, "outcome", o)
		}
	}
	return first
}

// outcomes returns what is reported of a round, by how many rounds later.
func outcomes(r *rand.Rand, id, action string) map[int]string {
	good := fmt.Sprintf(`{"id":%q,"loss":%g,"action":%q}`, id, float64(r.IntN(5))/4, action)
	out := map[int]string{0: fmt.Sprintf(`{"id":%q,"activated":true}`, id)}
	if r.IntN(2) == 0 {
		delete(out, 0)
	}
	switch r.IntN(10) {
	case 0: // never
	case 1: // much too late
		out[20] = good
	case 2:
		out[3] = fmt.Sprintf(`{"id":%q,"withdrawn":true}`, id)
	case 3:
		out[1] = fmt.Sprintf(`{"id":%q,"loss":0.5,"action":"another"}`, id)
		out[2] = good
	case 4: // twice, and one of a round that is not there
		out[1], out[2], out[3] = good, good, fmt.Sprintf(`{"id":"nobody-%s","loss":1}`, id)
	case 5:
		out[2], out[1] = good, fmt.Sprintf(`{"id":%q,"loss":7}`, id)
	default:
		out[1+r.IntN(5)] = good
	}
	return out
}

type decision struct {
	ID             string
	Action         string
	LearnedThrough int64 `json:"learned_through"`
	Epoch          int64
	Error          *struct{ Message string }
}

// ask sends a request. What is wrong with an outcome is an answer.
func ask(t *testing.T, nc *natsgo.Conn, verb, body string) (d decision) {
	t.Helper()
	for limit := time.Now().Add(30 * time.Second); ; {
		m, err := nc.Request("m."+verb, []byte(body), 30*time.Second)
		if err != nil {
			t.Fatalf("%s %s: %v", verb, body, err)
		}
		if m.Header.Get("Nats-Service-Error-Code") == "503" && time.Now().Before(limit) {
			time.Sleep(5 * time.Millisecond) // as a client does that is told "not now"
			continue
		}
		if err := json.Unmarshal(m.Data, &d); err != nil {
			t.Fatalf("%s %s: %s: %v", verb, body, m.Data, err)
		}
		if d.Error != nil && verb == "decide" {
			t.Fatalf("%s: %s", body, d.Error.Message)
		}
		return d
	}
}
