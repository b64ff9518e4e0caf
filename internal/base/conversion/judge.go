package conversion

import (
	"context"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"sallyport/internal/base/git"
	"sallyport/internal/base/inert"
)

// Refusal is one changed path that cannot land as the bytes that git stores.
type Refusal struct {
	Path string // of the change
	Why  string // inert
}

// Door is what a verdict is for.
type Door int

const (
	Propose Door = iota // an agent's work: also what git would store otherwise is refused
	Land                // a landing, of what goes back too: what is written must be what a checkout would hold
)

// looksMax is how many bytes are looked at for one verdict.
const looksMax = 512 << 20

// Judge names the edits of base at whose paths git converts between its store and a checkout, by the attributes before and
// after. An edit of a .gitattributes is named if a path that stays is converted otherwise by it. Objects are read from host.
//
// Errors: Unclear for what cannot be told.
func (s Settings) Judge(ctx context.Context, host git.Dir, base git.OID, edits []git.Edit, door Door) ([]Refusal, error) {
	if len(edits) == 0 {
		return nil, nil
	}
	j := judgement{host: host, door: door, edited: map[string]git.Edit{}, looks: map[git.OID]*look{}}
	var rules []git.Edit
	for _, e := range edits {
		j.edited[e.Path] = e
		if path.Base(e.Path) == FileName {
			rules = append(rules, e)
		}
	}
	var err error
	if j.before, j.stay, err = s.of(ctx, host, base, edits, rules); err != nil {
		return nil, err
	}
	if j.after = j.before; len(rules) > 0 {
		all, err := j.stay.overlaid(rules)
		if err != nil {
			return nil, err
		}
		if j.after, err = s.set(ctx, host, all); err != nil {
			return nil, err
		}
	}
	if err := j.collect(ctx, edits); err != nil {
		return nil, err
	}
	if err := j.read(ctx); err != nil {
		return nil, err
	}
	out := append(s.ownRules(edits), j.refusals()...)
	if j.before.matcher.steps < 0 || j.after.matcher.steps < 0 {
		return nil, tooSlow()
	}
	return out, nil
}

// ownRules refuses the edits of files of attributes that lie in the work tree by another name: they were read as they are
// before the edit.
func (s Settings) ownRules(edits []git.Edit) (out []Refusal) {
	for _, e := range edits {
		p := strings.ToLower(e.Path) // some file systems take capitals for small letters
		if slices.ContainsFunc(s.inside, func(in string) bool { return strings.HasPrefix(strings.ToLower(in)+"/", p+"/") }) {
			out = append(out, Refusal{e.Path, "the settings of git read attributes from it, or through it"})
		}
	}
	return out
}

// kept is what an edit of attributes may reach: the files of attributes of a tree, and all its other files.
type kept struct {
	attributes blobs
	files      []git.Edit // Old and New are the same
}

func (k kept) overlaid(rules []git.Edit) (blobs, error) {
	all := blobs{}
	for folder, oid := range k.attributes {
		all[folder] = oid
	}
	for _, e := range rules {
		delete(all, up(e.Path))
		switch {
		case regular(e.New):
			all[up(e.Path)] = e.New.OID
		case e.New.Mode == git.Symlink:
			return nil, linked(e.Path)
		}
	}
	return all, nil
}

// of reads the attributes of a commit, as far as they are about the edits; where they change themselves, all of them, and
// every file below.
func (s Settings) of(ctx context.Context, host git.Dir, commit git.OID, edits, rules []git.Edit) (*Set, kept, error) {
	k := kept{attributes: blobs{}}
	if len(rules) > 0 {
		folders := map[string]bool{}
		for _, e := range rules {
			folders[up(e.Path)] = true
		}
		err := host.List(ctx, commit, func(p string, e git.Entry, _ int64) error {
			if e.Mode == git.Symlink && path.Base(p) == FileName {
				return linked(p)
			}
			if !regular(e) {
				return nil
			}
			if path.Base(p) == FileName {
				k.attributes[up(p)] = e.OID
			}
			if reached(p, folders) {
				k.files = append(k.files, git.Edit{Path: p, Old: e, New: e})
			}
			return nil
		})
		if err != nil {
			return nil, k, err
		}
		set, err := s.set(ctx, host, k.attributes)
		return set, k, err
	}
	var paths []string
	seen := map[string]bool{}
	for _, e := range edits {
		for folder := up(e.Path); !seen[folder]; folder = up(folder) {
			seen[folder] = true
			paths = append(paths, path.Join(folder, FileName))
		}
	}
	found, err := host.Lookup(ctx, commit, paths)
	if err != nil {
		return nil, k, err
	}
	for i, e := range found {
		if e.Mode == git.Symlink {
			return nil, k, linked(paths[i])
		}
		if regular(e) {
			k.attributes[up(paths[i])] = e.OID
		}
	}
	set, err := s.set(ctx, host, k.attributes)
	return set, k, err
}

