// Package daemon is what all of Hindsight's programs share as processes: flags with a fallback to the environment,
// logging, signals, exit codes, the version, and the secret seed file.
//
// A program's main is one line:
//
//	func main() { daemon.Main("decider", command) }
//
// where command builds its cobra command from an [Env]. Everything a program touches of its process comes in that Env,
// so tests run whole programs in process with [Run].
//
// # Exit codes
//
// 0 done, 1 failed, 2 wrong usage, 130 interrupted; a command that has more of them returns an [ExitError]. The first
// SIGINT or SIGTERM cancels the command's context; a second one kills the process at once. A command that ends well
// after it was told to stop returns nil and the process 0; one that could not finish its work returns the context's
// error and the process 130.
package daemon
