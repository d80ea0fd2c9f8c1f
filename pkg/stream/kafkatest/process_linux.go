package kafkatest

import "syscall"

// ownGroup keeps the terminal's signals away.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// childOf does so too, and ends the process when the thread ends that started it.
func childOf() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// mountSmall mounts a file system in memory of so many MiB.
func mountSmall(dir string, megabytes int) error {
	return syscall.Mount("kafkatest", dir, "tmpfs", 0, sizeOption(megabytes))
}
