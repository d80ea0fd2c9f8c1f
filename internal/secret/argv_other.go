//go:build !linux

package secret

import "os"

// TakeArguments returns the arguments of this process without the program's name, and
// reports whether there are passwords of URLs in them, which others can see.
func TakeArguments() (args []string, seen bool) {
	for _, arg := range os.Args[1:] {
		from, to := inArgument(arg)
		seen = seen || to > from
	}
	return os.Args[1:], seen
}
