package clients

import (
	"os"
	"slices"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestPrometheusSeesAll holds that Prometheus looks at every service that has admin pages,
// with their token, and that the services it and Grafana read from are mounted.
func TestPrometheusSeesAll(t *testing.T) {
	p, err := stack(t, asItIs)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for name, s := range p.Services {
		if slices.Contains(s.Command, "--admin=0.0.0.0:9464") {
			want = append(want, name)
		}
	}
	slices.Sort(want)
	b, err := os.ReadFile("../prometheus.yml")
	if err != nil {
		t.Fatal(err)
	}
	var c struct {
		Scrape []struct {
			Authorization struct {
				File string `yaml:"credentials_file"`
			} `yaml:"authorization"`
			DNS []struct {
				Names []string `yaml:"names"`
				Port  int      `yaml:"port"`
			} `yaml:"dns_sd_configs"`
		} `yaml:"scrape_configs"`
	}
	if err := yaml.Unmarshal(b, &c); err != nil {
		t.Fatal(err)
	}
	dns := c.Scrape[0].DNS[0]
	if slices.Sort(dns.Names); !slices.Equal(dns.Names, want) || dns.Port != 9464 || len(want) == 0 {
		t.Errorf("Prometheus looks at %v, port %d; %v have admin pages", dns.Names, dns.Port, want)
	}
	if token := p.Services["prometheus"].Configs; len(token) != 1 || token[0].Target != "/etc/prometheus/"+
		c.Scrape[0].Authorization.File {
		t.Errorf("the token is at %+v, and read from %s", token, c.Scrape[0].Authorization.File)
	}
	for _, name := range []string{"prometheus", "grafana"} {
		for _, v := range p.Services[name].Volumes {
			if v.Type == "bind" {
				if _, err := os.Stat(v.Source); err != nil {
					t.Error(err)
				}
			}
		}
	}
}
