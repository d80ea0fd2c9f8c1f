package main

import (
	"crypto/tls"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"hindsight/pkg/stream/kafkatest"
	"hindsight/pkg/stream/tlstest"
)

// TestKafkaTLS runs a decider and a joiner apart from it over TLS, as a user: their
// group does so too. Certificates of another authority are refused.
func TestKafkaTLS(t *testing.T) {
	ours, theirs := tlstest.NewAuthority(t), tlstest.NewAuthority(t)
	cert, key := ours.Issue("server")
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	addrs, _ := kafkatest.Fake(t, 1, kfake.TLS(&tls.Config{Certificates: []tls.Certificate{pair}}), kfake.EnableSASL(),
		kfake.Superuser("SCRAM-SHA-512", "shop", "secret"))
	dir := t.TempDir()
	args := []string{"--log", "kafkas://shop:secret@" + addrs[0], "--model", writeModel(t, dir, shop), "--seed-file",
		filepath.Join(dir, "seed"), "--admin", "none"}
	got := finish(t, decider(t, append(args, "--kafka-ca", theirs.CA)...))
	if got.code != 1 || !strings.Contains(got.stderr, "certificate") || !strings.Contains(got.stderr, "--kafka-ca") ||
		strings.Contains(got.stderr, "secret") {
		t.Errorf("another authority: exit code %d:\n%s", got.code, got.stderr)
	}
	args = append(args, "--kafka-ca", ours.CA)
	j := start(t, feedbackJoiner(t, args...)) // waits for the topics
	d := start(t, decider(t, append(args, "--joiner=false", "--nats", "none")...)).ready()
	j.ready()
	d.stop(patience)
	j.stop(patience)
}
