package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	durable "sallyport/internal/base/whole"
	"sallyport/internal/door/client"
)

const serviceLong = `A service has systemd serve a home: from the start of the machine on, and again whenever it ended.
There is one unit for each home. Without a service a home is served while "sallyport serve" runs, or
while a command needs it.`

// Systemd is what a service is installed with.
type Systemd struct {
	Self   string // the program that a unit starts; an absolute path
	System string // the folder of this machine's own units
	Root   bool   // we may write there
	// Tell runs systemctl; nil where systemd does not run, or has no systemctl.
	Tell func(ctx context.Context, words ...string) error
}

// service is one home's unit, and where it lies.
type service struct {
	unit
	Systemd
	app  *app
	Name string
	Path string
}

// told is what install and remove answer in JSON.
type told struct {
	Home    string `json:"home"`
	Unit    string `json:"unit"`
	Path    string `json:"path"`
	Changed bool   `json:"changed"`        // the file was written, or removed
	Told    bool   `json:"told"`           // systemd knows, and has started or stopped it
	Next    string `json:"next,omitempty"` // what is left to a person
}

func newServiceInstallCommand(a *app) *cobra.Command {
	var user, only bool
	cmd := a.cmd("install [HOME]", "have systemd serve a home, from the start of the machine on",
		`Writes a unit of systemd that runs "sallyport serve HOME" with this program, and has systemd start
it now, at each start of the machine, and again whenever it ended. As root it is a unit of the
machine; with --user it is one of your own systemd. The unit gets your PATH, HOME and language, so
that agents are found as you find them.

A file that sallyport has not written is never replaced. Where systemd does not run, the unit is
written, and the commands to run later are named. With --print nothing is done. Installing again
writes the unit as it is to be now; a service that runs goes on as it was until it is restarted.

A service of your own runs while you are logged in. "loginctl enable-linger" has it run without you.`,
		`  sudo sallyport service install /srv/sallyport
  sallyport service install --user ~/assistants
  sallyport service install --print /srv/sallyport`, atMost("HOME"), func(cmd *cobra.Command, words []string) error {
			s, err := a.service(words, user)
			if err != nil {
				return err
			}
			text, err := s.text()
			if err != nil {
				return err
			}
			if only {
				if !a.document(map[string]any{"unit": s.Name, "path": s.Path, "text": text}) {
					fmt.Fprint(a.Out, text)
				}
				return nil
			}
			return s.install(cmd.Context(), text)
		})
	cmd.Flags().BoolVar(&user, "user", false, "a unit of your own systemd, not of the machine's")
	cmd.Flags().BoolVar(&only, "print", false, "print the unit, and do nothing")
	return cmd
}

func newServiceRemoveCommand(a *app) *cobra.Command {
	var user bool
	cmd := a.cmd("remove [HOME]", "have systemd serve a home no longer",
		`Has systemd stop the service of a home, and removes its unit. The home stays, and the next command
that needs it starts a daemon as before. A file that sallyport has not written is left alone. Where
there is no service, that is said and nothing is done.`,
		`  sudo sallyport service remove /srv/sallyport
  sallyport service remove --user ~/assistants`, atMost("HOME"), func(cmd *cobra.Command, words []string) error {
			s, err := a.service(words, user)
			if err != nil {
				return err
			}
			return s.remove(cmd.Context())
		})
	cmd.Flags().BoolVar(&user, "user", false, "the unit of your own systemd, not of the machine's")
	return cmd
}

// service is that of the home which words name.
func (a *app) service(words []string, user bool) (service, error) {
	home, err := a.namedHome(words)
	if err != nil {
		return service{}, err
	}
	a.about(home)
	if err := client.NoProject(home); err != nil {
		return service{}, err
	}
	return a.serviceOf(home, user)
}

