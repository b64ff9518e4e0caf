package conversion

import (
	"bytes"
	"context"

	"sallyport/internal/base/git"
	"sallyport/internal/base/pattern"
)

// Path is what git does to the file at one path.
type Path struct {
	action
	Why string // inert; "" if git does nothing
}

// At returns what git does at paths of a work tree whose branch is at commit. Objects are read from host.
func (s Settings) At(ctx context.Context, host git.Dir, commit git.OID, paths []string) ([]Path, error) {
	edits := make([]git.Edit, len(paths))
	for i, p := range paths {
		edits[i].Path = p
	}
	set, _, err := s.of(ctx, host, commit, edits, nil)
	if err != nil {
		return nil, err
	}
	out := make([]Path, len(paths))
	for i, p := range paths {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if set.matcher.steps < 0 {
			return nil, tooSlow()
		}
		a, because := set.action(p)
		if out[i].action = a; a != (action{}) {
			out[i].Why = because.inert()
		}
	}
	if set.matcher.steps < 0 {
		return nil, tooSlow()
	}
	return out, nil
}

// Foreign reports whether only a program, or a table of letters, knows what git would store of a file here.
func (p Path) Foreign() bool { return p.filter != "" || p.encoding != "" }

// expanded is a keyword with what a checkout puts into it.
var expanded = pattern.Of(`\$Id:[^$\n]*\$`)

// Stored is what git would store of the bytes of a file, if that is not foreign: where the store has no CRLF in the file.
func (p Path) Stored(b []byte) []byte {
	l := &look{}
	_, _ = l.Write(b)
	auto := p.ends == autoLF || p.ends == autoCRLF
	if p.ends != asTheyAre && (!auto || !l.binary()) {
		b = bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n"))
	}
	if p.ident {
		b = expanded().ReplaceAllLiteral(b, []byte("$Id$"))
	}
	return b
}
