package release

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/base/image"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/pattern"
	"sallyport/internal/base/problem"
	programs "sallyport/internal/base/release"
	"sallyport/internal/drive/grounds"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/drive/live"
	"sallyport/internal/path/change"
	"sallyport/internal/path/proposal"
	"sallyport/internal/path/session"
	"sallyport/internal/port/sandbox"
)

// What a home's image is built of: what lies in its folder, and the manifests at the top of the home, which it may copy (SM-066, SM-067).
const (
	imageFolder = "image/"
	dockerfile  = imageFolder + "Dockerfile"
)

var manifests = []string{"package.json", "package-lock.json", "tsconfig.json", "go.mod", "go.sum"}

func ofImage(path string) bool {
	return strings.HasPrefix(path, imageFolder) || slices.Contains(manifests, path)
}

const (
	imageCommand  = "build of image/Dockerfile"
	imageTryMax   = time.Minute
	imageInputMax = 256 << 20 // bytes of what it is built of
	imageDiskMax  = 32 << 30  // bytes that a build may write: each layer is a copy of all below it
	dockerfileMax = 1 << 20   // bytes of a Dockerfile, which is looked through out here
	environMax    = 64 << 10  // bytes of the variables of an image, of which PATH is taken
	foldersMax    = 50        // of that
	folderMax     = 255       // bytes of the path of one
	basesMax      = 20        // images that it names as what it stands on: this machine is asked for each
)

// imageLine builds an image and leaves its root file system in /build/root. The folders of the builder's own are written by whoever runs
// it; no setting of this machine is seen in there. Images that the machine has come as archives.
const imageLine = `set -e
mkdir -p /build/conf /build/run /build/store /build/tmp
cd /build/conf
echo '{"default":[{"type":"insecureAcceptAnything"}]}' > policy.json
echo 'unqualified-search-registries = ["docker.io"]' > registries.conf
printf '[storage]\ndriver = "vfs"\ngraphroot = "/build/store"\nrunroot = "/build/run"\n' > storage.conf
: > containers.conf
export CONTAINERS_REGISTRIES_CONF=$PWD/registries.conf CONTAINERS_STORAGE_CONF=$PWD/storage.conf CONTAINERS_CONF=$PWD/containers.conf
export _CONTAINERS_USERNS_CONFIGURED=1 TMPDIR=/build/tmp HOME=/build/tmp
by='--signature-policy /build/conf/policy.json'
for base in /build/base/*.tar; do [ -e "$base" ] && buildah pull -q $by "oci-archive:$base" >/dev/null; done
buildah bud $by --isolation chroot --network host --layers=false --pull=%s -t localhost/sallyport-image -f image/Dockerfile /workspace
made=$(buildah from -q $by --pull-never localhost/sallyport-image)
buildah inspect --type container --format '{{range .OCIv1.Config.Env}}{{println .}}{{end}}' "$made" > /build/env
mv "$(buildah mount "$made")" /build/root
`

// withImage gives a candidate the image that a change makes of the home's Dockerfile. Only a change of what an image is built of builds one,
// and what was built once of the same is not built again (SM-105). why says why none is built, though one would be.
func (rs *Rehearsals) withImage(ctx context.Context, row change.Row, o grounds.Offer, c candidate) (_ candidate, why string,
	failed *proposal.CheckResult, err error) {
	if !slices.ContainsFunc(o.Edits, func(e git.Edit) bool { return ofImage(e.Path) }) {
		return c, "", nil, nil
	}
	inputs, sum, size, err := imageInputs(ctx, o.Host, o.Commit)
	if err != nil {
		return c, "", nil, err
	}
	of := ""
	if sum != "" {
		if size > imageInputMax {
			return c, "", &proposal.CheckResult{Command: imageCommand, Why: fmt.Sprintf(
				"what it is built of, which is all in image/ and the manifests of the home, has %d MiB, and at most %d MiB are taken: take out of image/ what it does not need",
				(size+1<<20-1)>>20, imageInputMax>>20)}, nil
		}
		images := rs.Host.Images()
		made, err := images.Find(sum)
		if errors.Is(err, image.ErrAbsent) {
			builder := rs.Host.Builder()
			if builder.Why != "" {
				return c, builder.Why, nil, nil
			}
			made, failed, err = rs.buildImage(ctx, row, o, builder, inputs, sum)
			if errors.Is(err, sandbox.ErrUnheld) {
				return c, sandbox.ErrUnheld.Error(), nil, nil
			}
		}
		if err != nil || failed != nil {
			return c, "", failed, err
		}
		of = made.Digest
	}
	if of == c.is.Image {
		return c, "", nil, nil
	}
	if of != "" {
		if c.tried, failed, err = rs.startFrom(ctx, row, o, of); failed != nil || err != nil {
			return c, "", failed, err
		}
	}

	with := c.is
	with.Image = of
	releases := rs.Host.Releases()
	if c.is, err = releases.Put(c.dir, with); err != nil {
		return c, "", nil, fmt.Errorf("keep the programs with another image: %w", err)
	}
	if of != "" { // one that nothing named may have gone meanwhile: then it is built again
		if _, err := rs.Host.Images().Read(of); err != nil {
			return c, "", nil, err
		}
	}
	c.dir, c.fresh = filepath.Join(releases.Dir, c.is.Digest), true
	return c, "", nil, nil
}

