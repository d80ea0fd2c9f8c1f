// Package report shows what the replayer found: as one HTML file for people, which needs
// no network, and as JSON and CSV for programs. docs/reference/results.md names every key.
package report
