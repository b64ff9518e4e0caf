// Package socket is the daemon's door: HTTP with JSON and server-sent events on a unix socket.
//
// Who asks is read from the kernel (SO_PEERCRED), never from a request: only the
// home's owner and root are heard. Handlers translate between package api and
// control.Verbs and decide nothing.
package socket
