// Package door answers requests by HTTP: a shell over the functions that answer them on a bus. What it takes and gives
// is the codec's, what it promises stands in openapi.yaml.
package door
