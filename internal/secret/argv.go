package secret

import (
	"os"
	"strings"
)

// TakeArguments returns the arguments of this process without the program's name, and, on Linux,
// overwrites the passwords of URLs in them where other users look, in /proc and ps. It
// reports whether there were any: until now they could be seen. Call it once, first.
func TakeArguments() (args []string, seen bool) {
	for _, arg := range os.Args[1:] {
		args = append(args, strings.Clone(arg))
		if from, to := inArgument(arg); to > from {
			seen = true
			mask(arg, from, to)
		}
	}
	return args, seen
}

// inArgument returns where in an argument of a program the password of a URL is; an empty range if it has none. It is
// rather too much than too little: up to the last @ before what may follow the hosts.
func inArgument(arg string) (from, to int) {
	begin := strings.Index(arg, "://")
	if begin < 0 {
		return 0, 0
	}
	begin += len("://")
	to = strings.LastIndexByte(arg, '@')
	if slash := strings.IndexByte(arg[begin:], '/'); to < begin || slash >= 0 && begin+slash < to &&
		!strings.Contains(arg[begin:begin+slash], ":") {
		return 0, 0
	}
	from = begin
	if colon := strings.IndexByte(arg[begin:to], ':'); colon >= 0 {
		from = begin + colon + 1
	}
	return from, to
}
