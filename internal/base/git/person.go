package git

import (
	"context"
	"fmt"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Person is who commits in a repository, as its owner's own configuration says. A signature without a name means that
// nothing says it.
type Person struct {
	Author    Signature // At is zero
	Committer Signature
}

// Person reads who commits here, with the configuration of the repository's owner, whose home folder is home; "" = as the
// system says. It reads only: of what is configured nothing is run.
func (p Project) Person(ctx context.Context, home string) (Person, error) {
	set, _, err := p.Settings(ctx, home, "user.name", "user.email", "author.name", "author.email", "committer.name", "committer.email")
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

// Settings returns what the configuration of the repository, of its owner and of the system says of some keys, and the owner's home
// folder. A key that is not set is not in it. What we say ourselves is left out.
func (p Project) Settings(ctx context.Context, home string, keys ...string) (map[string]string, string, error) {
	home = p.home(home)
	all, err := p.configuration(ctx, home)
	if err != nil {
		return nil, home, err
	}
	return pick(all, keys), home, nil
}

// Own returns what the configuration of the repository alone says of some keys; of a switch, true or false.
func (p Project) Own(ctx context.Context, keys ...string) (map[string]string, error) {
	all, err := p.configuration(ctx, "")
	if err != nil {
		return nil, err
	}
	set := map[string]string{}
	for _, s := range all {
		if slices.Contains(keys, s.key) {
			set[s.key] = truth(s.text())
		}
	}
	return set, nil
}

// pick returns the last word on some keys, of what is not ours.
func pick(all []setting, keys []string) map[string]string {
	set := map[string]string{}
	for _, s := range all {
		if s.scope != "command" && slices.Contains(keys, s.key) {
			set[s.key] = s.value
		}
	}
	return set
}

// home is the owner's home folder: as said, or as the system says.
func (p Project) home(said string) string {
	if filepath.IsAbs(said) {
		return said
	}
	if u, err := user.LookupId(strconv.FormatUint(uint64(p.UID), 10)); err == nil && u.HomeDir != "" {
		return u.HomeDir
	}
	return nowhere
}

// identity is a name or an address as git would write it into a commit: one line, and nothing that ends it.
func identity(s string) string {
	return strings.Trim(plain(strings.ToValidUTF8(s, "")), " .,:;\"\\'")
}

// Address is a signature as it stands in a trailer.
func (s Signature) Address() string { return plain(s.Name) + " <" + plain(s.Email) + ">" }