// unserved refuses while a service would start the home's daemon again.
func (a *app) unserved(home string) error {
	if a.Systemd == nil {
		return nil
	}
	for next, user := range map[string]bool{"sallyport service remove ": false, "sallyport service remove --user ": true} {
		s, err := a.serviceOf(home, user)
		if err != nil { // what no unit can name has none
			continue
		}
		if text, err := s.lies(); err == nil && text != "" {
			return problem.Errorf(problem.Conflict, next+inert.Path(home), "systemd serves this home and would start it again: the unit is %q", s.Path)
		}
	}
	return nil
}

// serviceOf is a home's service, installed or not.
func (a *app) serviceOf(home string, user bool) (s service, err error) {
	s = service{unit: unit{home: home, user: user}, app: a}
	if s.Systemd, err = a.Systemd(); err != nil {
		return s, fmt.Errorf("find this program: %w", err)
	}
	s.self = s.Self
	p := client.Me()
	p.Getenv = a.Getenv
	s.env = slices.DeleteFunc(p.DaemonEnvironment(), func(variable string) bool { // what holds for this login, or for a test, alone
		name, _, _ := strings.Cut(variable, "=")
		return slices.Contains([]string{"XDG_RUNTIME_DIR", "TMPDIR", "SALLYPORT_HOME", "GOCOVERDIR", "GORACE"}, name)
	})
	folder := s.System
	if user {
		if folder, err = a.userUnits(); err != nil {
			return s, err
		}
	}
	if s.Name, err = s.name(); err != nil {
		return s, err
	}
	s.Path = filepath.Join(folder, s.Name)
	return s, nil
}

// userUnits is the folder of a person's own units.
func (a *app) userUnits() (string, error) {
	config, home := a.Getenv("XDG_CONFIG_HOME"), a.Getenv("HOME")
	switch {
	case filepath.IsAbs(config):
		return filepath.Join(config, "systemd", "user"), nil
	case filepath.IsAbs(home):
		return filepath.Join(home, ".config", "systemd", "user"), nil
	}
	return "", problem.Errorf(problem.Usage, "sallyport service install --help",
		"HOME is %q, so it is not known where your own units lie; set HOME to the folder of your files", home)
}

// writable refuses where a unit of the machine cannot be written.
func (s service) writable(verb string) error {
	if s.user || s.Root {
		return nil
	}
	return problem.Errorf(problem.Denied, "sallyport service "+verb+" --user "+inert.Path(s.home),
		"a unit of the machine is root's: run this as root, or take one of your own systemd with --user")
}

