package landing

import (
	"context"
	"fmt"
	"path"
	"reflect"

	"sallyport/internal/base/conversion"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
)

// asStored refuses, by name, what git would convert between its store and a checkout, by the attributes of the branch as it is,
// of what lands, and of the work tree: the files that would be exchanged are others than the store's. It is asked of a rollback that
// a person approves, too. It is not asked of the way back of a trial, which nothing may hold up or slow down: that writes the
// files which stood there when the trial began.
func (l *Lander) asStored(ctx context.Context, s *site, made *Landing) error {
	if len(made.Edits) == 0 || made.Back {
		return nil
	}
	settings, err := conversion.Read(ctx, made.Project, made.Home)
	if err != nil {
		return err
	}
	host, err := l.Host(ctx, made.Project, made.Head)
	if err != nil {
		return err
	}
	ways := []conversion.Settings{settings}
	if made.WorkTree {
		live, err := s.uncommittedAttributes(made)
		if err != nil {
			return err
		}
		if len(live) > 0 {
			ways = append(ways, settings.In(live))
		}
	}
	if reflect.DeepEqual(made.stored, ways) { // nothing that a verdict hangs on is another than when it was found
		return nil
	}

	for _, way := range ways {
		refused, err := way.Judge(ctx, host, made.Head, made.Edits, conversion.Land)
		if err != nil {
			return err
		}
		if len(refused) > 0 {
			more := ""
			if n := len(refused) - 1; n > 0 {
				more = fmt.Sprintf(" (and %d more)", n)
			}
			return problem.Case(ErrConverts, "sallyport change branch "+string(made.Change),
				"%s cannot land: %s%s; write it as a branch, and merge that with your own git",
				inert.Path(refused[0].Path), refused[0].Why, more)
		}
	}
	made.stored = ways
	return nil
}

// uncommittedAttributes returns the texts of the .gitattributes above the edits that are not in the work tree as head has them.
func (s *site) uncommittedAttributes(made *Landing) (map[string]string, error) {
	folder := []string{""}
	paths := []string{conversion.FileName}
	edited := make([]string, len(made.Edits))
	for i, e := range made.Edits {
		edited[i] = e.Path
	}
	for _, up := range folders(edited) {
		folder, paths = append(folder, up), append(paths, path.Join(up, conversion.FileName))
	}
	head, err := s.lookup(made.Head, paths)
	if err != nil {
		return nil, err
	}
	live := map[string]string{}
	for i, p := range paths {
		f, err := s.work.look(p)
		if err != nil || !regular(f.Mode) || f.OID == head[i].OID {
			continue // what cannot be reached is the look at the edits' to name
		}
		if f.Stat.Size > smallMax {
			return nil, s.dirty("ls -l "+inert.Path(s.Top+"/"+p), "%s is not committed and has more than %d bytes", inert.Path(p), smallMax)
		}
		if live[folder[i]], err = s.work.small(p); err != nil {
			return nil, err
		}
	}
	return live, nil
}
