// Package peer says who is at the other end of a Unix socket: its clients ask about the daemon as the daemon asks about them.
package peer

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// UID asks the kernel (SO_PEERCRED) as whom the other end was opened; false without an answer, as of what is no Unix socket.
func UID(c net.Conn) (uid int, ok bool) {
	conn, ok := c.(syscall.Conn)
	if !ok {
		return 0, false
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, false
	}
	var cred *unix.Ucred
	if ctrl := raw.Control(func(fd uintptr) {
		cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); ctrl != nil || err != nil {
		return 0, false
	}
	return int(cred.Uid), true
}
