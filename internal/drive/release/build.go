package release

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/pattern"
	programs "sallyport/internal/base/release"
	"sallyport/internal/drive/grounds"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/drive/live"
	"sallyport/internal/drive/work"
	"sallyport/internal/path/change"
	"sallyport/internal/path/layer"
	"sallyport/internal/path/proposal"
	"sallyport/internal/path/repository"
	"sallyport/internal/port/rehearsal"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/rule/config"
)

// Where a home has the source of its host, and what builds it.
const (
	sourceFolder = config.SourceFolder
	moduleFile   = sourceFolder + "/go.mod"
	buildFile    = sourceFolder + "/Makefile"
	builtFolder  = sourceFolder + "/bin"
	cacheFolder  = sourceFolder + "/.cache"
	groupsFolder = "groups"
)

// What says how a host is built: by the names by which make looks for its file, and the folder of what that calls.
var buildFiles = []string{buildFile, sourceFolder + "/GNUmakefile", sourceFolder + "/makefile", sourceFolder + "/scripts"}

// What nothing is built of: what a build leaves, which a change could bring along in the place of what its source makes; and what is said in groups.
var unbuilt = []string{cacheFolder, builtFolder, groupsFolder}

// buildCommand is what a build is called beside checks; buildLine is what is run, and its last words are what the release says of itself.
// The cache of compiled packages goes with the tree, and no repository is there for go to ask what it builds.
const (
	buildCommand = "build of the host"
	buildLine    = `cd ` + sourceFolder + ` && GOCACHE="$PWD/.cache" GOFLAGS="$GOFLAGS -buildvcs=false" VERSION=%s make build && bin/sallyport version --json`
)

// candidate is what a host would run by.
type candidate struct {
	dir   string // with its programs
	is    programs.Release
	fresh bool   // it was built for this change
	tried string // what was tried of it beside a rehearsal, a clause
}

// choose returns what the host would run by: the release that is named or, where the source changes, what is built of it; else what runs now.
func (rs *Rehearsals) choose(ctx context.Context, row change.Row, o grounds.Offer, release string) (c candidate, failed *proposal.CheckResult, err error) {
	if release != "" {
		return rs.find(release)
	}
	if slices.ContainsFunc(o.Edits, func(e git.Edit) bool { return strings.HasPrefix(e.Path, sourceFolder+"/") }) {
		found, err := o.Host.Lookup(ctx, o.Commit, []string{moduleFile})
		if err != nil {
			return c, nil, err
		}
		if !found[0].Absent() {
			return rs.build(ctx, row, o)
		}
	}
	c.dir, c.is, err = rs.Host.Running()
	if err != nil {
		err = fmt.Errorf("find the programs that run: %w", err)
	}
	return c, nil, err
}

// find finds a release that lies in the home, whole.
func (rs *Rehearsals) find(digest string) (c candidate, failed *proposal.CheckResult, err error) {
	releases := rs.Host.Releases()
	program, is, err := releases.Open(digest)
	if err != nil {
		return c, &proposal.CheckResult{Command: command, Why: err.Error()}, nil
	}
	return candidate{dir: filepath.Join(releases.Dir, digest), is: is, fresh: true}, nil, program.Close()
}

// build builds a release of the source as an offer has it, in a sandbox, by what built it before the change (SM-913): a change of the
// build itself counts from the next one on.
func (rs *Rehearsals) build(ctx context.Context, row change.Row, o grounds.Offer) (c candidate, failed *proposal.CheckResult, err error) {
	rs.Feed.Publish(change.Notice{Change: row.ID, At: ledger.Now(), Kind: "check", Text: buildCommand})
	no := func(took time.Duration, tail, format string, args ...any) (candidate, *proposal.CheckResult, error) {
		return candidate{}, &proposal.CheckResult{Command: buildCommand, Took: took, Why: fmt.Sprintf(format, args...), Tail: tail}, nil
	}
	staged, err := rs.stageBuild(ctx, row, o)
	if err != nil {
		return c, nil, err
	}
	if staged == "" {
		return no(0, "", "the home has no %s before the change, which says how its source is built", buildFile)
	}
	w := rs.Opener.With(row, o.Host, o.Judging)
	shown, err := rs.Opener.Show(ctx, w, layer.Stock{}, staged)
	if err != nil {
		return c, nil, err
	}
	defer rs.Opener.Discard(ctx, shown)
	place, clear, err := rs.takePlace(row, "build")
	if err != nil {
		return c, nil, err
	}
	defer clear()
	out := filepath.Join(place, "bin")
	err = rs.Ops.Do("rehearsal:place", func() error { return errors.Join(os.Mkdir(out, 0o700), own(out, w.Spec.Owner)) })
	if err != nil {
		return c, nil, err
	}

	run, err := rs.make(ctx, w, shown.Tree, out, o.Commit)
	if err != nil {
		return c, nil, fmt.Errorf("build the host: %w", err)
	}
	if !run.OK() {
		return no(run.Took, run.Tail, "%s", rs.broken(run))
	}
	says, err := SaysOf(run.Tail)
	if err != nil {
		return no(run.Took, run.Tail, "what was built does not say what it is: %s", err)
	}
	_, now, err := rs.Host.Running()
	if err != nil {
		return c, nil, err
	}
	releases := rs.Host.Releases()
	c.is, err = releases.Put(out, programs.Release{Build: says.Build, Schema: says.Schema, Source: string(o.Commit), Image: now.Image, Built: ledger.Now()})
	if errors.Is(err, programs.ErrNoProgram) {
		return no(run.Took, run.Tail, "what was built cannot be kept as a release: %s", err)
	}
	c.dir, c.fresh = filepath.Join(releases.Dir, c.is.Digest), true
	return c, nil, err
}

