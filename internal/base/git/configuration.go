package git

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/stamp"
)

// setting is one line of configuration.
type setting struct {
	scope  string // system, global, local, worktree, or command: we say that ourselves
	origin string // file:PATH, or what else names it
	key    string // in small letters, but for what stands between two dots
	value  string
	bare   bool // a key alone, which means true
}

// text is a setting's value with what a key alone means written out.
func (s setting) text() string {
	if s.bare {
		return "true"
	}
	return s.value
}

const (
	personMax = 10 * time.Second // that git may take to read a person's configuration: what it includes can lie anywhere
	unnamed   = time.Minute      // a file that git was built to read, and that nobody names, is seen after so long at the latest
)

// configuration reads all that is configured, in git's order: of the repository, of its owner, whose home folder is home, and of the
// system; home "" = of the repository alone. It reads only, for as long as personMax: of what is configured nothing is run.
//
// In a context with Readers it is read again once one of the files it comes from, or could come from, is another than it was, or is there
// where none was: each file that git always reads, each that one of these includes, and HEAD where the branch decides what is included.
// At the latest it is read again after a minute.
func (p Project) configuration(ctx context.Context, home string) ([]setting, error) {
	pool := readersOf(ctx)
	if pool == nil {
		return p.configured(ctx, home)
	}
	at := lookedAt{git: p.GitDir, common: p.CommonDir, home: home, uid: p.UID}
	if known, ok := pool.configuration(at); ok {
		return known, nil
	}
	l := look{begun: time.Now(), stamped: stamp.Now()}
	all, err := p.configured(ctx, home)
	if err != nil {
		return nil, err
	}
	if files, ok := p.configFiles(all, home); ok {
		l.all, l.files = all, stampsOf(files)
		pool.remember(at, l)
	}
	return all, nil
}

// configured asks git.
func (p Project) configured(ctx context.Context, home string) ([]setting, error) {
	ctx, done := context.WithTimeoutCause(ctx, personMax, fmt.Errorf("reading the configuration took longer than %s", personMax))
	defer done()
	out, err := p.Worktree(disk.Ops{}).Run(ctx, Cmd{Args: []string{"config", "--null", "--show-scope", "--show-origin", "--list"}, Home: home})
	if err != nil {
		return nil, err
	}
	words := strings.Split(string(out), "\x00")
	var all []setting
	for i := 0; i+2 < len(words); i += 3 {
		key, value, valued := strings.Cut(words[i+2], "\n")
		all = append(all, setting{scope: words[i], origin: words[i+1], key: key, value: value, bare: !valued})
	}
	return all, nil
}

// configFiles are the files that a configuration depends on; false if not all of them can be told.
func (p Project) configFiles(all []setting, home string) (files []string, ok bool) {
	home = cmp.Or(home, nowhere)
	files = append(p.readAlways(home), filepath.Join(p.GitDir, "config.worktree"))
	for _, s := range all {
		origin := p.origin(s.origin)
		if origin != "" && stamp.Of(origin).None() { // it was there a moment ago
			return nil, false
		}
		if origin != "" && !slices.Contains(files, origin) {
			files = append(files, origin)
		}
		key := strings.ToLower(s.key)
		if !strings.HasPrefix(key, "include") || !strings.HasSuffix(key, ".path") {
			continue
		}
		path := expand(s.value, home)
		if strings.HasPrefix(path, "%") || strings.HasPrefix(path, "~") || origin == "" {
			return nil, false
		}
		if !filepath.IsAbs(path) {
			path = filepath.Join(filepath.Dir(origin), path)
		}
		files = append(files, path)
		if strings.HasPrefix(key, "includeif.onbranch:") {
			files = append(files, filepath.Join(p.GitDir, "HEAD"))
		}
	}
	return files, true
}

// lookedAt is whose configuration was read.
type lookedAt struct {
	git, common, home string
	uid               uint32
}

// look is what a configuration was.
type look struct {
	begun, stamped time.Time // by the clock of this process, and by the one that stamps files
	all            []setting // read only
	files          map[string]stamp.Stamp
}

func stampsOf(files []string) map[string]stamp.Stamp {
	stamps := map[string]stamp.Stamp{}
	for _, file := range files {
		stamps[file] = stamp.Of(file)
	}
	return stamps
}

// still reports whether what was looked at is what there is.
func (l look) still(now time.Time) bool {
	if now.Sub(l.begun) >= unnamed {
		return false
	}
	for file, was := range l.files {
		if stamp.Of(file) != was {
			return false
		}
	}
	return true
}

// looksMax is how many configurations are kept: one for each repository that is worked on, and some.
const looksMax = 64

func (r *Readers) configuration(at lookedAt) ([]setting, bool) {
	r.mu.Lock()
	l, ok := r.looks[at]
	r.mu.Unlock()
	return l.all, ok && l.still(time.Now())
}

// remember keeps a look for the next who asks; unless a file of it was written just then: a second time would leave no trace.
func (r *Readers) remember(at lookedAt, l look) {
	for _, s := range l.files {
		if !s.Before(l.stamped) {
			return
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.looks) >= looksMax || r.looks == nil {
		r.looks = map[lookedAt]look{}
	}
	r.looks[at] = l
}
