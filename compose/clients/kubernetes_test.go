package clients

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
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
	for _, want := range []string{"runAsNonRoot: true", "readOnlyRootFilesystem: true", "allowPrivilegeEscalation: false",
		"capabilities: {drop: [ALL]}", "seccompProfile: {type: RuntimeDefault}", "automountServiceAccountToken: false", "readinessProbe:", "livenessProbe:"} {
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
	for _, plant := range [][2]string{{"replicas: 2", "replicas: two"}, {"readinessProbe:", "readynessProbe:"}, {"minAvailable: 1", "minimum: 1"},
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
