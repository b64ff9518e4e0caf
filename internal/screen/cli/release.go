package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/keeper"
	"sallyport/internal/base/problem"
	"sallyport/internal/base/release"
)

const releaseLong = `A release is one version of sallyport's own programs. The home keeps it under the digest of its
files. The current one is what runs, and the previous one is what ran before it and was kept. These
commands read the home's folder and ask no daemon, so they work when none starts. Who may read the
folder may use them.`

// releasesKept is how many releases prune leaves, beside those that are needed.
const releasesKept = 5

// kept is a release as list and show tell it.
type kept struct {
	release.Release
	Current  bool `json:"current"`
	Previous bool `json:"previous"`
	Trial    bool `json:"trial"` // a change of the host has it on trial
}

// marks says what a release is for; "" for one that is only kept.
func (k kept) marks() string {
	var words []string
	for _, m := range []struct {
		on   bool
		word string
	}{{k.Current, "current"}, {k.Previous, "previous"}, {k.Trial, "on trial"}} {
		if m.on {
			words = append(words, m.word)
		}
	}
	return strings.Join(words, ", ")
}

// releases is where the home keeps its releases.
func (a *app) releases() (release.Folder, error) {
	home, err := a.home()
	return release.In(home, disk.Ops{}), err
}

// keptOf tells which of some releases are needed.
func keptOf(f release.Folder, all ...release.Release) (out []kept, err error) {
	current, err1 := f.Current()
	previous, err2 := f.Previous()
	for _, err := range []error{err1, err2} {
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, releaseProblem(f, err)
		}
	}
	out = []kept{}
	home := filepath.Dir(filepath.Dir(f.Dir))
	now, armed, err := keeper.RecordOf(home) // who may not read it sees no trial
	for _, r := range all {
		trial := armed && err == nil && r.Digest == now.New && now.New != now.Old && now.Step != keeper.Confirmed && now.Step != keeper.Back
		out = append(out, kept{Release: r, Current: r.Digest == current, Previous: r.Digest == previous, Trial: trial})
	}
	return out, nil
}

// releaseProblem gives what went wrong with a release a kind and a way on.
func releaseProblem(f release.Folder, err error) error {
	switch {
	case errors.Is(err, release.ErrAbsent):
		return problem.Errorf(problem.NotFound, "sallyport release list", "%w", err)
	case errors.Is(err, release.ErrChanged):
		return problem.Errorf(problem.Unavailable, "sallyport release list", "%w", err)
	}
	return problem.Errorf(problem.Unavailable, "ls -la "+inert.Path(f.Dir), "%w", err)
}

func newReleaseListCommand(a *app) *cobra.Command {
	return a.cmd("list", "list the kept versions of the host's programs, the newest first",
		`Lists the releases of the home, the newest first: the beginning of the digest, build, schema of the
database, when it was built, and which one is current, which previous and which on trial. It reads
what each says of itself; "sallyport release show" compares the files.

Exit status: 1 also if one of them says nothing that can be read. The others are listed all the
same.`,
		"  sallyport release list\n  sallyport release list --home /srv/sallyport --json", exactly(), func(*cobra.Command, []string) error {
			f, err := a.releases()
			if err != nil {
				return err
			}
			all, damage := f.List()
			rows, err := keptOf(f, all...)
			if err != nil {
				return err
			}
			if !a.document(rows) {
				if err := printReleases(a, rows, damage); err != nil {
					return err
				}
			}
			if damage == nil {
				return nil
			}
			p := problem.Of(releaseProblem(f, damage))
			a.say(p.Text, p.Next)
			return ended(exitError)
		})
}

func printReleases(a *app, rows []kept, damage error) error {
	if len(rows) == 0 {
		if damage == nil {
			fmt.Fprintln(a.Out, "no release is kept")
		}
		return nil
	}
	return table(a.Out, "RELEASE\tBUILD\tSCHEMA\tBUILT\tIS", rows, func(t io.Writer, r kept) {
		fmt.Fprintf(t, "%s\t%s\t%d\t%s\t%s\n", short(r.Digest), clip(inert.Line(r.Build), 40), r.Schema, clock(r.Built), dash(r.marks()))
	})
}

