package conversion

import (
	"context"
	"fmt"
	"io"
	"path"
	"strings"

	"sallyport/internal/base/git"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
)

// FileName is what a file of attributes is called in a tree.
const FileName = ".gitattributes"

// blobs is where the .gitattributes of a tree are: by folder, "" = the top.
type blobs map[string]git.OID

// set reads the files of attributes of a tree, and joins them with the settings.
func (s Settings) set(ctx context.Context, host git.Dir, in blobs) (*Set, error) {
	made := &Set{above: s.above, below: s.below, config: s.config, tree: map[string]file{}, matcher: &matcher{fold: s.fold, steps: stepsMax}}
	if len(in) > FilesMax {
		return nil, unclear(fmt.Sprintf("there are more than %d files %s", FilesMax, FileName))
	}
	var folders []string
	var oids []git.OID
	for folder, oid := range in {
		folders, oids = append(folders, folder), append(oids, oid)
	}
	sum := Limits{}
	i := 0
	err := host.Blobs(ctx, oids, func(_ git.OID, size int64, r io.Reader) error {
		name := path.Join(folders[i], FileName)
		if size > TextMax {
			return unclear(fmt.Sprintf("%s has %d bytes; at most %d are read", inert.Path(name), size, TextMax))
		}
		text, err := io.ReadAll(r)
		if err != nil {
			return fmt.Errorf("read %q: %w", name, err)
		}
		f, err := sum.parse(Source{Name: name, Folder: folders[i], Text: string(text), Macros: folders[i] == ""})
		if err != nil {
			return err
		}
		made.tree[folders[i]] = f
		i++
		return nil
	})
	if err != nil {
		return nil, err
	}
	for folder, text := range s.live {
		f, err := sum.parse(Source{Name: path.Join(folder, FileName), Folder: folder, Text: text, Macros: folder == ""})
		if err != nil {
			return nil, err
		}
		made.tree[folder] = f
	}
	made.learn()
	return made, nil
}

// Limits counts what the files of attributes of one tree hold together. The zero value is ready.
type Limits struct{ bytes, lines int }

// parse reads one more file. Errors: Unclear for one that versions of git read in different ways, and for too much in all.
func (l *Limits) parse(s Source) (file, error) {
	l.bytes += len(s.Text)
	l.lines += strings.Count(s.Text, "\n") + 1
	if l.bytes > TextMax || l.lines > linesMax {
		return file{}, unclear(fmt.Sprintf("its files %s have more than %d bytes or %d lines together", FileName, TextMax, linesMax))
	}
	f, err := parse(s)
	if err != nil {
		return f, unclear(err.Error())
	}
	return f, nil
}

// linked says that a file of attributes is a link: git takes the text of the link for attributes.
func linked(name string) error { return unclear(inert.Path(name) + " is a link") }

// Unclear says that what git would convert cannot be told. Nothing lands then.
type Unclear struct{ error }

func (u Unclear) Unwrap() error { return u.error }

func unclear(text string) error {
	return Unclear{problem.Errorf(problem.Refused, "sallyport doctor", "what git converts cannot be told: %s", text)}
}

// regular reports whether git may convert what is there: links and folders it leaves alone.
func regular(e git.Entry) bool { return e.Mode == git.File || e.Mode == git.Executable }
