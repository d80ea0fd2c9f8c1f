// Package model reads the model file: the one configuration of a bandit. It
// parses, validates, writes the canonical form, and builds the rules and the
// learner that the file names.
package model
