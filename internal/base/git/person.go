package git

import (
	"context"
	"errors"
	"fmt"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"sallyport/internal/base/disk"
)

// Person is who commits in a repository, as its owner's own configuration says. A signature without a name means that
// nothing says it.
type Person struct {
	Author    Signature // At is zero
	Committer Signature
}

// personMax is how long git may take to read a person's configuration: what it includes can lie anywhere.
const personMax = 10 * time.Second

// Person reads who commits here, with the configuration of the repository's owner, whose home folder is home; "" = as the
// system says. It reads only: of what is configured nothing is run.
func (p Project) Person(ctx context.Context, home string) (Person, error) {
	ctx, done := context.WithTimeoutCause(ctx, personMax, fmt.Errorf("reading the configuration took longer than %s", personMax))
	defer done()
	set, _, err := p.Settings(ctx, home, `^(user|author|committer)\.(name|email)$`)
	if err != nil {
		return Person{}, fmt.Errorf("read who commits in %q: %w", p.Top, err)
	}
	pick := func(role string) Signature {
		s := Signature{Name: identity(set[role+".name"]), Email: identity(set[role+".email"])}
		if s.Name == "" {
			s.Name = identity(set["user.name"])
		}
		if s.Email == "" {
			s.Email = identity(set["user.email"])
		}
		if s.Name == "" || s.Email == "" {
			return Signature{}
		}
		return s
	}
	return Person{Author: pick("author"), Committer: pick("committer")}, nil
}

// Settings returns what the configuration of the repository, of its owner and of the system says of the keys that match, by key in
// small letters, and the owner's home folder. It reads only, for as long as Person does; what we say ourselves is left out.
func (p Project) Settings(ctx context.Context, home, keys string) (map[string]string, string, error) {
	ctx, done := context.WithTimeoutCause(ctx, personMax, fmt.Errorf("reading the configuration took longer than %s", personMax))
	defer done()
	home = p.home(home)
	out, err := p.Worktree(disk.Ops{}).Run(ctx, Cmd{Args: []string{"config", "--null", "--show-scope", "--get-regexp", keys}, Home: home})
	var failed *Failure
	if err != nil && (!errors.As(err, &failed) || failed.Code != 1) { // 1: none is set
		return nil, home, err
	}
	set := map[string]string{}
	records := strings.Split(string(out), "\x00")
	for i := 0; i+1 < len(records); i += 2 {
		if key, value, _ := strings.Cut(records[i+1], "\n"); records[i] != "command" {
			set[strings.ToLower(key)] = value
		}
	}
	return set, home, nil
}

// home is the owner's home folder: as said, or as the system says.
func (p Project) home(said string) string {
	if filepath.IsAbs(said) {
		return said
	}
	if u, err := user.LookupId(strconv.FormatUint(uint64(p.UID), 10)); err == nil && u.HomeDir != "" {
		return u.HomeDir
	}
	return "/nonexistent"
}

// identity is a name or an address as git would write it into a commit: one line, and nothing that ends it.
func identity(s string) string {
	return strings.Trim(plain(strings.ToValidUTF8(s, "")), " .,:;\"\\'")
}

// Address is a signature as it stands in a trailer.
func (s Signature) Address() string { return plain(s.Name) + " <" + plain(s.Email) + ">" }
