// Package egress is a session's only way out: an HTTP and CONNECT proxy on a unix socket that knows names, never
// addresses, and that says no to everything that is not written down for exactly this session.
//
// A Door serves one session. Requests in proxy form (CONNECT, or an absolute URL) are held to Rules. Requests in origin form
// go to a Route by the first part of their path: a credential route, whose header is added here and is never seen inside.
// What was decided is told to Config.Decided, one Decision each.
//
// A name is asked of the resolver once and pinned for the life of the Door; every address that it has must be a public one. Only the
// base of a Route, which the owner wrote, may be an address or a name of this machine; it is asked for anew with each connection.
//
// What is decided is decided by pure functions: Config.decide for a head, Answer.Addresses for what a name leads to,
// Answer.Hello for the first bytes of a tunnel. A tunnel carries TLS to exactly the host that it was asked for, and nobody looks into
// it; a host whose rule has methods or paths is looked into with an Authority that only this daemon's sandboxes trust.
//
// No request is mended: what two programs could read in two ways is refused. No redirect is followed.
package egress