// stageBuild makes the commit that is built: an offer's source, with what builds it as it stood before; "" if nothing did.
func (rs *Rehearsals) stageBuild(ctx context.Context, row change.Row, o grounds.Offer) (git.OID, error) {
	before, err := o.Host.Lookup(ctx, o.Base, buildFiles)
	if err != nil || before[0].Absent() {
		return "", err
	}
	var writes []git.Write // without a mode nothing is there
	for i, path := range buildFiles {
		writes = append(writes, git.Write{Path: path, Mode: before[i].Mode, OID: before[i].OID})
	}
	for _, path := range unbuilt {
		writes = append(writes, git.Write{Path: path})
	}
	who := rs.Author
	who.At = row.Created
	ref := repository.RefRoot(row.ID) + "build"
	made, err := o.Host.Import(ctx, "rehearsal:commit", git.Import{
		Ref: ref, From: o.Commit, Parents: []git.OID{o.Commit}, Message: "What is built\n", Author: who, Committer: who,
		Writes: writes,
	})
	if err != nil {
		return "", err
	}
	return made.OID, repository.DropRefs(ctx, o.Host, map[string]git.OID{ref: made.OID}) // no cleaning is as quick as a build
}

// make runs the build. It reaches no network, unless the home lets builds reach package registries.
func (rs *Rehearsals) make(ctx context.Context, w work.Work, tree sandbox.Tree, out string, commit git.OID) (live.Ran, error) {
	s := live.Subject{ID: w.Row.ID.Subject(), Owner: w.Spec.Owner, Path: Person().Path, Home: Person().Home, Profiles: []string{"go"}, Timeout: wholeMax}
	name := id.NewSession("build")
	var way live.Way
	if rs.Host.Registries() {
		var err error
		if way, err = rs.Ways.Open(ctx, s, live.Outgoing{Session: name, Setup: true, Fetch: true}); err != nil {
			return live.Ran{}, err
		}
	}
	defer way.Close()
	tree.GitDir, tree.Objects = "", nil
	runner := live.CommandRunner{Defaults: rs.Defaults, Sandbox: rs.Sandbox, Secrets: rs.Secrets}
	return runner.Run(ctx, s, live.Command{
		Name: name, Line: fmt.Sprintf(buildLine, "home-"+string(commit[:12])), Way: way, Tree: tree,
		Own: []sandbox.Bind{{Source: out, Target: filepath.Join(sandbox.Mountpoint, builtFolder), Writable: true}},
	})
}

// Person is whose programs and modules a build has: the daemon's own.
func Person() sandbox.Person { return sandbox.Person{Path: os.Getenv("PATH"), Home: os.Getenv("HOME")} }

// saidLines is how many of the last lines of a build are told with why it failed.
const saidLines = 3

// broken says why a build failed, in its own last words, and what this machine lacks where that is why.
func (rs *Rehearsals) broken(run live.Ran) string {
	why := run.Why()
	if last := run.LastLines(saidLines); last != "" {
		why += "; its last lines: " + inert.Short(last, saidLines*saidMax)
	}
	source := filepath.Join(rs.Defaults.Home, sourceFolder)
	if lack, fix := rehearsal.LacksTool(Person(), source); lack != "" {
		return why + "; " + lack + ": " + fix
	}
	if rs.Host.Registries() {
		return why
	}
	return why + missing(run.Tail, source)
}

// unfound are the words by which go names a module that it does not find where it may look; it does not name one that go.mod has already.
var unfound = pattern.Of(`(?:([^\s:]+@[^\s:]+): )?module lookup disabled by GOPROXY=off|no required module provides package ([^\s;]+)|missing go\.sum entry for (?:module providing package |go\.mod file for )?([^\s;]+)`)

// missing names the module that a build of a source has not found, and how it gets there; "" if that was not what failed.
func missing(tail, source string) string {
	m := unfound().FindStringSubmatch(tail)
	if m == nil {
		return ""
	}
	what, fetch := strings.Join(m[1:], ""), "have them fetched here"
	switch {
	case m[1] != "":
		fetch = "run `" + rehearsal.FetchModules(Person(), source, m[1]) + "`"
	case what == "":
		what, fetch = "a module", "run `"+rehearsal.FetchModules(Person(), source)+"`"
	}
	return fmt.Sprintf("; it needs %s, which is not among the Go modules of this machine: %s, or write `host: {build: {registries: true}}` into sallyport.yaml", what, fetch)
}

// Said is what a program says of itself.
type Said struct {
	Build  string `json:"build"`
	Schema int    `json:"schema"`
}

// SaysOf reads the last document of an output.
func SaysOf(tail string) (s Said, err error) {
	at := strings.LastIndex("\n"+tail, "\n{")
	if at < 0 {
		return s, fmt.Errorf("it printed no document")
	}
	if err := json.Unmarshal([]byte(tail[at:]), &s); err != nil {
		return s, err
	}
	if s.Schema <= 0 {
		return s, fmt.Errorf("it names no schema of the database")
	}
	return s, nil
}