// lies returns the unit as it lies there; "" if none does. One that sallyport has not written is an error.
func (s service) lies() (string, error) {
	info, err := os.Lstat(s.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	var text []byte
	if err == nil && info.Mode().IsRegular() {
		text, err = os.ReadFile(s.Path)
	}
	if err != nil {
		return "", problem.Errorf(problem.Unavailable, "ls -ld "+inert.Path(s.Path), "read the unit: %w", err)
	}
	if !strings.HasPrefix(string(text), unitMark+"\n") {
		return "", problem.Errorf(problem.Conflict, "ls -l "+inert.Path(s.Path), "%q is not a file that sallyport has written; it is left as it is", s.Path)
	}
	return string(text), nil
}

func (s service) install(ctx context.Context, text string) error {
	if err := s.writable("install"); err != nil {
		return err
	}
	before, err := s.lies()
	if err != nil {
		return err
	}
	if before != text {
		if err := s.write(text, before != ""); err != nil {
			return err
		}
	}
	out := told{Home: s.home, Unit: s.Name, Path: s.Path, Changed: before != text}
	orders := [][]string{{"daemon-reload"}, {"enable", "--now", s.Name}}
	if out.Told, err = s.tell(ctx, orders...); err != nil {
		return err
	}
	switch {
	case !out.Told:
		out.Next = s.byHand(orders...)
	case out.Changed && before != "": // what runs is as it was
		out.Next = s.byHand([]string{"restart", s.Name})
	}
	if s.app.document(out) {
		return nil
	}
	said, p := "is as it should be", s.app.sheet(s.app.Out)
	if out.Changed {
		said = "written"
	}
	p.line("%s %s", inert.Path(s.Path), said)
	if out.Told {
		p.line("%s: systemd serves %s, now and from each start on", p.green("installed"), inert.Path(s.home))
	} else {
		p.line("systemd does not run here, so nothing was started")
	}
	if out.Next != "" {
		p.line("next: %s", out.Next)
	}
	return nil
}

// write puts the unit in its place, durably; a file that came meanwhile stays, unless ours is replaced.
func (s service) write(text string, replace bool) error {
	ops, folder := disk.Ops{}, filepath.Dir(s.Path)
	err := ops.Do("service:folder", func() error { return os.MkdirAll(folder, 0o755) })
	if err == nil {
		err = writeFile(s.Path, text, replace)
	}
	if err == nil {
		err = ops.Do("service:sync", func() error { return durable.Sync(folder) })
	}
	if err == nil {
		return nil
	}
	return problem.Errorf(problem.KindOf(err), "ls -ld "+inert.Path(folder), "install the unit: %w", err)
}

func (s service) remove(ctx context.Context) error {
	if err := s.writable("remove"); err != nil {
		return err
	}
	before, err := s.lies()
	if err != nil {
		return err
	}
	out := told{Home: s.home, Unit: s.Name, Path: s.Path, Changed: before != ""}
	if out.Changed {
		if out.Told, err = s.tell(ctx, []string{"disable", "--now", s.Name}); err != nil {
			return err
		}
		if err := s.unlink(); err != nil {
			return problem.Errorf(problem.Unavailable, "ls -ld "+inert.Path(filepath.Dir(s.Path)), "remove the unit: %w", err)
		}
		if _, err = s.tell(ctx, []string{"daemon-reload"}); err != nil {
			return err
		}
	}
	if s.app.document(out) {
		return nil
	}
	p := s.app.sheet(s.app.Out)
	switch {
	case !out.Changed:
		p.line("no service of %s is installed", inert.Path(s.home))
	case out.Told:
		p.line("%s: systemd serves %s no longer; %s is gone", p.green("removed"), inert.Path(s.home), inert.Path(s.Path))
	default:
		p.line("%s: %s is gone; systemd does not run here", p.green("removed"), inert.Path(s.Path))
	}
	return nil
}

// unlink removes the unit, and first the links that have it started, where systemd could not be told to.
func (s service) unlink() error {
	folder := filepath.Dir(s.Path)
	for _, target := range []string{"multi-user.target.wants", "default.target.wants"} {
		link := filepath.Join(folder, target, s.Name)
		if info, err := os.Lstat(link); err != nil || info.Mode().Type() != fs.ModeSymlink {
			continue
		}
		if err := (disk.Ops{}).Do("service:disable", func() error { return errors.Join(os.Remove(link), durable.Sync(filepath.Dir(link))) }); err != nil {
			return err
		}
	}
	return disk.Ops{}.Do("service:remove", func() error { return errors.Join(os.Remove(s.Path), durable.Sync(folder)) })
}

// tell has systemd do something, if it runs here.
func (s service) tell(ctx context.Context, orders ...[]string) (bool, error) {
	if s.Tell == nil {
		return false, nil
	}
	for n, words := range orders {
		if s.user {
			words = append([]string{"--user"}, words...)
		}
		if err := s.Tell(ctx, words...); err != nil {
			return false, problem.Errorf(problem.Unavailable, s.byHand(orders[n:]...), "systemctl %s: %w", strings.Join(words, " "), err)
		}
	}
	return true, nil
}

// byHand is what a person runs in the place of tell.
func (s service) byHand(orders ...[]string) string {
	var all []string
	for _, words := range orders {
		command := "systemctl"
		if s.user {
			command += " --user"
		}
		for _, word := range words {
			if !strings.HasPrefix(word, "-") {
				word = inert.Path(word)
			}
			command += " " + word
		}
		all = append(all, command)
	}
	return strings.Join(all, " && ")
}
