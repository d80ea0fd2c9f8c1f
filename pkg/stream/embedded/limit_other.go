//go:build !unix

package embedded

import "errors"

func freeBytes(string) (int64, error) {
	return 0, errors.New("free disk space is not known on this system; set a limit")
}