// sameImage fails a candidate that was approved with an image of its change if that would be built of something else by now: what lands would
// start from what no commit holds.
func (rs *Rehearsals) sameImage(ctx context.Context, row change.Row, o grounds.Offer, c candidate) (failed *proposal.CheckResult, err error) {
	if c.is.Image == "" || !slices.ContainsFunc(o.Edits, func(e git.Edit) bool { return ofImage(e.Path) }) {
		return nil, nil
	}
	made, err := rs.Host.Images().Read(c.is.Image)
	if err != nil {
		return nil, err
	}
	sum, err := ImageInputs(ctx, o.Host, o.Commit)
	if err != nil || made.BuiltFrom(sum) {
		return nil, err
	}
	return &proposal.CheckResult{Command: imageCommand, Why: "what it is built of has moved on " + row.Request.Branch +
		", and the image that was built and approved is of what was there before"}, nil
}

// input is one file that an image may be built of.
type input struct {
	path string
	is   git.Entry
}

// ImageInputs names all that the image of a commit is built of; "" if it has no Dockerfile.
func ImageInputs(ctx context.Context, home git.Dir, commit git.OID) (sum string, err error) {
	_, sum, _, err = imageInputs(ctx, home, commit)
	return sum, err
}

// imageInputs lists what an image is built of, names it by all that, and adds up its bytes; sum is "" if there is no Dockerfile.
func imageInputs(ctx context.Context, from git.Dir, commit git.OID) (all []input, sum string, bytes int64, err error) {
	named := sha256.New()
	is := false
	err = from.List(ctx, commit, func(path string, e git.Entry, size int64) error {
		if !ofImage(path) || e.Mode == git.Submodule {
			return nil
		}
		is = is || path == dockerfile && e.Mode != git.Symlink
		bytes += max(0, size)
		all = append(all, input{path, e})
		fmt.Fprintf(named, "%q %s %s\n", path, e.Mode, e.OID)
		return nil
	})
	if err != nil || !is {
		return nil, "", 0, err
	}
	return all, hex.EncodeToString(named.Sum(nil)), bytes, nil
}

// buildImage builds an image in a sandbox whose programs are root of nobody's uids, and keeps its root file system.
func (rs *Rehearsals) buildImage(ctx context.Context, row change.Row, o grounds.Offer, b Builder, inputs []input,
	sum string) (made image.Image, failed *proposal.CheckResult, err error) {
	rs.Feed.Publish(change.Notice{Change: row.ID, At: ledger.Now(), Kind: "check", Text: imageCommand})
	place, clear, err := rs.takePlace(row, "image")
	if err != nil {
		return made, nil, err
	}
	defer clear()
	tree, work := filepath.Join(place, "tree"), filepath.Join(place, "work")
	var text string
	err = rs.Ops.Do("rehearsal:place", func() (err error) {
		if text, err = writeInputs(ctx, o, tree, inputs); err != nil {
			return err
		}
		return os.MkdirAll(filepath.Join(work, "base"), 0o700)
	})
	if err != nil {
		return made, nil, fmt.Errorf("lay out what the image is built of: %w", err)
	}
	on, why := bases(text)
	if why != "" {
		return made, &proposal.CheckResult{Command: imageCommand, Why: why}, nil
	}
	if err := rs.Host.Bases(ctx, on, filepath.Join(work, "base")); err != nil {
		return made, nil, err
	}
	err = rs.Ops.Do("rehearsal:own", func() error { return errors.Join(own(tree, b.Owner), own(work, b.Owner)) })
	if err != nil {
		return made, nil, err
	}

	run, err := rs.runBuilder(ctx, row, b, tree, work)
	if err != nil {
		return made, nil, fmt.Errorf("build the image: %w", err)
	}
	why = run.Why() + stumbled(run.Tail) + unreached(run.Tail, rs.Host.Registries())
	no := &proposal.CheckResult{Command: imageCommand, Took: run.Took, Why: why, Tail: run.Tail}
	if !run.OK() {
		return made, no, nil
	}
	made, err = rs.Host.Images().Put(ctx, filepath.Join(work, "root"), image.Image{Inputs: sum, Built: ledger.Now(), Path: pathIn(filepath.Join(work, "env"))})
	if errors.Is(err, image.ErrNone) {
		no.Why = err.Error()
		return made, no, nil
	}
	return made, nil, err
}

