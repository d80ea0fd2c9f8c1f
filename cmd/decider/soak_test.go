package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"hindsight/internal/verify"
	"hindsight/pkg/stream/natstest"
)

// soakEnv is how long TestSoak takes, 2m or 1h; without it the test is left out.
const soakEnv = "HINDSIGHT_SOAK"

// A soak keeps all that it writes if the disk has room for it, so that verify can look
// at everything. Else it keeps the last of it, and verify tells that what is older was
// not looked at.
const (
	soakRetention = 10 * time.Minute // of the logs, where the disk is small
	soakRate      = 16 << 20         // bytes a second, at most; at 1.3 kB a round
	soakReserve   = 2 << 30          // bytes of the disk that are left to others
	soakStore     = 16 << 30         // bytes for the logs where only the last is kept
)

// soakRoom returns how long the logs of a soak in a folder keep their records, 0 for
// ever, and how many bytes they may take.
func soakRoom(t *testing.T, dir string, length time.Duration) (retention time.Duration, store int64) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		t.Fatalf("statfs %s: %v", dir, err)
	}
	free := int64(s.Bavail) * s.Bsize
	need := int64(length.Seconds()*soakRate) + soakReserve
	if free < need {
		t.Logf("%s has %.1f GB free, and to keep all of %v takes %.1f: the logs keep the last %v", dir,
			float64(free)/1e9, length, float64(need)/1e9, soakRetention)
		return soakRetention, soakStore
	}
	t.Logf("%s has %.1f GB free, and to keep all of %v takes at most %.1f: verify looks at everything", dir,
		float64(free)/1e9, length, float64(need)/1e9)
	return 0, free - soakReserve
}

// TestSoak asks a decider for as many decisions as it can make, and for more, while its
// server is killed, paused and flooded with connections and nonsense. In the end it holds
// no more goroutines and files than before, no more memory than the most rounds that were
// ever pending explain, and verify finds nothing.
func TestSoak(t *testing.T) {
	if os.Getenv(soakEnv) == "" {
		t.Skipf("takes long: set %s=2m, or 1h", soakEnv)
	}
	length, err := time.ParseDuration(os.Getenv(soakEnv))
	if err != nil {
		t.Fatalf("%s: %v", soakEnv, err)
	}
	dir := t.TempDir()
	retention, store := soakRoom(t, dir, length)
	server := natstest.Start(t, natstest.Options{Dir: filepath.Join(dir, "nats"), MaxStoreSize: store,
		Patience: 10 * time.Minute})
	args := []string{"--log", server.URL(), "--model", writeModel(t, dir, strings.Replace(shop, "300ms", "1s", 1)),
		"--seed-file", filepath.Join(dir, "seed")}
	auditor := program(t, "replayer", append([]string{"verify", "--name", "shop"}, args[0], args[1], args[4],
		args[5])...)
	exe := program(t, "decider", append(slices.Clone(args), "--admin", "127.0.0.1:0", "--pprof", "--retention",
		retention.String())...)
	p := start(t, exe).ready()
	s := &soak{t: t, server: server, url: server.URL(), p: p, end: make(chan struct{})}
	s.users(256)
	samples := s.sample(length)
	close(s.end)
	s.group.Wait()
	s.flat(samples)
	s.bounded(samples)
	eventually(t, "the last rounds have their fates", func() bool {
		v := s.metrics()
		return v["hindsight_pending_rounds"] == 0 && v["hindsight_learned_rounds"] > 0 // 0: the last fault is not over
	})
	last := s.metrics()
	p.stop(patience)
	t.Logf("%v: %d decided, %d refused with 503, %d not answered, %d outcomes; %v", length, s.decided.Load(),
		s.refused.Load(), s.lost.Load(), s.outcomes.Load(), s.struck)
	if s.other.Load() > 0 {
		t.Errorf("%d requests were refused otherwise", s.other.Load())
	}
	if last["hindsight_learned_rounds"] < float64(s.outcomes.Load())/2 {
		t.Errorf("%v rounds learned of %d outcomes", last["hindsight_learned_rounds"], s.outcomes.Load())
	}
	var told bytes.Buffer
	auditor.Stderr = &told
	out, most, err := output(auditor)
	var exit *exec.ExitError
	switch tooOld := errors.As(err, &exit) && exit.ExitCode() == verify.TooOld && retention > 0 && length > retention; {
	case err != nil && !tooOld:
		t.Errorf("replayer verify: %v\n%s%s", err, out, told.Bytes()[max(0, told.Len()-4<<10):])
	default:
		t.Logf("replayer verify: exit code %d, at most %d MB of memory\n%s", auditor.ProcessState.ExitCode(),
			most>>20, out)
	}
}

