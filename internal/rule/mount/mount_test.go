package mount_test

import (
	"path"
	"strings"
	"testing"

	"sallyport/internal/rule/mount"
)

var closed = []mount.Closed{{Path: "/etc", What: "the host's /etc"}, {Path: "/var/lib/sallyport", What: "sallyport's own home"}}

func TestAFolderIsShownOnlyBelowARootAndWrittenOnlyWithTwoKeys(t *testing.T) {
	roots := []mount.Root{
		{Path: "/srv", Real: "/srv"},
		{Path: "/srv/box", Real: "/srv/box", Write: true},
		{Path: "/srv/box/kept", Real: "/srv/box/kept"},
		{Path: "/alias", Real: "/srv/box/b/kept"},        // it leads into a folder that may be written
		{Path: "/data", Real: "/disk/data", Write: true}, // a link of the owner's
		{Path: "/gone", Write: true},
		{Path: "/home/ann/.notes", Real: "/home/ann/.notes"},
		{Path: "/var/lib", Real: "/var/lib"}, {Path: "/etc/app", Real: "/etc/app"}, {Path: "/keys/.ssh", Real: "/keys/.ssh"},
	}
	for _, test := range []struct {
		wish  string // path; with "!" readonly: false
		real  string // "" = the same
		file  bool
		write bool
		note  string
		why   string
	}{
		{wish: "/srv/notes"},
		{wish: "/srv"},
		{wish: "/srv/notes!", note: `its root "/srv" does not say allowReadWrite`},
		{wish: "/srv/box/a"},
		{wish: "/srv/box/a!", write: true},
		{wish: "/srv/box!", note: `the root "/srv/box/kept" in it`},
		{wish: "/srv/box/b!", note: `the root "/alias" in it`},
		{wish: "/srv/box/kept/a!", note: `its root "/srv/box/kept"`}, // the deepest root decides
		{wish: "/data/a!", real: "/disk/data/a", write: true},
		{wish: "/home/ann/.notes"},

		{wish: "/srvother", why: "no root in mounts"},
		{wish: "/home/ann", why: "no root in mounts"},
		{wish: "/", why: "no root in mounts"},
		{wish: "/disk/data/a", why: "no root in mounts"},
		{wish: "/gone/a", why: `its root "/gone" is not there`},
		{wish: "/srv/none", real: "-", why: "it is not there"},
		{wish: "/srv/file", file: true, why: "it is no folder"},
		{wish: "/srv/link", real: "/home/ann", why: `a link on the way leads to "/home/ann"`},
		{wish: "/srv/link", real: "/srv/notes", why: `a link on the way leads to "/srv/notes"`},
		{wish: "/srv/box/a!", real: "/srv/other", why: "a link on the way"},
		{wish: "/etc/app", why: "it is part of the host's /etc"},
		{wish: "/var/lib", why: "sallyport's own home is in it"},
		{wish: "/var/lib/sallyport", why: "it is sallyport's own home"},
		{wish: "/var/lib/sallyport/.state", why: "it is part of sallyport's own home"},
		{wish: "/keys/.ssh", why: `its path has ".ssh/"`},
		{wish: "/srv/secrets/a", why: `its path has "secrets/"`},
		{wish: "/srv/app/.git", why: `its path has ".git"`},
		{wish: "/srv/other/.state/groups", why: `its path has ".state"`},
		{wish: "/srv/.config/gh", why: `".config" is a hidden folder`},
		{wish: "/home/ann/.notes/.cache", why: `".cache" is a hidden folder`},
	} {
		p, write := strings.CutSuffix(test.wish, "!")
		at := mount.Place{Real: test.real, Folder: !test.file}
		switch test.real {
		case "":
			at.Real = p
		case "-":
			at = mount.Place{}
		}
		g := mount.Decide(mount.Wish{Path: p, Name: path.Base(p), Write: write}, at, roots, closed)
		if g.Write != test.write || !begins(g.Note, test.note) || !begins(g.Refused, test.why) {
			t.Errorf("%s (%s): %+v", test.wish, test.real, g)
		}
	}
	if g := mount.Decide(mount.Wish{Path: "/srv/a"}, mount.Place{Real: "/srv/a", Folder: true}, nil, nil); g.Refused == "" {
		t.Error("a home that allows nothing shows something")
	}
	if g := mount.Decide(mount.Wish{Path: "/"}, mount.Place{Real: "/", Folder: true}, []mount.Root{{Path: "/", Real: "/"}}, nil); g.Refused == "" {
		t.Error("the whole machine is shown")
	}
}

func begins(got, want string) bool {
	return strings.HasPrefix(got, want) && (got == "") == (want == "")
}

func TestWhatIsInAFolderCanRefuseIt(t *testing.T) {
	for _, test := range []struct {
		in    mount.Contents
		write bool
		why   string
	}{
		{mount.Contents{}, true, ""},
		{mount.Contents{Exit: "a/sock"}, false, `"a/sock" in it is a socket`},
		{mount.Contents{Secret: "a/.env"}, false, `"a/.env" in it is where secrets are kept`},
		{mount.Contents{Mounted: "disk"}, false, `something else is mounted at "disk"`},
		{mount.Contents{Unread: "it holds too much"}, false, "it cannot be looked through: it holds too much"},
		{mount.Contents{Repository: "app/.git"}, true, "it is to be written and holds the git repository"},
		{mount.Contents{Repository: "app/.git"}, false, ""},
		{mount.Contents{Deep: "a/b"}, true, "it is to be written and"},
		{mount.Contents{Deep: "a/b"}, false, ""},
	} {
		g := test.in.Judge(mount.Grant{Write: test.write})
		if !begins(g.Refused, test.why) || g.Write != (test.write && test.why == "") {
			t.Errorf("%+v, to be written %t: %+v", test.in, test.write, g)
		}
	}
	if g := (mount.Contents{}).Judge(mount.Grant{Refused: "no"}); g.Refused != "no" {
		t.Errorf("a refusal is forgotten: %+v", g)
	}
}
