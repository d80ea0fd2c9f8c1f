package clients

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hindsight/internal/testkit"
	"hindsight/pkg/stream/kafkatest"
)

// walk is a reader of a page, with the programs of the first step of the quickstart.
type walk struct {
	page string
	dir  string
	env  []string
	at   *strings.Replacer // the page's addresses, by those in use
	also []string          // further addresses of the page, each before the one in use
	url  string            // of the admin pages
}

// begin gives the reader free ports.
func (w *walk) begin(t *testing.T) {
	t.Helper()
	web, bus, admin := freeAddress(t), freeAddress(t), freeAddress(t)
	w.at = strings.NewReplacer(append([]string{"127.0.0.1:8080", web, "127.0.0.1:4222", bus}, w.also...)...)
	w.url = "http://" + admin
	w.env = append(slices.Clip(w.env), "HINDSIGHT_HTTP="+web, "HINDSIGHT_LISTEN="+bus, "HINDSIGHT_ADMIN="+admin)
}

// command is what stands below a mark of the page.
func (w *walk) command(t *testing.T, mark string) *exec.Cmd {
	t.Helper()
	lines := strings.TrimSpace(w.at.Replace(testkit.Block(t, w.page, mark)))
	if !strings.Contains(lines, "\n") {
		lines = "exec " + lines // signals reach the program
	}
	cmd := exec.Command("sh", "-ec", lines)
	cmd.Dir, cmd.Env = w.dir, w.env
	return cmd
}

// types runs commands of the page, which must print all of want.
func (w *walk) types(t *testing.T, mark string, want ...string) {
	t.Helper()
	out, err := w.command(t, mark).CombinedOutput()
	for _, text := range want {
		if err != nil || !strings.Contains(string(out), text) {
			t.Errorf("%s: %v, no %q in\n%s", mark, err, text, out)
		}
	}
}

// starts starts a command of the page, and waits until its decider is ready.
func (w *walk) starts(t *testing.T, mark string) {
	t.Helper()
	w.begin(t)
	startCommand(t, mark, w.command(t, mark))
	eventually(t, "a decider that is ready", func() bool { return healthy(w.url + "/readyz") })
}

// plays runs a source of load until it has taught something.
func (w *walk) plays(t *testing.T, mark string) {
	t.Helper()
	load := w.command(t, mark)
	if err := load.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "20 rounds are learned", func() bool { return w.state().Losses.Rounds >= 20 })
	if err := load.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = load.Wait() // it was killed
}

// shown is what the reader looks at on the page.
type shown struct {
	Losses  struct{ Rounds float64 } // with a loss, which the decider has learned
	Budgets []struct {
		Name          string
		Rounds, Price float64
	}
}

func (w *walk) state() (s shown) {
	answer, err := http.Get(w.url + "/state")
	if err != nil {
		return s
	}
	defer answer.Body.Close()
	if json.NewDecoder(answer.Body).Decode(&s) != nil {
		return shown{}
	}
	return s
}

// TestQuickstart types the commands of docs/quickstart.md from the first to the last, in a clone, with free ports, and
// those of two pages that begin where it ends.
func TestQuickstart(t *testing.T) {
	if os.Getenv("HINDSIGHT_QUICKSTART") == "" {
		t.Skip("it builds all programs, and needs curl: HINDSIGHT_QUICKSTART=require")
	}
	top, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	bin, dir := t.TempDir(), t.TempDir()
	w := &walk{page: "../../docs/quickstart.md", dir: top, at: strings.NewReplacer(), env: append(os.Environ(),
		"GOBIN="+bin, "PATH="+bin+":"+os.Getenv("PATH"))}
	w.types(t, "install", "")
	if w.dir = dir; os.Symlink(filepath.Join(top, "compose"), filepath.Join(dir, "compose")) != nil {
		t.Fatal("no link to the clone's files")
	}
	t.Run("decide", func(t *testing.T) {
		w.starts(t, "decider")
		w.types(t, "curl", `{"id":"8f3a","action":"`, `{"id":"8f3a","stored":true}`)
		eventually(t, "the round is learned", func() bool { return w.state().Losses.Rounds == 1 })
		w.types(t, "inside", "round 8f3a of model hindsight", "reward 1", "verify hindsight: identical")
	})
	t.Run("learn", func(t *testing.T) {
		w.starts(t, "shop")
		w.plays(t, "load")
	})
	t.Run("route", func(t *testing.T) {
		own := *w
		own.page = "../../docs/route-your-models.md"
		own.starts(t, "route")
		own.types(t, "ask", `{"id":"q1","action":"`, `{"id":"q1","stored":true}`)
		own.plays(t, "play")
		eventually(t, "the page shows what is spent", func() bool {
			b := own.state().Budgets
			return len(b) == 1 && b[0].Name == "cost" && b[0].Rounds >= 20 && b[0].Price > 0
		})
	})
	t.Run("kafka", func(t *testing.T) {
		brokers, _ := kafkatest.Fake(t, 1)
		own := *w
		own.page = "../../docs/kafka-quickstart.md"
		own.also = []string{"localhost:9092", brokers[0], "nats://127.0.0.1:4333", natsFor(t)}
		own.starts(t, "kafka-decider")
		second := own
		second.starts(t, "kafka-decider") // ready: it has taken a partition of the first
		own.types(t, "kafka-curl", `"partition":0`, `"partition":1`, `{"id":"d","stored":true}`)
		own.plays(t, "kafka-load")
		own.types(t, "kafka-verify", "verify shop: identical")
	})
	w.types(t, "backtest", "\nlogging ", "\nuniform ", "\nlearner:dafa ", "few events: 120 rows")
}
