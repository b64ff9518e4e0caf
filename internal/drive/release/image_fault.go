package release

import (
	"strings"

	"sallyport/internal/base/inert"
	"sallyport/internal/base/pattern"
	"sallyport/internal/drive/live"
)

// saidMax is how many bytes of a line of a builder's are told in a sentence.
const saidMax = 200

// How a builder says what it does, and what failed; and what it says beside that, which tells nobody anything.
var (
	stepped = pattern.Of(`^(?:\[\d+/\d+\] )?STEP (\d+/\d+): (.*)$`)
	faulted = pattern.Of(`^building at STEP "(.*?)": (.*)$`)
	bare    = pattern.Of(`^(?:while running runtime: )?exit status \d+$`)
	chatter = pattern.Of(`^(?:subprocess exited |process exited with error|time="|\w{4}\[\d+\])`)
)

// stumbled says at which step of a Dockerfile a build failed, and the line that says why: the builder's, or the last one of a command that
// failed; "" if the output tells neither.
func stumbled(tail string) string {
	var number, step, said, fault string
	for line := range strings.Lines(tail) {
		line = strings.TrimSpace(line)
		line = strings.TrimSpace(line[strings.LastIndexByte(line, '\r')+1:]) // of what shows how far it is, the last
		if m := stepped().FindStringSubmatch(line); m != nil {
			number, step, said = m[1]+" ", m[2], ""
			continue
		}
		if words, is := strings.CutPrefix(line, "Error: "); is {
			if fault != "" {
				said = fault // a command's own
			}
			fault = words
			continue
		}
		if line != "" && !chatter().MatchString(line) {
			said = line
		}
	}
	why := fault
	if rest, is := strings.CutPrefix(fault, `building at STEP "`+step+`": `); is && step != "" {
		why = rest
	} else if m := faulted().FindStringSubmatch(fault); m != nil {
		if why = m[2]; step == "" { // it printed more since than is kept
			step = m[1]
		}
	}
	if said != "" && (why == "" || bare().MatchString(why)) {
		why = said
	}
	text := ""
	if step != "" {
		text = ", at step " + number + "(" + inert.Short(step, saidMax) + ")"
	}
	if why != "" {
		text += ": " + inert.Short(why, saidMax)
	}
	return text
}

// unreached says what a builder needs that the machine does not have; "" if that was not what failed.
func unreached(tail string, registries bool) string {
	absent := strings.Contains(tail, "image not known") || strings.Contains(tail, "no such image") ||
		strings.Contains(tail, "not found in local") || strings.Contains(tail, "not available locally")
	if !absent || registries {
		return ""
	}
	return "; it stands on an image that it may not have here: fetch that (sudo buildah pull NAME) and write `host: {build: {images: [NAME]}}` into sallyport.yaml, or `registries: true` in its place"
}

// imageTry is run in a sandbox that starts from an image: a shell says that it runs, and then git does.
const (
	shellRuns = "a shell runs here"
	imageTry  = "echo " + shellRuns + " && git --version"
)

// What an image has to have, and how it gets it.
const (
	needsShell = "agents need a shell: have image/Dockerfile stand on an image that has one, or copy one to /bin/sh with the libraries that it needs"
	needsGit   = "agents need git: have image/Dockerfile install it, as by RUN apt-get install -y git, or stand on an image that has it"
)

// lacks says which of what every agent needs does not run in an image.
func lacks(run live.Ran) string {
	if strings.Contains(run.Tail, shellRuns) {
		return "a shell runs in a sandbox that starts from it, and git does not: " + run.Why() + "; " + needsGit
	}
	return "its /bin/sh does not run in a sandbox that starts from it: " + run.Why() + "; " + needsShell
}
