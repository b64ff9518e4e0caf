// Package api is what crosses the daemon's socket: plain structs in JSON, paths, versions and frames.
//
// It knows no step of a change's path. A field is added, never given another
// meaning; a change that breaks a reader raises Version. What a version says
// is recorded in apitest, and the one before is understood as it was recorded.
package api

import (
	"fmt"
	"runtime/debug"
	"strconv"
)

// Version numbers the wire. A daemon that a keeper has talks with clients of its own number and of the one before; see Common.
const Version = 1

// Common is the version in which this program talks with one that has theirs: that of the older of both, which the newer one speaks too if it
// is one back. ok is false where there is none.
func Common(theirs int) (version int, ok bool) { return common(Version, theirs) }

func common(ours, theirs int) (version int, ok bool) {
	older, newer := min(ours, theirs), max(ours, theirs)
	return older, older > 0 && newer-older <= 1
}

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

// Differ says in what a home's daemon and a program are not of one build: by the version that each speaks, too, where that is another.
func Differ(home, daemon, daemonAPI, program, programAPI string) string {
	if daemonAPI != programAPI {
		daemon, program = fmt.Sprintf("%q (api %s)", daemon, daemonAPI), fmt.Sprintf("%q (api %s)", program, programAPI)
	} else {
		daemon, program = strconv.Quote(daemon), strconv.Quote(program)
	}
	return fmt.Sprintf("the daemon of home %q is build %s, this program is build %s", home, daemon, program)
}

// Modules names the Go modules that this program is linked of: those that a build of its source needs.
func Modules() (names []string) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil
	}
	for _, m := range info.Deps {
		names = append(names, m.Path)
	}
	return names
}
