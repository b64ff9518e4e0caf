package cli

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/base/release"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

const upgradeLong = `Has the host of a home that "sallyport serve" keeps up run by other programs: those in DIR, those in
FILE, which is a .tar.gz as "make release" makes it, or those of a RELEASE that the home keeps, such
as previous. It takes sallyport, sallyport-runner and sallyport-tool. The keeper is no part of that:
install it, and start "serve" anew.

It is a change of the host like any other. The programs are kept as a release and rehearsed on a
copy of the state. You approve with CONFIRM HOST and are given a code. The host starts again on the
new programs, and asks in your conversation with the group. "sallyport confirm" with the code keeps
them. Silence, "sallyport rollback", or a host that does not answer bring the old ones back.

Exit status: 0 when it was kept, or the host runs by them already; 3 when it waits for you.`

func newUpgradeCommand(a *app) *cobra.Command {
	var group string
	cmd := a.cmd("upgrade FILE|DIR|RELEASE [--group NAME]", "have the host run by other programs, with a way back", upgradeLong,
		"  sallyport upgrade ./bin\n  sallyport upgrade dist/sallyport_1.2.0_linux_amd64.tar.gz\n  sallyport upgrade previous",
		exactly("FILE|DIR|RELEASE"), func(cmd *cobra.Command, words []string) error {
			approve, err := approveMode(a, "")
			if err != nil {
				return err
			}
			from, done, err := a.unpack(words[0])
			if err != nil {
				return err
			}
			defer done()
			c, err := a.connect(cmd.Context())
			if err != nil {
				return err
			}
			begun, err := client.Call(cmd.Context(), c, api.HomeUpgrade, api.UpgradeHome{From: from, Group: group, Approve: approve})
			if err != nil {
				return err
			}
			if begun.Change == nil {
				return answer(a, begun, "the host runs by these programs already: there is nothing to change")
			}
			done() // the home has a copy
			reportAccepted(a, *begun.Change)
			return followThrough(cmd.Context(), a, c, begun.Change.ID, mannerOf(a.Program, approve, false))
		})
	cmd.Flags().StringVar(&group, "group", "", "ask in your conversation with this group (default: the first by name): `NAME`")
	return cmd
}

// unpack finds the folder that has the programs which a word names; done removes what was unpacked.
func (a *app) unpack(word string) (folder string, done func(), err error) {
	done = func() {}
	at, err := a.here(word)
	info, missing := os.Stat(at)
	switch {
	case err != nil:
		return "", done, err
	case errors.Is(missing, fs.ErrNotExist):
		folder, err = a.releaseNamed(word)
		return folder, done, err
	case missing != nil:
		return "", done, problem.Errorf(problem.Usage, "ls -l "+inert.Path(at), "%w", missing)
	case info.IsDir():
		return at, done, nil
	case strings.HasSuffix(at, ".deb"):
		return "", done, problem.Errorf(problem.Usage, "dpkg-deb --extract "+inert.Path(at)+" DIR",
			"a package is unpacked by hand: then upgrade from DIR/usr/lib/sallyport")
	}
	if folder, err = os.MkdirTemp("", "sallyport-upgrade-"); err != nil {
		return "", done, problem.Errorf(problem.Unavailable, "df -h "+inert.Path(os.TempDir()), "%w", err)
	}
	done = func() { _ = os.RemoveAll(folder) }
	if err := os.Chmod(folder, 0o755); err != nil { // the daemon may have another account
		return "", done, err
	}
	if err := unpackPrograms(at, folder); err != nil {
		done()
		return "", func() {}, problem.Errorf(problem.Usage, "sallyport upgrade --help", "%s has no programs to upgrade to: %w", inert.Path(at), err)
	}
	return folder, done, nil
}

// releaseNamed is the folder of a release that the home keeps.
func (a *app) releaseNamed(word string) (string, error) {
	f, err := a.releases()
	if err != nil {
		return "", err
	}
	if namedReleases(f)[word] == nil && strings.Trim(word, "0123456789abcdef") != "" {
		return "", problem.Errorf(problem.NotFound, "sallyport release list", "there is no file or folder %s, and no release is called so", inert.Path(word))
	}
	digest, err := wholeDigest(f, word)
	return filepath.Join(f.Dir, digest), err
}

// unpackPrograms takes the programs of a release out of an archive, wherever they stand in it, and nothing else.
func unpackPrograms(archive, to string) error {
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer file.Close()
	plain, err := gzip.NewReader(file)
	if err != nil {
		return fmt.Errorf("it is no .tar.gz: %w", err)
	}
	found := false
	for r := tar.NewReader(plain); ; {
		h, err := r.Next()
		if err == io.EOF && !found {
			return fmt.Errorf("there is no %s in it", release.Program)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		name := path.Base(h.Name)
		if h.Typeflag != tar.TypeReg || !slices.Contains(release.Programs(), name) {
			continue
		}
		if h.Size > release.ProgramMax {
			return fmt.Errorf("%s has %d bytes, and at most %d are taken", inert.Path(name), h.Size, release.ProgramMax)
		}
		if err := writeProgram(r, filepath.Join(to, name)); err != nil {
			return err
		}
		found = found || name == release.Program
	}
}

// writeProgram writes one program. A second one of its name is refused.
func writeProgram(from io.Reader, to string) error {
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, io.LimitReader(from, release.ProgramMax))
	return errors.Join(err, out.Close())
}
