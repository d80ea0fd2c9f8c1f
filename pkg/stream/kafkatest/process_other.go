//go:build unix && !linux

package kafkatest

import (
	"errors"
	"syscall"
)

func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// Nothing here ends a child with its parent.
func childOf() *syscall.SysProcAttr { return ownGroup() }

func mountSmall(string, int) error { return errors.ErrUnsupported }
