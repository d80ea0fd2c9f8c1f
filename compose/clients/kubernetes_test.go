package clients

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

// unzipped opens a file that is compressed by gzip.
func unzipped(t *testing.T, path string) io.Reader {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// readSchema reads a JSON schema that is kept compressed, without its descriptions.
func readSchema(t *testing.T, path string) (doc map[string]any) {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(unzipped(t, path))
	if err != nil {
		t.Fatal(err)
	}
	return v.(map[string]any)
}

// documents reads a file of YAML documents as JSON values.
func documents(t *testing.T, text []byte) (out []any) {
	t.Helper()
	for d := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var v any
		if err := d.Decode(&v); errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if v, err = jsonschema.UnmarshalJSON(bytes.NewReader(b)); err != nil {
			t.Fatal(err)
		}
		out = append(out, v)
	}
}

// kubernetes judges objects by the schemas of Kubernetes 1.34 as its API server does with
// strict validation of fields. They are those of the package kubernetes-validate 1.37.0
// on PyPI, made from Kubernetes' own OpenAPI document: the kinds that are used here.
type kubernetes map[string]*jsonschema.Schema

func newKubernetes(t *testing.T) kubernetes {
	t.Helper()
	doc := readSchema(t, "testdata/kubernetes-1.34.json.gz")
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	if err := c.AddResource("kubernetes.json", doc); err != nil {
		t.Fatal(err)
	}
	k := kubernetes{}
	for kind, name := range doc["kinds"].(map[string]any) {
		s, err := c.Compile("kubernetes.json#/$defs/" + name.(string))
		if err != nil {
			t.Fatal(err)
		}
		k[kind] = s
	}
	return k
}

func (k kubernetes) check(object any) error {
	kind, _ := object.(map[string]any)["kind"].(string)
	if k[kind] == nil {
		return fmt.Errorf("no schema of %q", kind)
	}
	return k[kind].Validate(object)
}

// podFlaws returns what is wrong with a manifest that the schemas allow.
func podFlaws(manifest string) (out []string) {
	for _, want := range []string{"runAsNonRoot: true", "readOnlyRootFilesystem: true",
		"allowPrivilegeEscalation: false",
		"capabilities: {drop: [ALL]}", "seccompProfile: {type: RuntimeDefault}", "automountServiceAccountToken: false",
		"readinessProbe:", "livenessProbe:"} {
		if n, pods := strings.Count(manifest, want), strings.Count(manifest, "      containers:\n"); n != pods {
			out = append(out, fmt.Sprintf("%q in %d of %d pods", want, n, pods))
		}
	}
	return out
}

func TestKubernetesManifest(t *testing.T) {
	text, err := os.ReadFile("../kubernetes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	k := newKubernetes(t)
	kinds := map[string]int{}
	for i, object := range documents(t, text) {
		if err := k.check(object); err != nil {
			t.Errorf("object %d: %v", i, err)
		}
		kinds[object.(map[string]any)["kind"].(string)]++
	}
	if kinds["Deployment"] != 1 || kinds["StatefulSet"] != 1 || kinds["NetworkPolicy"] != 2 {
		t.Errorf("objects %v", kinds)
	}
	if f := podFlaws(string(text)); f != nil {
		t.Error(f)
	}
	for _, plant := range [][2]string{{"replicas: 2", "replicas: two"}, {"readinessProbe:", "readynessProbe:"},
		{"minAvailable: 1", "minimum: 1"},
		{"containerPort: 9464", "containerPort: admin"}, {"maxSurge: 0", "maxSurge: [0]"}} {
		bad := strings.Replace(string(text), plant[0], plant[1], 1)
		found := bad == string(text)
		for _, object := range documents(t, []byte(bad)) {
			found = found || k.check(object) != nil
		}
		if !found || bad == string(text) {
			t.Errorf("%s is accepted", plant[1])
		}
	}
}

// userFlaws returns what the manifest, whose NATS server has the users of nats.conf, lacks
// of them: passwords, secrets that the commands at its top make, and a user for deciders.
func userFlaws(manifest, config string) (out []string) {
	if !strings.Contains(manifest, "[nats-server, --config=/etc/nats/nats.conf,") {
		out = append(out, "the NATS server has no users")
	}
	for _, m := range regexp.MustCompile(`\$([A-Z]+_PASSWORD)`).FindAllStringSubmatch(config, -1) {
		if !strings.Contains(manifest, "- name: "+m[1]+"\n") {
			out = append(out, "no "+m[1]+", which nats.conf wants")
		}
	}
	head, objects, _ := strings.Cut(strings.ReplaceAll(manifest, "\\\n#", ""), "\napiVersion")
	for _, m := range regexp.MustCompile(`secretKeyRef: \{name: ([a-z-]+), key: ([a-z-]+)\}`).FindAllStringSubmatch(
		objects, -1) {
		if !regexp.MustCompile(`create secret generic ` + m[1] + ` .*--from-literal=` + m[2] + `=`).MatchString(head) {
			out = append(out, "nobody makes "+m[2]+" of the secret "+m[1])
		}
	}
	for _, m := range regexp.MustCompile(`secretName: ([a-z-]+)`).FindAllStringSubmatch(objects, -1) {
		if !strings.Contains(head, "create secret generic "+m[1]+" ") {
			out = append(out, "nobody makes the secret "+m[1])
		}
	}
	user := regexp.MustCompile(`\{name: HINDSIGHT_NATS_USER, value: ([a-z]+)\}`).FindStringSubmatch(objects)
	if user == nil || !strings.Contains(config, "{user: "+user[1]+", ") {
		out = append(out, "deciders are nobody on the NATS server")
	}
	return out
}

func TestKubernetesUsers(t *testing.T) {
	manifest, config := contents(t, "../kubernetes.yaml"), contents(t, "../nats.conf")
	if f := userFlaws(manifest, config); f != nil {
		t.Error(f)
	}
	for _, plant := range [][2]string{{"--config=/etc/nats/nats.conf", "--jetstream"},
		{"- name: PIPELINE_PASSWORD", "- name: PIPE"},
		{"--from-literal=requester=", "--from-literal=asker="}, {"value: service}", "value: decider}"},
		{"create secret generic hindsight-keys", "create secret generic keys"}} {
		if f := userFlaws(strings.Replace(manifest, plant[0], plant[1], 1), config); len(f) != 1 {
			t.Errorf("%s: %q", plant[1], f)
		}
	}
}
