// Package logs reads logs of bandits' decisions in the formats that people have them in,
// and writes those that they want, all through one shape: [Record].
//
// A [Reader] streams: its memory does not grow with the log, but for a bounded number of ids by which it finds repeats.
// Every record that it reads gets exactly one class, so that read = events + duplicates + dangling + skipped +
// malformed ([Account]). What an operator replays joins outcomes with their events (package replay).
package logs
