package secret

import (
	"os"
	"strings"
	"unsafe"
)

// TakeArguments returns the arguments of this process without the program's name, and
// overwrites the passwords of URLs in them where other users look, in /proc and ps. It
// reports whether there were any: until now they could be seen. Call it once, first.
func TakeArguments() (args []string, seen bool) {
	for _, arg := range os.Args[1:] {
		args = append(args, strings.Clone(arg))
		if from, to := inArgument(arg); to > from {
			seen = true
			// The runtime's strings of os.Args are the process's own argument area, which is
			// what others are shown, and which a process may write.
			b := unsafe.Slice(unsafe.StringData(arg), len(arg))
			for i := from; i < to; i++ {
				b[i] = 'x'
			}
		}
	}
	return args, seen
}