// output runs a command, and returns what it prints and the most memory that it was seen to
// take, in bytes. (What the system tells of a child that has ended counts its parent in.)
func output(cmd *exec.Cmd) (out []byte, most int64, err error) {
	var b bytes.Buffer
	cmd.Stdout = &b
	if err := cmd.Start(); err != nil {
		return nil, 0, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for tick := time.NewTicker(100 * time.Millisecond); ; {
		select {
		case err := <-ended:
			tick.Stop()
			return b.Bytes(), most, err
		case <-tick.C:
			most = max(most, resident(cmd.Process.Pid))
		}
	}
}

// resident returns the most memory that a process has taken so far, in bytes; 0 if it has ended.
func resident(pid int) int64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	kib, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	n, _ := strconv.ParseInt(kib, 10, 64)
	return n << 10
}

// soak is a decider under load.
type soak struct {
	t      *testing.T
	server *natstest.Server
	url    string
	p      *process
	end    chan struct{}
	group  sync.WaitGroup

	decided, refused, other, lost, outcomes atomic.Int64
	struck                                  map[string]int
	backlog                                 float64 // the most rounds that were pending at once, as far as was seen
}

// users ask and report, each as fast as it is answered.
func (s *soak) users(n int) {
	conn, err := natsgo.Connect(s.url, natsgo.MaxReconnects(-1), natsgo.ReconnectBufSize(-1),
		natsgo.ReconnectWait(50*time.Millisecond))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(conn.Close)
	for i := range n {
		s.group.Go(func() { s.user(conn, i, rand.New(rand.NewPCG(7, uint64(i)))) })
	}
}

func (s *soak) user(conn *natsgo.Conn, i int, r *rand.Rand) {
	for n := 0; ; n++ {
		select {
		case <-s.end:
			return
		default:
		}
		id := fmt.Sprintf("u%d-%d", i, n)
		if code := s.ask(conn, "shop.decide", context1(r, id)); code != 0 {
			continue // another one, without waiting: more than can be decided
		}
		s.decided.Add(1)
		if r.IntN(10) > 0 &&
			s.ask(conn, "shop.outcome", fmt.Appendf(nil, `{"id":%q,"loss":%g}`, id, float64(r.IntN(5))/4)) == 0 {
			s.outcomes.Add(1)
		}
	}
}

// ask asks once, and returns the code of the answer: 0 is well, -1 that there is none.
func (s *soak) ask(conn *natsgo.Conn, subject string, data []byte) int {
	m, err := conn.Request(subject, data, 2*time.Second)
	if err != nil {
		s.lost.Add(1)
		select { // the server is away
		case <-time.After(10 * time.Millisecond):
		case <-s.end:
		}
		return -1
	}
	switch m.Header.Get("Nats-Service-Error-Code") {
	case "":
		return 0
	case "503":
		s.refused.Add(1)
		return 503
	}
	s.other.Add(1)
	return 1
}

// sample strikes and looks at the process from time to time, and returns what it saw.
func (s *soak) sample(length time.Duration) (samples []map[string]float64) {
	s.struck = map[string]int{}
	r := rand.New(rand.NewPCG(8, 9))
	faults := s.faults()
	tick := time.NewTicker(max(length/600, 100*time.Millisecond))
	defer tick.Stop()
	n := 0
	for began := time.Now(); time.Since(began) < length; n++ {
		select {
		case <-tick.C:
		case <-s.p.ended:
			s.t.Fatalf("it has ended: %v\n%s", s.p.cmd.ProcessState, s.p.log())
		}
		m := s.metrics()
		s.backlog = max(s.backlog, m["hindsight_pending_rounds"])
		if n%10 > 0 {
			continue
		}
		m[liveHeap] = s.live()
		if samples = append(samples, m); len(samples)%4 == 0 {
			f := faults[r.IntN(len(faults))]
			f.strike()
			s.struck[f.name]++
		}
	}
	return samples
}

type soakFault struct {
	name   string
	strike func()
}

