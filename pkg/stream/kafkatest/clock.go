package kafkatest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// SetClock has a broker, from its next start, run with a clock that is ahead by so much: Kafka's class of the
// system's time is compiled another time, and found first.
func (c *Cluster) SetClock(i int, ahead time.Duration) {
	c.t.Helper()
	b := c.brokers[i-1]
	classes := filepath.Join(b.dir, "classes")
	source := filepath.Join(b.dir, "SystemTime.java")
	text := fmt.Sprintf(systemTime, ahead.Milliseconds())
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
	out, err := exec.CommandContext(c.t.Context(), "javac", "-cp", c.jars.path, "-d", classes, source).CombinedOutput()
	if err != nil {
		c.t.Fatalf("javac: %v\n%s", err, out)
	}
	b.classes = classes
}

const systemTime = `package org.apache.kafka.common.utils;
class SystemTime implements Time {
	private static final SystemTime ONLY = new SystemTime();
	public static SystemTime getSystemTime() { return ONLY; }
	public long milliseconds() { return System.currentTimeMillis() + %dL; }
	public long nanoseconds() { return System.nanoTime(); }
	public void sleep(long ms) { Utils.sleep(ms); }
	public void waitObject(Object o, java.util.function.Supplier<Boolean> condition, long deadline)
			throws InterruptedException {
		synchronized (o) {
			while (!condition.get()) {
				long left = deadline - milliseconds();
				if (left <= 0) throw new org.apache.kafka.common.errors.TimeoutException("condition not met in time");
				o.wait(left);
			}
		}
	}
}
`
