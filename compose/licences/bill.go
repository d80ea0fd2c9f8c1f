package main

import (
	"encoding/json"
	"io"
	"strings"
)

// component is a part in CycloneDX's words.
type component struct {
	Type     string  `json:"type"`
	Ref      string  `json:"bom-ref"`
	Name     string  `json:"name"`
	Version  string  `json:"version"`
	URL      string  `json:"purl,omitempty"`
	Licences []named `json:"licenses,omitempty"`
}

type named struct {
	Licence struct {
		ID string `json:"id"` // as SPDX has it
	} `json:"license"`
}

// writeBill writes a bill of materials that is the same whenever and wherever it is written.
func writeBill(w io.Writer, version string, parts []part) error {
	var bill struct {
		Format   string `json:"bomFormat"`
		Spec     string `json:"specVersion"`
		Version  int    `json:"version"`
		Metadata struct {
			Component component `json:"component"`
		} `json:"metadata"`
		Components []component `json:"components"`
	}
	bill.Format, bill.Spec, bill.Version = "CycloneDX", "1.6", 1
	bill.Metadata.Component = component{Type: "application", Ref: "hindsight@" + version, Name: "hindsight",
		Version: version}
	for _, p := range parts {
		c := component{Type: "library", Ref: p.purl, Name: p.name, Version: p.version, URL: p.purl}
		for id := range strings.SplitSeq(p.ids(), ", ") {
			var l named
			l.Licence.ID = id
			c.Licences = append(c.Licences, l)
		}
		bill.Components = append(bill.Components, c)
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(&bill)
}