func (s *soak) faults() []soakFault {
	moment := func() { <-time.After(500 * time.Millisecond) }
	return []soakFault{
		{"server killed", func() { s.server.Kill(); moment(); s.server.Restart() }},
		{"server paused", func() { s.server.Pause(); moment(); s.server.Resume() }},
		{"500 connections", func() {
			for range 500 {
				if c, err := natsgo.Connect(s.url); err == nil {
					defer c.Close()
				}
			}
		}},
		{"nonsense", func() {
			c, err := natsgo.Connect(s.url)
			if err != nil {
				return
			}
			defer c.Close()
			for i := range 2000 {
				_ = c.PublishRequest([]string{"shop.decide", "shop.outcome"}[i%2], c.NewInbox(),
					[]byte(`{"id":"`+strings.Repeat("[", i)))
			}
			_ = c.Flush()
		}},
	}
}

// metrics returns the metrics of the process that have no labels, or those of its one
// partition.
func (s *soak) metrics() map[string]float64 {
	code, body := s.p.page(s.p.admin(), "/metrics")
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(body))
	if code != 200 || err != nil {
		s.t.Fatalf("metrics: %d, %v", code, err)
	}
	v := map[string]float64{}
	for name, f := range families {
		for _, m := range f.GetMetric() {
			v[name] += m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return v
}

// liveHeap is how many bytes a garbage collection left, among the metrics.
const liveHeap = "live heap"

// live has the process collect its garbage, and returns how many bytes that left.
func (s *soak) live() (bytes float64) {
	_, body := s.p.page(s.p.admin(), "/debug/pprof/heap?gc=1&debug=1")
	if _, rest, ok := strings.Cut(body, "\n# HeapAlloc = "); ok {
		_, _ = fmt.Sscan(rest, &bytes)
	}
	return bytes
}

// parts returns the values of a metric in the second and the last third of the samples, in order of
// size, and logs them.
func (s *soak) parts(samples []map[string]float64, name string) (middle, last []float64) {
	s.t.Helper()
	of := func(part []map[string]float64) (v []float64) {
		for _, m := range part {
			v = append(v, m[name])
		}
		return slices.Sorted(slices.Values(v))
	}
	n := len(samples) / 3
	middle, last = of(samples[n:2*n]), of(samples[2*n:])
	text, _ := json.Marshal(map[string]float64{"first": samples[0][name], "middle": middle[len(middle)/2],
		"last": last[len(last)/2], "most": last[len(last)-1]})
	s.t.Logf("%s: %s", name, text)
	return middle, last
}

// flat holds that the last third of the time needed no more than the second.
func (s *soak) flat(samples []map[string]float64) {
	s.t.Helper()
	for _, c := range []struct {
		name         string
		factor, more float64
	}{
		{"go_goroutines", 1.2, 20},
		{"process_open_fds", 1.2, 5},
	} {
		middle, last := s.parts(samples, c.name)
		was, is := middle[len(middle)/2], last[len(last)/2]
		if was <= 0 || is <= 0 {
			s.t.Errorf("%s is not told: %.0f, then %.0f", c.name, was, is)
		}
		if is > c.factor*was+c.more {
			s.t.Errorf("%s went from %.0f to %.0f", c.name, was, is)
		}
	}
}

// What memory is for. The tables, rings and pools of rounds grow with the backlog after each fault, and
// are used again but not given back. So the heap follows the most rounds that were ever pending, not
// time: it is the same after a minute and after an hour. A round takes 1 kB, and what holds it grows by
// doubling. 113 MB were measured after a backlog of 27,000 rounds, and 125 MB after 39,000.
const (
	soakFixed    = 80 << 20 // bytes: the answers that are kept for repeated requests, models, buffers
	soakPerRound = 2 << 10  // bytes a round of the highest backlog
	soakProcess  = 64 << 20 // bytes of a process beside its heap
)

// bounded holds that the last third of the time needed no more memory than the highest backlog explains.
func (s *soak) bounded(samples []map[string]float64) {
	s.t.Helper()
	heap := soakFixed + soakPerRound*s.backlog
	for name, bound := range map[string]float64{liveHeap: heap,
		"process_resident_memory_bytes": 2*heap + soakProcess, // Go collects when the heap has doubled
	} {
		_, last := s.parts(samples, name)
		if is := last[len(last)/2]; is <= 0 || is > bound {
			s.t.Errorf("%s is %.0f, and at most %.0f with a backlog of %.0f rounds", name, is, bound, s.backlog)
		}
	}
}
