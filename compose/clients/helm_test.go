package clients

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// render returns what the chart makes of values, and what Helm says of an error.
func render(t *testing.T, values ...string) (manifest, errors string) {
	t.Helper()
	helm := os.Getenv("HINDSIGHT_HELM")
	if helm == "" {
		var err error
		if helm, err = exec.LookPath("helm"); err != nil {
			t.Skip("helm is not here: .ci/helm installs it and runs this")
		}
	}
	args := []string{"template", "hindsight", "../helm", "--namespace=hindsight"}
	for _, v := range values {
		args = append(args, "--set", v)
	}
	cmd := exec.Command(helm, args...)
	// Helm looks for plug-ins and repositories in these.
	cmd.Env = append(os.Environ(), "HELM_CONFIG_HOME="+t.TempDir(), "HELM_CACHE_HOME="+t.TempDir(),
		"HELM_DATA_HOME="+t.TempDir())
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", stderr.String() + err.Error()
	}
	text := strings.TrimPrefix(string(out), "---\n")
	return regexp.MustCompile(`(?m)^# Source: .*\n`).ReplaceAllString(text, ""), ""
}

// kubernetes.yaml is what the chart makes of its own values.
func TestChartMakesManifest(t *testing.T) {
	made, errors := render(t, "namespace=true")
	if *update && errors == "" {
		if err := os.WriteFile("../kubernetes.yaml", []byte(made), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if made != contents(t, "../kubernetes.yaml") {
		t.Errorf("kubernetes.yaml is not what the chart makes; write it with: .ci/helm -update %s", errors)
	}
}

// With each kind of log the chart makes objects that Kubernetes takes, pods that are as locked
// up as those of kubernetes.yaml, and a command line that the decider takes.
func TestChart(t *testing.T) {
	render(t) // skips
	k, decider := newKubernetes(t), filepath.Join(t.TempDir(), "decider")
	run(t, "go", "build", "-o", decider, "../../cmd/decider")
	for _, c := range []struct {
		values []string
		pods   int
		has    []string
		hasNot []string
	}{
		{[]string{"log=embedded", "storage=5Gi"}, 1, []string{"kind: StatefulSet",
			"--log=embedded:/var/lib/hindsight\n", "storage: 5Gi", "mountPath: /var/lib/hindsight"},
			[]string{"NATS_", "nats:4222", "name: nats", "kind: Deployment", "PodDisruptionBudget"}},
		{[]string{"log=nats", "replicas=5"}, 2, []string{"replicas: 5", "--log=nats://nats:4222\n", "kind: " +
			"PodDisruptionBudget"}, []string{"kafka", "kind: Namespace"}},
		{[]string{"nats.address=nats://mine:4222", "args={--nats-replicas=3,--nats-ca=/ca}"}, 1,
			[]string{"--log=nats://mine:4222\n", "- --nats-replicas=3\n"}, []string{"kind: StatefulSet",
				"nats-server"}},
		{[]string{"log=kafka", "kafka.address=kafkas://k:9093", "kafka.user=shop"}, 2,
			[]string{"--log=kafkas://k:9093\n",
				"--nats=nats://nats:4222\n", "--kafka-user=shop\n", "name: HINDSIGHT_KAFKA_PASSWORD\n"}, nil},
	} {
		manifest, errors := render(t, c.values...)
		if errors != "" {
			t.Errorf("%v: %s", c.values, errors)
			continue
		}
		for _, object := range documents(t, []byte(manifest)) {
			if err := k.check(object); err != nil {
				t.Errorf("%v: %v", c.values, err)
			}
		}
		if f := podFlaws(manifest); f != nil || strings.Count(manifest, "      containers:\n") != c.pods {
			t.Errorf("%v: %v in\n%s", c.values, f, manifest)
		}
		for _, want := range c.has {
			if !strings.Contains(manifest, want) {
				t.Errorf("%v: no %q", c.values, want)
			}
		}
		for _, not := range c.hasNot {
			if strings.Contains(manifest, not) {
				t.Errorf("%v: %q", c.values, not)
			}
		}
		var args []string
		for _, m := range regexp.MustCompile(`(?m)^ +- (--[a-z].*?)(?: #.*)?$`).FindAllStringSubmatch(manifest, -1) {
			args = append(args, m[1])
		}
		if out, err := exec.Command(decider, append(args, "--help")...).CombinedOutput(); err != nil || len(args) < 10 {
			t.Errorf("%v: decider %q: %v %s", c.values, args, err, out)
		}
	}
	for values, want := range map[string]string{"log=kafak": "/log", "log=kafka": "kafka.address",
		"replicas=0": "replicas", "replica=3": "replica", "storage=20GB": "storage", "kafka.address=k:9093": "kafka"} {
		if _, errors := render(t, values); !strings.Contains(errors, want) {
			t.Errorf("%s: %q", values, errors)
		}
	}
}
