package git

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// UpdateRef moves ref from old to to, compare and set; to "" deletes, old "" means it must not exist.
func (d Dir) UpdateRef(ctx context.Context, op, ref string, to, old OID) error {
	return d.UpdateRefLog(ctx, op, ref, to, old, "")
}

// UpdateRefLog is UpdateRef with a line for the reflog.
func (d Dir) UpdateRefLog(ctx context.Context, op, ref string, to, old OID, message string) error {
	length := max(len(to), len(old))
	if length == 0 {
		return nil
	}
	args := []string{"update-ref", "--no-deref"}
	if message != "" {
		args = append(args, "-m", message)
	}
	if old == "" {
		old = none(length)
	}
	if to == "" {
		args = append(args, "-d", ref, string(old))
	} else {
		args = append(args, ref, string(to), string(old))
	}
	if _, err := d.Do(ctx, op, Cmd{Args: args, Short: true}); err != nil {
		return fmt.Errorf("move %s to %.12s: %w", ref, to, err)
	}
	return nil
}

// Refs returns the refs below a prefix.
func (d Dir) Refs(ctx context.Context, prefix string) (map[string]OID, error) {
	out, err := d.Run(ctx, Cmd{Args: []string{"for-each-ref", "--format=%(objectname) %(refname)", prefix}})
	if err != nil {
		return nil, err
	}
	refs := map[string]OID{}
	for line := range strings.Lines(string(out)) {
		oid, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		refs[name] = OID(oid)
	}
	return refs, nil
}

// unpackMax is how many objects are kept as a pack rather than loose, as git's own receive.unpackLimit: a repository that is sent little at a
// time has no pack for each time.
const unpackMax = 100

// Receive copies want and what it needs, beyond have, from another git directory: few objects one by one, many as one pack, as git
// does on a push. What d has already is not sent again.
func (d Dir) Receive(ctx context.Context, op string, from Dir, want OID, have []OID) error {
	list := string(want) + "\n"
	for _, oid := range have {
		list += "^" + string(oid) + "\n"
	}
	err := d.transfer(ctx, op, from, list, func(pack io.Reader, objects uint32) error {
		return d.unpack(ctx, pack, objects)
	})
	if err != nil {
		return fmt.Errorf("copy %.12s: %w", want, err)
	}
	return nil
}

// unpack keeps what a pack of so many objects holds.
func (d Dir) unpack(ctx context.Context, pack io.Reader, objects uint32) error {
	c := Cmd{Args: []string{"index-pack", "--stdin", "--fix-thin"}, Stdin: pack}
	if objects < unpackMax {
		c = Cmd{Args: []string{"unpack-objects", "-q"}, Stdin: pack}
	}
	if d.Objects != "" { // aside, and at its name only once whoever gives it that has brought it to disk
		c.Config = []string{"core.fsyncMethod=batch"}
	}
	_, err := d.Run(ctx, c)
	return err
}

// Take copies what a list of revisions, as pack-objects reads it, reaches in another git directory as one pack, and returns the pack's
// name without what follows the dot.
func (d Dir) Take(ctx context.Context, op string, from Dir, list string) (pack string, err error) {
	err = d.transfer(ctx, op, from, list, func(sent io.Reader, _ uint32) error {
		out, err := d.Run(ctx, Cmd{Args: []string{"index-pack", "--stdin", "--fix-thin"}, Stdin: sent})
		if err != nil {
			return err
		}
		_, name, _ := strings.Cut(strings.TrimSpace(string(out)), "\t")
		if !OID(name).Valid() {
			return fmt.Errorf("index-pack names no pack but %q", out)
		}
		pack = "pack-" + name
		return nil
	})
	return pack, err
}

// transfer has another git directory pack what a list of revisions reaches, and take read the pack, which begins with how many objects it has.
func (d Dir) transfer(ctx context.Context, op string, from Dir, list string, take func(pack io.Reader, objects uint32) error) error {
	send := Cmd{Args: []string{"pack-objects", "--revs", "--stdout", "--delta-base-offset", "-q"}, Stdin: strings.NewReader(list)}
	if strings.Contains(list, "--shallow ") { // the graph of commits on disk knows nothing of that
		send.Config = []string{"core.commitGraph=false"}
	}
	return d.Ops.Do(op, func() error {
		pr, pw := io.Pipe()
		send.Stdout = pw
		packed := make(chan error, 1)
		go func() {
			_, err := from.Run(ctx, send)
			packed <- err // before its reader can end of it
			pw.CloseWithError(err)
		}()
		header := make([]byte, 12) // "PACK", a version, the number of objects
		_, err := io.ReadFull(pr, header)
		if err == nil {
			err = take(io.MultiReader(bytes.NewReader(header), pr), binary.BigEndian.Uint32(header[8:]))
		}

		var failed error
		select {
		case failed = <-packed: // it ended by itself, and says why the other had nothing to read
		default:
			pr.CloseWithError(io.ErrClosedPipe)
			if failed = <-packed; err != nil {
				failed = nil // it ended because nobody read any more
			}
		}
		if failed != nil {
			return failed
		}
		return err
	})
}

// Short is the short name of a branch that a person gives short or in full. A full name of what is no branch is an error.
func Short(name string) (string, error) {
	short, branch := strings.CutPrefix(name, "refs/heads/")
	if !branch && strings.HasPrefix(name, "refs/") {
		return "", fmt.Errorf("%q names no branch; the full name of one begins with refs/heads/", name)
	}
	return short, nil
}

// Branch reports whether there is a branch of that short name. A name that none can have beside those that are there is an error.
func (d Dir) Branch(ctx context.Context, name string) (bool, error) {
	ref := "refs/heads/" + name
	_, err := d.Run(ctx, Cmd{Args: []string{"check-ref-format", ref}})
	var f *Failure
	if errors.As(err, &f) || strings.HasPrefix(name, "-") || name == "HEAD" {
		return false, errors.New("git allows no branch of this name")
	}
	if err != nil {
		return false, err
	}
	for at := 0; ; {
		i := strings.IndexByte(name[at:], '/')
		if i < 0 {
			break
		}
		at += i + 1
		if above, err := d.Resolve(ctx, "refs/heads/"+name[:at-1]); err != nil || above != "" {
			return false, errors.Join(err, fmt.Errorf("there is a branch %q, and git allows no branch below it", name[:at-1]))
		}
	}
	refs, err := d.Refs(ctx, ref)
	if err != nil {
		return false, err
	}
	if _, there := refs[ref]; there {
		return true, nil
	}
	if len(refs) == 0 {
		return false, d.free(ctx, name)
	}
	return false, fmt.Errorf("there are branches below %q, and git allows no branch above them", name)
}

// free refuses a name that no branch has and that is taken all the same: by a link to a branch that is not there, or by a work tree whose
// first commit is still to come.
func (d Dir) free(ctx context.Context, name string) error {
	ref := "refs/heads/" + name
	to, err := d.Run(ctx, Cmd{Args: []string{"symbolic-ref", "--quiet", ref}})
	var f *Failure
	if err == nil {
		return fmt.Errorf("it is a symbolic name for %q, which does not exist", strings.TrimSpace(string(to)))
	} else if !errors.As(err, &f) || f.Code != 1 {
		return err
	}
	trees, err := d.Run(ctx, Cmd{Args: []string{"worktree", "list", "--porcelain", "-z"}})
	if err == nil && slices.Contains(strings.Split(string(trees), "\x00"), "branch "+ref) {
		err = errors.New("a work tree has checked it out, and it has no commit yet")
	}
	return err
}
