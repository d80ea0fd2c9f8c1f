package scan

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strconv"

	"go.yaml.in/yaml/v3"
)

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)

// YAML returns the root of a file's one document, nil if there is nothing in it.
func YAML(file string, b []byte) (*yaml.Node, *LineError) {
	dec := yaml.NewDecoder(bytes.NewReader(b))
	var doc, more yaml.Node
	err := dec.Decode(&doc)
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err == nil {
		switch err = dec.Decode(&more); {
		case err == nil:
			return nil, AtNode(file, &more, "a second document starts here; one file is one document")
		case !errors.Is(err, io.EOF):
		case doc.Content[0].Kind == yaml.ScalarNode && doc.Content[0].Tag == "!!null":
			return nil, nil
		default:
			return doc.Content[0], nil
		}
	}
	e := &LineError{File: file, Msg: "not YAML: " + err.Error()}
	if at := yamlLine.FindStringSubmatch(err.Error()); at != nil {
		e.Line = 1 // the parser leaves the first line unsaid
		if at[1] != "" {
			e.Line, _ = strconv.ParseInt(at[1], 10, 64)
		}
		e.Msg = "not YAML: " + at[2]
	}
	return nil, e
}

// AtNode says what is wrong with a node; nil: with the file as a whole.
func AtNode(file string, n *yaml.Node, msg string) *LineError {
	e := &LineError{File: file, Msg: msg}
	if n != nil {
		e.Line, e.Column = int64(n.Line), int64(n.Column)
	}
	return e
}
