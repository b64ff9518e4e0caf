// Package release makes of a change of the host a candidate, and tries it before anybody is asked: in isolation, on a copy of the state
// that holds nobody's words, by the keeper that will judge it live (SM-913).
package release

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/git"
	"sallyport/internal/base/image"
	"sallyport/internal/base/problem"
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
	"sallyport/internal/rule/secret"
	"sallyport/internal/store"
	"sallyport/internal/who/group"
)

// How patient a rehearsal is with a candidate. A trial gives it as long to be ready, and more where its database took longer.
const (
	readyMax  = 10 * time.Minute // it may have a large database to bring up to date
	answerMax = time.Minute
	endMax    = 10 * time.Second
	wholeMax  = 30 * time.Minute // of all of it
)

// Host is what runs now.
type Host interface {
	// Running returns the folder that has the programs which run now, and what is known of them.
	Running() (dir string, is programs.Release, err error)
	// Releases is where the home keeps its releases.
	Releases() programs.Folder
	// Images is where the home keeps the images that sandboxes start from.
	Images() image.Folder
	// Builder says who builds an image here.
	Builder() Builder
	// Bases writes those of the named images that this machine has to a folder, as archives whose names end in .tar.
	Bases(ctx context.Context, names []string, to string) error
	// Registries reports whether a build may reach package registries.
	Registries() bool
	// Copy writes the database as it is to a new file, without what anybody said or wrote, for a home whose owner is uid.
	Copy(ctx context.Context, to string, uid int) error
	// TryRunner tries the runner of a folder of programs in sandboxes of the host that runs now. An err is the machine's fault.
	TryRunner(ctx context.Context, dir string) (sandbox.Tryout, error)
}

// Parts is what rehearsals stand on.
type Parts struct {
	*ledger.Ledger
	Opener   work.Opener
	Defaults live.Defaults
	Ways     live.Ways
	Sandbox  sandbox.Driver
	Host     Host
	Secrets  *secret.Scanner
	Author   git.Signature // of commits of the host's own; its At is ignored
	Folder   string        // where they take place
	Ops      disk.Ops
}

// Rehearsals try candidates.
type Rehearsals struct{ Parts }

// New returns Rehearsals.
func New(p Parts) *Rehearsals { return &Rehearsals{p} }

// What a rehearsal is called beside checks, and what none can show.
const command = "rehearsal of the host"

var never = []string{
	"no platform and no model is reached",
	"agents run without sandboxes of their own, and only echo runs",
	"no change takes a step, and no group but a new one is there",
	"no file goes back",
}

// What is said of a new runner beside that.
const (
	runnerSame     = "its sallyport-runner is the one of now, byte for byte"
	runnerLauncher = "the new sallyport-runner builds no sandbox: that part of it runs outside of every sandbox, and is met in the trial"
	runnerUntried  = "the new sallyport-runner is met in the trial"
)

// Rehearse tries what an offer makes of the host. failed says in what the candidate failed, as a check that did; an err is the machine's
// fault. release is the one that was approved for it; "" = it is to be found, or built.
func (rs *Rehearsals) Rehearse(ctx context.Context, row change.Row, o grounds.Offer, release string) (host *proposal.Host,
	failed *proposal.CheckResult, err error) {
	if release == "" {
		if err := rs.announce(ctx, row, o); err != nil {
			return nil, nil, err
		}
	}
	c, failed, err := rs.choose(ctx, row, o, cmp.Or(row.Request.Release, release))
	if failed != nil || err != nil {
		return nil, failed, err
	}
	unbuilt := ""
	if row.Request.Release == "" && release == "" {
		if c, unbuilt, failed, err = rs.withImage(ctx, row, o, c); failed != nil || err != nil {
			return nil, failed, err
		}
	}
	if row.Request.Release == "" && release != "" {
		if failed, err = rs.sameImage(ctx, row, o, c); failed != nil || err != nil {
			return nil, failed, err
		}
	}
	_, now, err := rs.Host.Running()
	if err != nil {
		return nil, nil, err
	}
	rs.Feed.Publish(change.Notice{Change: row.ID, At: ledger.Now(), Kind: "check", Text: command})
	began := time.Now()
	report, runner, err := rs.rehearse(ctx, row, o, c)
	took := time.Since(began).Round(time.Millisecond)
	if err != nil {
		return nil, nil, fmt.Errorf("rehearse the host with %s: %w", row.ID, err)
	}
	if f := report.Failed; f != nil {
		return nil, &proposal.CheckResult{
			Command: command, Took: took, Why: stepNames[f.Step] + ": " + f.Why, Tail: f.Tail, // the card and the ledger keep no secret of it
		}, nil
	}
	if why := otherSchema(report, c.is.Schema, now.Schema); why != "" {
		return nil, &proposal.CheckResult{Command: command, Took: took, Why: why}, nil
	}
	h := &proposal.Host{Build: c.is.Build, Schema: c.is.Schema, Was: now.Schema, Not: slices.Clone(never), Took: took}
	if c.fresh {
		h.Release, h.StartsFrom = c.is.Digest, startsFrom(now, c.is, rs.Host.Images())
	}
	if unbuilt != "" {
		h.StartsFrom = "no image is built of " + dockerfile + ": " + unbuilt
	}
	switch {
	case runner.Same && c.fresh:
		h.Rehearsed = append(h.Rehearsed, runnerSame)
	case runner.Same:
	case runner.Untried != "":
		h.Not = append(h.Not, runnerUntried+": "+runner.Untried)
	default:
		h.Not = append(h.Not, runnerLauncher)
	}
	if c.tried != "" {
		h.Rehearsed = append(h.Rehearsed, c.tried)
	}
	for _, s := range report.Done {
		h.Rehearsed = append(h.Rehearsed, fmt.Sprintf("%s (%s)", stepNames[s.Name], s.Took.Round(10*time.Millisecond)))
		if s.Name == rehearsal.Start {
			h.Migration = s.Took
		}
	}
	return h, nil, nil
}

