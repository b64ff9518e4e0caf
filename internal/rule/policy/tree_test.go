package policy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"sallyport/internal/base/git"
	"sallyport/internal/rule/policy"
)

// tree is a base: what each path holds, folders left out.
type tree map[string]git.Entry

func base(paths ...string) tree {
	t := tree{}
	for _, p := range paths {
		t[p] = file("base")
	}
	return t
}

func file(content string) git.Entry { return entry(git.File, content) }
func entry(mode git.Mode, content string) git.Entry {
	return git.Entry{Mode: mode, OID: git.OID(fmt.Sprintf("%040x", content))}
}

func (t tree) input(rules policy.Rules, changes ...policy.Change) policy.Input {
	entries, names := map[string]git.Entry{}, map[string]map[string]bool{"": {}}
	for p, e := range t {
		entries[p] = e
		for {
			folder, name := "", p
			if i := strings.LastIndexByte(p, '/'); i >= 0 {
				folder, name = p[:i], p[i+1:]
			}
			if names[folder] == nil {
				names[folder] = map[string]bool{}
			}
			names[folder][name] = true
			if folder == "" {
				break
			}
			entries[folder] = entry(git.Folder, "")
			p = folder
		}
	}
	return policy.Input{
		Changes: changes, Rules: rules,
		Base: func(p string) (git.Entry, bool) { e, ok := entries[p]; return e, ok },
		Names: func(folder string) []string {
			var all []string
			for n := range names[folder] {
				all = append(all, n)
			}
			return all
		},
	}
}

func added(p string) policy.Change    { return change(p, git.Entry{}, file("new")) }
func modified(p string) policy.Change { return change(p, file("base"), file("new")) }
func deleted(p string) policy.Change  { return change(p, file("base"), git.Entry{}) }
func link(p, target string) policy.Change {
	c := change(p, git.Entry{}, entry(git.Symlink, target))
	c.Fact.LinkTarget = target
	return c
}
func change(p string, from, to git.Entry) policy.Change {
	return policy.Change{Edit: git.Edit{Path: p, Old: from, New: to}, Fact: policy.Fact{Size: 1, HardLinks: 1}}
}
func with(c policy.Change, f policy.Fact) policy.Change { c.Fact = f; return c }

// said is a verdict as "file constraint severity" lines.
func said(vs []policy.Violation) []string {
	out := []string{}
	for _, v := range vs {
		out = append(out, strings.TrimSpace(v.File+" "+v.Constraint+" "+string(v.Severity)))
	}
	return out
}

func expect(t *testing.T, in policy.Input, want ...string) []policy.Violation {
	t.Helper()
	vs := policy.Validate(in)
	if got := said(vs); !slices.Equal(got, want) {
		t.Errorf("verdict\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
	for _, v := range vs {
		if v.Message == "" || v.Suggestion == "" || strings.ContainsAny(v.Message+v.Suggestion, "\x1b\n\u202e") {
			t.Errorf("a violation says too little, or something that is not inert: %+v", v)
		}
	}
	return vs
}