// writeInputs lays out what an image is built of, and returns its Dockerfile.
func writeInputs(ctx context.Context, o grounds.Offer, tree string, inputs []input) (text string, err error) {
	for _, in := range inputs {
		at := filepath.Join(tree, in.path)
		if !filepath.IsLocal(in.path) {
			return "", fmt.Errorf("%q is no path of a tree", in.path)
		}
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return "", err
		}
		raw, err := writeInput(ctx, o.Host, in, at)
		if err != nil {
			return "", err
		}
		if in.path == dockerfile {
			text = string(raw)
		}
	}
	return text, nil
}

// writeInput lays out one input, and returns the beginning of what is in it: enough to see whether it is a Dockerfile that is too long.
func writeInput(ctx context.Context, from git.Dir, in input, at string) (start []byte, err error) {
	r, err := from.Blob(ctx, in.is.OID)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	start, err = io.ReadAll(io.LimitReader(r, dockerfileMax+1))
	if err != nil {
		return nil, err
	}
	mode := fs.FileMode(0o644)
	switch in.is.Mode {
	case git.Symlink:
		return start, os.Symlink(string(start), at)
	case git.Executable:
		mode = 0o755
	}
	file, err := os.OpenFile(at, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return nil, err
	}
	_, err = file.Write(start)
	if err == nil {
		_, err = io.Copy(file, r)
	}
	return start, errors.Join(err, file.Close())
}

// runBuilder runs the build. It reaches no network, unless the home lets builds reach registries.
func (rs *Rehearsals) runBuilder(ctx context.Context, row change.Row, b Builder, tree, work string) (_ live.Ran, err error) {
	s := live.Subject{ID: row.ID.Subject(), Owner: b.Owner, Timeout: wholeMax}
	if s.DiskBytes, err = imageRoom(work); err != nil {
		return live.Ran{}, err
	}
	name := id.NewSession("image")
	pull := "never"
	var way live.Way
	if rs.Host.Registries() {
		if way, err = rs.Ways.Open(ctx, s, live.Outgoing{Session: name, Setup: true, Fetch: true}); err != nil {
			return live.Ran{}, err
		}
		pull = "missing"
	}
	defer way.Close()
	runner := live.CommandRunner{Defaults: live.Defaults{Home: rs.Defaults.Home, Limits: rs.Defaults.Limits}, Sandbox: rs.Sandbox, Secrets: rs.Secrets}
	return runner.Run(ctx, s, live.Command{
		Name: name, Line: fmt.Sprintf(imageLine, pull), Way: way, Tree: sandbox.Tree{Dir: tree}, Range: true,
		Own: []sandbox.Bind{{Source: work, Target: "/build", Writable: true}},
	})
}

// pathIn is PATH as a build has it, by a file of its variables: of its folders those that can be ones. "" if it has none, or the usual one.
// What a build has left there may be anything.
func pathIn(env string) string {
	file, err := os.OpenFile(env, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return ""
	}
	defer file.Close()
	raw, err := io.ReadAll(io.LimitReader(file, environMax))
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(raw)) {
		path, is := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "PATH=")
		if !is {
			continue
		}
		folders := slices.DeleteFunc(filepath.SplitList(path), func(f string) bool {
			return !filepath.IsAbs(f) || filepath.Clean(f) != f || len(f) > folderMax || inert.Line(f) != f
		})
		path = strings.Join(folders[:min(len(folders), foldersMax)], string(filepath.ListSeparator))
		if path == strings.Join(session.UsualPath(), string(filepath.ListSeparator)) {
			return ""
		}
		return path
	}
	return ""
}

