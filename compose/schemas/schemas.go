// Package schemas holds the JSON Schemas of a model's topics. Its test makes them from the codec's
// types: go test ./compose/schemas -update.
package schemas

import "embed"

// Files are the schemas, one a topic: decisions.json, …. A record is one of its $defs.
//
//go:embed *.json
var Files embed.FS
