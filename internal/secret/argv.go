package secret

import "strings"

// inArgument returns where in an argument of a program the password of a URL is; an
// empty range if it has none. It is rather too much than too little: up to the last @
// before what may follow the hosts.
func inArgument(arg string) (from, to int) {
	begin := strings.Index(arg, "://")
	if begin < 0 {
		return 0, 0
	}
	begin += len("://")
	to = strings.LastIndexByte(arg, '@')
	if slash := strings.IndexByte(arg[begin:], '/'); to < begin || slash >= 0 && begin+slash < to && !strings.Contains(arg[begin:begin+slash], ":") {
		return 0, 0
	}
	from = begin
	if colon := strings.IndexByte(arg[begin:to], ':'); colon >= 0 {
		from = begin + colon + 1
	}
	return from, to
}