// reached reports whether p lies below one of some folders.
func reached(p string, folders map[string]bool) bool {
	for folder := up(p); ; folder = up(folder) {
		if folders[folder] {
			return true
		}
		if folder == "" {
			return false
		}
	}
}

// judgement is one verdict in the making.
type judgement struct {
	host          git.Dir
	door          Door
	before, after *Set
	stay          kept
	edited        map[string]git.Edit

	cases []ruled
	looks map[git.OID]*look // of blobs whose bytes matter
	order []git.OID
}

// ruled is a path with what git does there before and after.
type ruled struct {
	git.Edit
	was, is       action
	whyWas, whyIs why
	stays         bool
}

// collect finds the paths that git does anything to.
func (j *judgement) collect(ctx context.Context, edits []git.Edit) error {
	add := func(r ruled) error {
		if j.before.matcher.steps < 0 || j.after.matcher.steps < 0 {
			return tooSlow()
		}
		j.add(r)
		return ctx.Err()
	}
	for _, e := range edits {
		if err := add(ruled{Edit: e}); err != nil {
			return err
		}
	}
	for _, e := range j.stay.files {
		if _, edited := j.edited[e.Path]; edited {
			continue
		}
		if err := add(ruled{Edit: e, stays: true}); err != nil {
			return err
		}
	}
	return nil
}

func tooSlow() error { return unclear("its patterns take too long to match") }

func (j *judgement) add(r ruled) {
	if regular(r.Old) {
		r.was, r.whyWas = j.before.action(r.Path)
	}
	if regular(r.New) {
		r.is, r.whyIs = j.after.action(r.Path)
	}
	if r.was == (action{}) && r.is == (action{}) || r.stays && r.was == r.is {
		return
	}
	j.cases = append(j.cases, r)
	for _, side := range []struct {
		git.Entry
		action
	}{{r.Old, r.was}, {r.New, r.is}} {
		if side.needs() && j.looks[side.OID] == nil {
			j.looks[side.OID] = &look{}
			j.order = append(j.order, side.OID)
		}
	}
}

// read looks at the bytes that matter.
func (j *judgement) read(ctx context.Context) error {
	total := int64(0)
	return j.host.Blobs(ctx, j.order, func(oid git.OID, size int64, r io.Reader) error {
		if total += size; total > looksMax {
			return unclear(fmt.Sprintf("more than %d bytes would have to be looked at", looksMax))
		}
		_, err := io.Copy(j.looks[oid], r)
		return err
	})
}

// refusals is the verdict, one for a path.
func (j *judgement) refusals() []Refusal {
	var out []Refusal
	reaches := map[string]bool{} // files of attributes that are named already
	for _, r := range j.cases {
		old, made := r.was.on(j.looks[r.Old.OID]), r.is.on(j.looks[r.New.OID])
		switch {
		case r.stays && (old.out || made.out || made.in):
			because := r.whyIs
			if because.says == "" {
				because = r.whyWas
			}
			rule := j.rule(r.Path)
			if reaches[rule] {
				continue
			}
			reaches[rule] = true
			out = append(out, Refusal{rule, fmt.Sprintf("it changes how git converts %s (%s), which stays in the checkout as it is",
				inert.Path(r.Path), because.inert())})
		case r.stays:
		case old.out:
			out = append(out, Refusal{r.Path, "git converts it between its store and the checkout (" + r.whyWas.inert() + ")"})
		case made.out || made.in && j.door == Propose:
			out = append(out, Refusal{r.Path, "git converts it between its store and the checkout (" + r.whyIs.inert() + ")"})
		}
	}
	return out
}

// rule is the changed file of attributes that is nearest above a path.
func (j *judgement) rule(p string) string {
	for folder := up(p); ; folder = up(folder) {
		if name := path.Join(folder, FileName); folder == "" || j.edited[name].Path != "" {
			return name
		}
	}
}

func (w why) inert() string {
	if w.source == "" {
		return inert.Line(w.says) + " in git config"
	}
	return inert.Line(w.says) + " in " + inert.Path(w.source)
}
