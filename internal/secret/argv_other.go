//go:build !linux

package secret

func mask(string, int, int) {} // others can see the arguments as they are
