package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/git"
	"sallyport/internal/base/image"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/pattern"
	"sallyport/internal/base/release"
	"sallyport/internal/door/api"
	rehearse "sallyport/internal/drive/release"
	"sallyport/internal/port/rehearsal"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/rule/config"
	"sallyport/internal/who/group"
)

// builder is the program that builds images.
const builder = "buildah"

// aboveUIDs is how far above the uids of a home's sandboxes those of its builds lie.
const aboveUIDs = 0x08000000

// imageOf is the image that sandboxes of a home start from; "" = this machine's own programs, or the image has gone. A home that has lost
// its image goes on by the machine's programs: by them an agent can make another.
func imageOf(home string, ops disk.Ops) string {
	if rehearsal.Here(home) {
		return "" // no sandbox is started in there
	}
	of, err := release.In(home, ops).Image()
	if err != nil || of == "" {
		return ""
	}
	if _, err := image.In(home, ops).Read(of); err != nil {
		return ""
	}
	return of
}

// Images is where the home keeps its images.
func (c candidate) Images() image.Folder { return image.In(c.Home, c.Ops) }

// Builder says who builds images here.
func (c candidate) Builder() rehearse.Builder {
	first := c.control.Settings.FirstUID
	if os.Geteuid() != 0 || first == 0 {
		return rehearse.Builder{Why: "only a daemon of root has the uids that a build needs"}
	}
	// A build sees what lies below /usr, and nothing else of this machine.
	if path, err := exec.LookPath(builder); err != nil || !strings.HasPrefix(path, "/usr/") {
		return rehearse.Builder{Why: builder + " is not installed here (sudo apt-get install " + builder + ")"}
	}
	return rehearse.Builder{Owner: sandbox.Owner{UID: first + aboveUIDs, GID: first + aboveUIDs}}
}

// bringTime is how long it may take to write out one image that this machine has.
const bringTime = 10 * time.Minute

// byID is how an image can be named that the owner has given another name: by the beginning of a digest, which can be guessed.
var byID = pattern.Of(`^(?:sha256:)?[0-9a-f]+$`)

// Bases writes those of the named images that this user has, and that builds may stand on, to a folder, each once: an image has many names,
// and a copy takes its room where no limit of a sandbox holds. They are the owner's own: nothing of an agent is run for that.
func (c candidate) Bases(ctx context.Context, names []string, to string) error {
	brought, allowed := map[string]bool{}, config.Strings(c.settings.Sallyport().Host.Build.Images)
	for n, name := range names {
		if !slices.Contains(allowed, name) {
			continue // the build says so
		}
		if strings.HasPrefix(name, "containers-storage:") {
			continue // a name of no Dockerfile's: in there it names nothing
		}
		full, err := c.ask(ctx, "inspect", "--type", "image", "--format", "{{.FromImage}}", name)
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			continue // it is not here: the build says so
		}
		if err != nil {
			return fmt.Errorf("look for the image %s: %w", inert.Line(name), err)
		}
		if brought[full] || byID().MatchString(name) && !strings.Contains(full, "/"+name+":") {
			continue
		}
		brought[full] = true
		at := filepath.Join(to, fmt.Sprintf("%d.tar", n))
		err = c.Ops.Do("image:bring", func() error {
			_, err := c.ask(ctx, "push", "-q", name, "oci-archive:"+at+":"+full)
			return err
		})
		if err != nil {
			return fmt.Errorf("write out the image %s: %w", inert.Line(name), err)
		}
	}
	return nil
}

// ask runs the builder on the owner's own images, and returns what it prints.
func (c candidate) ask(ctx context.Context, words ...string) (string, error) {
	ctx, end := context.WithTimeout(ctx, bringTime)
	defer end()
	cmd := exec.CommandContext(ctx, builder, words...)
	for _, name := range []string{"PATH", "HOME", "CONTAINERS_STORAGE_CONF"} {
		if value, is := os.LookupEnv(name); is {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	cmd.Dir = "/"
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s %s: %w: %s", builder, words[0], err, c.secrets.short(lastLine(said.String())))
	}
	return strings.TrimSpace(string(out)), err
}

// checkImage says what sandboxes of groups start from, where that is or should be an image.
func (d *Daemon) checkImage(ctx context.Context) []api.Check {
	check := api.Check{Name: "image"}
	_, absent := os.Lstat(filepath.Join(d.Home, "image", "Dockerfile"))
	named, err := candidate{d}.Releases().Image()
	if err != nil {
		check.Detail, check.Fix = fmt.Sprintf("it is not known what sandboxes of groups are to start from: %s", inert.Line(err.Error())),
			"sallyport release list"
		return []api.Check{check}
	}
	if d.image == "" && named == "" && absent != nil {
		return nil
	}
	built, bring, err := candidate{d}.committed(ctx)
	if err != nil {
		return []api.Check{asked("image", false, "", err)}
	}
	switch {
	case d.image != "":
		i, err := (candidate{d}).Images().Read(d.image)
		if err != nil {
			check.Detail = fmt.Sprintf("the image %.12s that sandboxes of groups start from is gone, and none of them starts; once this daemon has ended, the next one's start from this machine's programs", d.image)
			check.Fix = "sallyport daemon stop"
			break
		}
		check.OK, check.Detail = true, fmt.Sprintf("sandboxes of groups start from image %.12s, of %d files and %d MiB, built at %s",
			d.image, i.Files, i.Bytes>>20, i.Built.Local().Format(time.DateTime))
		switch {
		case built == "":
			check.Detail += "; the home has no image/Dockerfile any more, which does not count yet"
		case !i.BuiltFrom(built):
			check.Detail += "; it is not built of what is committed in image/ and the manifests of the home now, which does not count yet"
		default:
			return []api.Check{check}
		}
		check.OK, check.Ignored, check.Fix = false, true, bring
	case named != "":
		check.Detail = fmt.Sprintf("the image %.12s that sandboxes of groups are to start from is gone: they start from this machine's programs", named)
		check.Fix = bring
	default:
		check.Detail, check.Fix = "there is an image/Dockerfile, and no image of it is here: sandboxes of groups start from this machine's programs", bring
		if b := (candidate{d}).Builder(); b.Why != "" {
			check.Detail += "; none is built here: " + b.Why
		}
	}
	return []api.Check{check}
}

// committed names what an image would be built of as the home is committed, "" = there is no Dockerfile; and the command that has it built:
// no image is built without a card.
func (c candidate) committed(ctx context.Context) (built, bring string, err error) {
	home := git.Dir{Path: filepath.Join(c.Home, ".git"), Ops: c.Ops}
	head, err := home.Head(ctx)
	var all []group.Folder
	if err == nil && head != "" {
		if built, err = rehearse.ImageInputs(ctx, home, head); err == nil {
			all, _, err = group.List(ctx, home, head)
		}
	}
	if len(all) == 0 {
		return built, "sallyport group create --help", err
	}
	return built, fmt.Sprintf("sallyport chat %s --say 'Propose a change of the host that adds a line to image/notes.md'", all[0]), nil
}