func newReleaseShowCommand(a *app) *cobra.Command {
	return a.cmd("show RELEASE", "show one version of the host's programs, and whether it is whole",
		`Shows a release and reads every file of it: a release is whole if each is as it was put there, and
nothing else lies beside them. Only a release that is whole is ever started. RELEASE is a digest, of
which the first 12 digits are enough, or one of the words current and previous.

Exit status: 1 if it is not whole; the message names the file.`,
		"  sallyport release show current\n  sallyport release show 3f5ac2019d44 --json", exactly("RELEASE"), func(_ *cobra.Command, words []string) error {
			f, err := a.releases()
			if err != nil {
				return err
			}
			digest, err := wholeDigest(f, words[0])
			if err != nil {
				return err
			}
			program, r, err := f.Open(digest)
			if err != nil {
				return releaseProblem(f, err)
			}
			program.Close()
			rows, err := keptOf(f, r)
			if err != nil || a.document(rows[0]) {
				return err
			}
			printRelease(a.sheet(a.Out), rows[0])
			return nil
		})
}

func printRelease(s sheet, r kept) {
	s.line("release %s", r.Digest)
	if marks := r.marks(); marks != "" {
		s.line("  %s", s.green(marks))
	}
	s.line("  build %s, schema %d, built %s", inert.Line(r.Build), r.Schema, clock(r.Built))
	if r.Source != "" {
		s.line("  source %s", inert.Line(r.Source))
	}
	if r.Image != "" {
		s.line("  image %s", inert.Line(r.Image))
	}
	for _, name := range slices.Sorted(maps.Keys(r.Files)) {
		s.line("  %s  %s", r.Files[name], inert.Line(name))
	}
	s.line("  %s: every file is as it was put there", s.green("whole"))
}

// namedReleases are the words that stand for a digest.
func namedReleases(f release.Folder) map[string]func() (string, error) {
	return map[string]func() (string, error){"current": f.Current, "previous": f.Previous}
}

// wholeDigest is the digest that a word begins, or that current or previous names.
func wholeDigest(f release.Folder, word string) (string, error) {
	if named := namedReleases(f)[word]; named != nil {
		digest, err := named()
		if errors.Is(err, fs.ErrNotExist) {
			return "", problem.Errorf(problem.NotFound, "sallyport release list", "no release is the %s one", word)
		}
		if err != nil {
			return "", releaseProblem(f, err)
		}
		return digest, nil
	}
	if word == "" || strings.Trim(word, "0123456789abcdef") != "" {
		return "", problem.Errorf(problem.Usage, "sallyport release list", "%q is no digest of a release; it has only the digits 0 to 9 and a to f", word)
	}
	found, err := f.Find(word)
	switch {
	case err != nil:
		return "", releaseProblem(f, err)
	case len(found) == 0:
		return "", problem.Errorf(problem.NotFound, "sallyport release list", "no release begins with %q", word)
	case len(found) > 1:
		return "", problem.Errorf(problem.Usage, "sallyport release list", "%q begins %d releases: %s", word, len(found),
			strings.Join(found[:min(len(found), namedMax)], ", "))
	}
	return found[0], nil
}

func newReleasePruneCommand(a *app) *cobra.Command {
	keep := releasesKept
	cmd := a.cmd("prune", "remove old versions of the host's programs",
		`Removes old releases. The newest five stay, or as many as --keep says. The current one, the previous
one and those of a change that is on trial always stay. A release that says nothing of itself that
can be read is removed, too: it can never be started. So is what a crash has left of one that was
being put there. A change that waits with a release that was removed has to be asked for anew.

While it is not known which release is current, nothing is removed.`,
		"  sallyport release prune\n  sallyport release prune --keep 2 --home /srv/sallyport", exactly(), func(*cobra.Command, []string) error {
			if keep < 0 {
				return problem.Errorf(problem.Usage, "sallyport release prune --help", "--keep is %d; give how many releases are to stay, 0 or more", keep)
			}
			f, err := a.releases()
			if err != nil {
				return err
			}
			now, _, err := keeper.RecordOf(filepath.Dir(filepath.Dir(f.Dir)))
			if err != nil {
				return problem.Errorf(problem.Unavailable, "sallyport status", "nothing is removed while it is not known what is on trial: %w", err)
			}
			removed, err := f.Prune(keep, now.Old, now.New)
			if err != nil {
				err = releaseProblem(f, err)
			}
			if removed == nil {
				removed = []release.Release{}
			}
			if err != nil && len(removed) == 0 || a.document(map[string]any{"removed": removed}) {
				return err
			}
			s := a.sheet(a.Out)
			for _, r := range removed {
				s.line("removed %s %s", short(r.Digest), inert.Line(r.Build))
			}
			if len(removed) == 0 {
				s.line("no release is old enough to go")
			}
			return err
		})
	cmd.Flags().IntVar(&keep, "keep", releasesKept, "how many of the newest releases stay")
	return cmd
}
