package secret

import "unsafe"

// mask overwrites a part of one of the process's arguments. The runtime's strings of os.Args are
// the process's own argument area, which is what others are shown, and which a process may write.
func mask(arg string, from, to int) {
	b := unsafe.Slice(unsafe.StringData(arg), len(arg))
	for i := from; i < to; i++ {
		b[i] = 'x'
	}
}