// otherSchema says that a candidate did with the database what it does not say of itself: what the card and the trial go by is what was seen,
// and not a program's word. "" = it did as it says.
func otherSchema(r rehearsal.Report, says, now int) string {
	went := slices.ContainsFunc(r.Done, func(s rehearsal.Step) bool { return s.Name == rehearsal.Back })
	switch {
	case went && says == now:
		return fmt.Sprintf("it says that its database has the schema %d, which is that of now, and made another of it", says)
	case !went && says != now:
		return fmt.Sprintf("it says that its database has the schema %d, and left it at %d, which is that of now", says, now)
	}
	return ""
}

// announce says in the conversation that asked what goes on until its card comes.
func (rs *Rehearsals) announce(ctx context.Context, row change.Row, o grounds.Offer) error {
	does := "rehearses it"
	if slices.ContainsFunc(o.Edits, func(e git.Edit) bool {
		return strings.HasPrefix(e.Path, sourceFolder+"/") || strings.HasPrefix(e.Path, imageFolder)
	}) {
		does = "builds and rehearses it, which may take minutes"
	}
	text := fmt.Sprintf("%s changes the host. Before anybody is asked sallyport %s; its card comes after that; next: sallyport change watch %s", row.ID, does, row.ID)
	return rs.DB.InTx(ctx, func(tx store.Tx) error { return rs.Origin.TellOnce(ctx, tx, row, text) })
}

// stepNames say what is tried in a step.
var stepNames = map[string]string{
	rehearsal.Runner: "its sallyport-runner serves sandboxes that the host of now builds: nothing gets out, and it does as it is told",
	rehearsal.Start:  "it starts: it loads its settings, brings a copy of the database up to date, and answers",
	rehearsal.Answer: "the agent echo answers a message",
	rehearsal.End:    "it ends when it is asked to",
	rehearsal.Again:  "it starts a second time",
	rehearsal.Last:   "it ends again",
	rehearsal.Back:   "the host of now goes on with the database that it leaves, by the old schema, and with what was said meanwhile",
}

// rehearse plays one candidate: its runner first, which takes seconds.
func (rs *Rehearsals) rehearse(ctx context.Context, row change.Row, o grounds.Offer, c candidate) (rehearsal.Report, sandbox.Tryout, error) {
	began := time.Now()
	runner, err := sandbox.Tryout{Same: true}, error(nil) // what runs now
	if c.fresh {
		runner, err = rs.Host.TryRunner(ctx, c.dir)
	}
	took := time.Since(began).Round(time.Millisecond)
	if err != nil {
		return rehearsal.Report{}, runner, err
	}
	if runner.Failed != "" {
		return rehearsal.Report{Failed: &rehearsal.Failure{Step: rehearsal.Runner, Why: runner.Failed, Tail: runner.Tail}}, runner, nil
	}
	report, err := rs.play(ctx, row, o, c.dir, c.is)
	if !runner.Same && runner.Untried == "" {
		report.Done = slices.Insert(report.Done, 0, rehearsal.Step{Name: rehearsal.Runner, Took: took})
	}
	return report, runner, err
}

// play has the rest of a candidate rehearsed, in one sandbox.
func (rs *Rehearsals) play(ctx context.Context, row change.Row, o grounds.Offer, dir string, is programs.Release) (rehearsal.Report, error) {
	ref := repository.RefRoot(row.ID) + "rehearsal"
	who := rs.Author
	who.At = row.Created
	staged, err := group.Stage(ctx, o.Host, o.Commit, group.By{Ref: ref, Author: who, Committer: who})
	if problem.KindOf(err) == problem.Refused { // by what its files say
		return rehearsal.Report{Failed: &rehearsal.Failure{Step: rehearsal.Answer, Why: problem.Of(err).Text}}, nil
	}
	if err != nil {
		return rehearsal.Report{}, err
	}
	w := rs.Opener.With(row, o.Host, o.Judging)
	shown, err := rs.Opener.Show(ctx, w, layer.Stock{}, staged)
	if err == nil {
		defer rs.Opener.Discard(ctx, shown)
		err = repository.DropRefs(ctx, o.Host, map[string]git.OID{ref: staged})
	}
	if err != nil {
		return rehearsal.Report{}, err
	}

	place, clear, err := rs.takePlace(row, "home")
	if err != nil {
		return rehearsal.Report{}, err
	}
	defer clear()
	digest, err := rs.furnish(ctx, place, w.Spec.Owner, dir, is)
	if err != nil {
		return rehearsal.Report{}, err
	}
	spec, err := rs.spec(ctx, w, place, rehearsal.Order{
		Home: sandbox.Mountpoint, Program: filepath.Join(sandbox.Mountpoint, stateFolder, "releases", digest, programs.Program),
		Ready: readyMax, Answer: answerMax, End: endMax,
	})
	if err != nil {
		return rehearsal.Report{}, err
	}
	spec.Tree = shown.Tree
	spec.Tree.GitDir, spec.Tree.Objects = "", nil // what stood in the home before is not shown
	return rs.run(ctx, spec)
}
