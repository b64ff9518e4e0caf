// Package socket is the daemon's door: HTTP with JSON and server-sent events on a unix socket.
//
// Who asks is read from the kernel (SO_PEERCRED), never from a request: only the
// home's owner and root are heard. What answers a verb (api/table.go) is a type by noun:
// it translates between package api and the part that does it, an interface, and decides nothing.
package socket
