// Package api is what crosses the daemon's socket: plain structs in JSON, paths, versions and frames.
//
// It knows no step of a change's path. A field is added, never given another
// meaning; a change that breaks a reader raises Version.
package api

import (
	"runtime/debug"
)

// Version numbers the wire. Client and daemon with different numbers do not talk.
const Version = 1

// Headers of every request and answer; they name who speaks.
const (
	HeaderVersion = "Sallyport-Api"
	HeaderBuild   = "Sallyport-Build"
	// TrailerProblem carries a Problem as JSON when a stream broke after its first byte.
	TrailerProblem = "Sallyport-Problem"
)

// ShellProtocol is the name that a shell's connection is upgraded to.
const ShellProtocol = "sallyport-shell/1"

// BodyBytesMax bounds the body of a request: a replay script of 1 MiB in base64, and lists.
const BodyBytesMax = 4 << 20

// build is set by the linker: -ldflags "-X sallyport/internal/door/api.build=v1.2.3".
var build string

// Build names this program's build: the release, or the commit it was made from, or "devel".
func Build() string {
	if build != "" {
		return build
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "devel"
	}
	var revision, dirty string
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision" && len(s.Value) >= 12:
			revision = "-" + s.Value[:12]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "-dirty"
		}
	}
	return "devel" + revision + dirty
}