// imageRoom is how much a build may write: half of what its disk has at the most. What comes of it stays for a while, and anybody's builds
// one after another leave the host room for its own.
func imageRoom(work string) (bytes int64, err error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(work, &fs); err != nil {
		return 0, fmt.Errorf("look how much room a build has: %w", err)
	}
	return min(imageDiskMax, max(1, int64(fs.Bavail)*fs.Bsize/2)), nil // 0 would be any sandbox's limit
}

// startFrom tries whether a sandbox starts from an image, by what starts it now, and whether there is what every agent needs: a shell, and
// git to propose what it made. It returns what was tried.
func (rs *Rehearsals) startFrom(ctx context.Context, row change.Row, o grounds.Offer, of string) (tried string, failed *proposal.CheckResult, err error) {
	w := rs.Opener.With(row, o.Host, o.Judging)
	place, clear, err := rs.takePlace(row, "try")
	if err != nil {
		return "", nil, err
	}
	defer clear()
	if err := rs.Ops.Do("rehearsal:own", func() error { return own(place, w.Spec.Owner) }); err != nil {
		return "", nil, err
	}
	runner := live.CommandRunner{Defaults: live.Defaults{Home: rs.Defaults.Home, Limits: rs.Defaults.Limits}, Sandbox: rs.Sandbox, Secrets: rs.Secrets}
	s := live.Subject{ID: row.ID.Subject(), Owner: w.Spec.Owner, Timeout: imageTryMax}
	run, err := runner.Run(ctx, s, live.Command{Name: id.NewSession("image"), Line: imageTry, Tree: sandbox.Tree{Dir: place}, Image: rs.Host.Images().Root(of)})
	no := &proposal.CheckResult{Command: imageCommand, Took: run.Took, Tail: run.Tail}
	switch {
	case ctx.Err() != nil:
		return "", nil, context.Cause(ctx)
	case err != nil:
		no.Why = "no sandbox starts from it by /bin/sh: " + problem.Of(err).Text
		if problem.KindOf(err) == problem.NotFound {
			no.Why += "; " + needsShell
		}
		return "", no, nil
	case !run.OK():
		no.Why = lacks(run)
		return "", no, nil
	}
	return fmt.Sprintf("a sandbox starts from its image, and a shell and git run there (%s)", run.Took.Round(10*time.Millisecond)), nil, nil
}

// Builder says who builds images here; Why says why nobody does, and is "" otherwise.
type Builder struct {
	Owner sandbox.Owner // the first of the uids that it is root of
	Why   string        // a clause
}

// based are the names that an image is built from: those that stand in the text as they are.
var based = pattern.Of(`(?im)^[ \t]*FROM[ \t]+(?:--platform=\S+[ \t]+)?([a-z0-9][a-z0-9._/:@-]*)(?:[ \t]|\r?$)`)

// bases returns the images that a Dockerfile names as what it stands on, each once; scratch is none. why says why it is not built: whoever
// wrote it wrote it so that looking for them would take this machine too long.
func bases(text string) (names []string, why string) {
	if len(text) > dockerfileMax {
		return nil, fmt.Sprintf("image/Dockerfile has more than %d KiB", dockerfileMax>>10)
	}
	for _, m := range based().FindAllStringSubmatch(text, -1) {
		if name := m[1]; name == "scratch" || slices.Contains(names, name) {
			continue
		}
		if names = append(names, m[1]); len(names) > basesMax {
			return nil, fmt.Sprintf("image/Dockerfile stands on more than %d images", basesMax)
		}
	}
	return names, ""
}

// startsFrom says in a clause what sandboxes start from with a release, where that is another than now; "" = as they do now.
func startsFrom(now, then programs.Release, images image.Folder) string {
	if now.Image == then.Image {
		return ""
	}
	if then.Image == "" {
		return "sandboxes of groups start from this machine's own programs again, and from no image"
	}
	size := ""
	if i, err := images.Read(then.Image); err == nil {
		size = fmt.Sprintf(" (%d files, %d MiB)", i.Files, i.Bytes>>20)
	}
	return fmt.Sprintf("sandboxes of groups start from image %.12s%s, in the place of %s", then.Image, size,
		cmp.Or(short(now.Image), "this machine's own programs"))
}

func short(digest string) string { return digest[:min(12, len(digest))] }
