package config

import (
	"errors"
	"path/filepath"
	"strings"
	"time"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/base/whole"
)

// Settings are a home's sallyport.yaml and policy.yaml, and the one way to them. Each is looked at when it is asked for, read again
// where it may be another, and counts once it loads. One that does not load changes nothing: what loaded last goes on.
//
// What is returned is shared, and nobody writes to it.
type Settings struct {
	sallyport *file[Sallyport]
	policy    *file[Policy]
}

// Unloaded is one of the two files, which does not load.
type Unloaded struct {
	File  string    // its name
	Since time.Time // when that was found first, over restarts; zero if no daemon has found it yet
	Line  int       // of the first thing that is wrong; 0 where the file cannot be read
	Why   error     // a problem: file, line and path of all that is wrong, and how it is corrected
	Kept  string    // the file that has what goes on instead; "" where nothing ever loaded
}

// ErrUnloaded is why nothing is approved and nothing lands while the policy does not load.
var ErrUnloaded = problem.New(problem.Refused, "the home's policy.yaml does not load")

// Open reads both files for the daemon of the home, and keeps what loads in .state/config for the next one. A file that does not load is
// as it was when it loaded last. Errors: why one does not load that never has, problem.Refused or problem.Unavailable.
func Open(home string, ops disk.Ops) (*Settings, error) {
	s := Look(home)
	folder := filepath.Join(home, keptFolder)
	if !whole.Exists(folder) {
		err := whole.MakeFolder(ops, folder)
		if err == nil {
			err = ops.Do("settings:folder", func() error { return whole.Sync(filepath.Dir(folder)) })
		}
		if err != nil {
			return nil, err
		}
	}
	return s, errors.Join(s.sallyport.open(ops), s.policy.open(ops))
}

// Look reads both files for who is not the daemon of the home: it writes nothing.
func Look(home string) *Settings {
	return &Settings{newFile(home, SallyportFile, ParseSallyport), newFile(home, PolicyFile, ParsePolicy)}
}

// Sallyport is the sallyport.yaml that counts now.
func (s *Settings) Sallyport() Sallyport { return s.sallyport.now() }

// Policy is the policy.yaml that counts now.
func (s *Settings) Policy() Policy { return s.policy.now() }

// Decidable returns nil while the policy loads, and else why nothing is approved and nothing lands: an ErrUnloaded.
func (s *Settings) Decidable() error {
	u := s.policy.unloaded()
	if u == nil {
		return nil
	}
	return problem.Case(ErrUnloaded, problem.Of(u.Why).Next, "nothing is approved and nothing lands while the policy does not load: %s", u.Text())
}

// Unloaded are the files that do not load.
func (s *Settings) Unloaded() (all []Unloaded) {
	for _, u := range []*Unloaded{s.sallyport.unloaded(), s.policy.unloaded()} {
		if u != nil {
			all = append(all, *u)
		}
	}
	return all
}

// Unkept is why what loads could not be kept for the next daemon; nil if it is.
func (s *Settings) Unkept() error { return errors.Join(s.sallyport.unkept(), s.policy.unkept()) }

// Text says in one line what is wrong, naming the file and the line.
func (u Unloaded) Text() string { return strings.ReplaceAll(problem.Of(u.Why).Text, "\n", "; ") }

// InForce says what counts in its place.
func (u Unloaded) InForce() string {
	if u.Kept == "" {
		return "Nothing counts in its place, so no daemon starts."
	}
	text := "What it said when it loaded last goes on (" + inert.Path(u.Kept) + ")."
	if u.File == PolicyFile {
		text += " Until it loads, nothing is approved and nothing lands."
	}
	return text
}

// News is what the owner is to be told of a file.
type News struct {
	Unloaded
	Loads bool // it loads again, and did not since Since
}

// News returns what the owner has not been told. A file has to be found twice in a row not to load: it may be half written. What was told is
// said by Told.
func (s *Settings) News() (all []News) {
	for _, f := range []interface{ news() *News }{s.sallyport, s.policy} {
		if n := f.news(); n != nil {
			all = append(all, *n)
		}
	}
	return all
}

// Told says that the owner has been told.
func (s *Settings) Told(n News) error {
	if n.File == SallyportFile {
		return s.sallyport.told(n)
	}
	return s.policy.told(n)
}
