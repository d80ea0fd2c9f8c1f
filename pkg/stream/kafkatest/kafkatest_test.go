package kafkatest

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

// .ci/kafka fetches the version that is looked for here.
func TestVersion(t *testing.T) {
	script, err := os.ReadFile("../../../.ci/kafka")
	if err != nil {
		t.Fatal(err)
	}
	if m := regexp.MustCompile(`(?m)^version=(.*)$`).FindSubmatch(script); m == nil || string(m[1]) != Version {
		t.Errorf(".ci/kafka has %q, this package %s", m, Version)
	}
}

// A broker keeps its data and ports through kill -9 and through a stop.
func TestKafkaRealRestart(t *testing.T) {
	onlyLong(t)
	begin := time.Now()
	c := Hurt(t, 1)
	t.Logf("a broker after %v", time.Since(begin))
	c.CreateTopic("a", 2)
	for _, end := range []func(int){c.Kill, c.Stop} {
		end(1)
		begin := time.Now()
		c.Restart(1)
		t.Logf("again after %v", time.Since(begin))
		if c.Leader("a", 1) != 1 {
			t.Error("the topic is gone")
		}
	}
	out, err := c.Tool(t.Context(), "org.apache.kafka.tools.TopicCommand", "--bootstrap-server", c.Brokers()[0],
		"--list")
	if err != nil || !strings.Contains(string(out), "a") {
		t.Errorf("topics: %s, %v", out, err)
	}
}

func TestKafkaRealThree(t *testing.T) {
	onlyLong(t)
	begin := time.Now()
	c := Hurt(t, 3)
	t.Logf("three brokers after %v", time.Since(begin))
	c.CreateTopic("a", 1)
	leader := c.Leader("a", 0)
	to := leader%3 + 1
	begin = time.Now()
	c.MoveLeader("a", 0, to)
	t.Logf("moved after %v", time.Since(begin))
	if l := c.Leader("a", 0); l != to {
		t.Errorf("broker %d leads, not %d", l, to)
	}
	begin = time.Now()
	c.Kill(to)
	for c.Leader("a", 0) == to {
		<-time.After(10 * time.Millisecond)
	}
	t.Logf("another leads after %v", time.Since(begin))
	c.Restart(to)
	c.InSync("a", 0, 3)
	t.Logf("back after %v", time.Since(begin))
	c.Pause(to)
	c.Resume(to)
	c.Stop(to)
	c.Restart(to)
}

// onlyLong skips a test of the launcher itself: the suites that use it tell at once when
// it does not do what it says.
func onlyLong(t *testing.T) {
	t.Helper()
	Heavy(t)
	if os.Getenv("HINDSIGHT_LONG") == "" {
		t.Skip("HINDSIGHT_LONG=1 runs it")
	}
}
