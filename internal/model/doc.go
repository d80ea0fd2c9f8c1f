// Package model reads the model file, the one configuration of a bandit: it parses, checks, writes the
// canonical form, and builds the rules and the learner that the file names.
//
//	keys.go      the table of top-level keys, each read and written by its row; values with a form of their own
//	fields.go    what a row is, and how numbers, texts and choices are read, with their messages
//	parse.go     YAML, errors with their places, and what depends on several keys
//	check.go     values that do not go together
//	oracles.go   the interface that a kind of oracle implements, one file a kind: aggregate.go, linear.go,
//	             shared.go, hedge.go; features.go has what the first three share, cost.go what they cost
//	learner.go   learners and how much they explore; exp4.go, certificate.go
//	class.go     class files, one file a kind: rowclass.go, tableclass.go, mixedclass.go; policyfile.go
//
// A kind of oracle is added by its file and its line in oracleKinds.
package model
