package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"sallyport/internal/base/beneath"
	"sallyport/internal/base/id"
	"sallyport/internal/base/pattern"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/drive/accept"
	"sallyport/internal/drive/live"
	"sallyport/internal/path/session"
	"sallyport/internal/port/agent"
	"sallyport/internal/port/login"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/rule/config"
	"sallyport/internal/rule/credential"
)

const (
	versionTime  = 20 * time.Second // a node program on a busy machine takes seconds to say its version
	versionBytes = 16 << 10
	versionsAt   = 2 // programs that are asked at once
)

// versions remembers what programs said of themselves, by what they are on disk.
type versions struct {
	mu   sync.Mutex
	said map[string]string
}

// ListAgents lists every agent that has a name, as the person finds it: installed or not, its version, its key.
//
// A program's version is what it says in a sandbox, without a network and with an empty home. On the host bare it might write to the
// person's home, ask the net for updates, or be another program of that name: a list that somebody looks at is no reason to run it.
func (d *Daemon) ListAgents(ctx context.Context, at api.Place) ([]api.Agent, error) {
	home := d.settings.Sallyport()
	table := agent.Table()
	out := make([]api.Agent, len(table))
	var group errgroup.Group
	group.SetLimit(versionsAt)
	for i, k := range table {
		group.Go(func() error {
			out[i] = d.agentOf(ctx, k, choice(home.Agents[config.AgentName(k.Name)]), at)
			return nil
		})
	}
	_ = group.Wait() // no function returns one
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	return out, nil
}

func (d *Daemon) agentOf(ctx context.Context, k agent.Known, c live.Choice, at api.Place) api.Agent {
	out := api.Agent{Name: k.Name, Title: k.Title, Driver: k.Driver, Install: k.Install, Model: c.Settings.Model, Keys: k.KeyNames(),
		Off: append([]string{}, k.Off...), Hosts: append([]string{}, k.Hosts...)}
	if driver, ok := d.drivers[k.Driver]; ok {
		can := driver.Capabilities()
		out.Capabilities = api.Capabilities{
			InteractiveMode: can.InteractiveMode, WorkingDirectory: can.WorkingDirectory, PauseResume: can.PauseResume,
			MessagePassing: can.MessagePassing, Acknowledgment: can.Acknowledgment, PauseProtocol: string(can.PauseProtocol),
		}
	}
	out.Keyless = k.Talks
	if c.Key == credential.Login {
		loginOf(d.logins, &out, k, c)
	} else if e := k.Endpoint(c.Settings); e != nil {
		out.Endpoint, out.Keyless = e.Base, e.Keyless
		w := credential.Wanted{Agent: k.Name, Reference: c.Key, Names: k.KeyNames(), Keyless: e.Keyless}
		if c.Key != "" {
			out.Keys = append([]string{}, w.Variables()...)
		}
		if c.Key == "" && c.Settings.Base == "" && c.Settings.Wire == "" && len(k.Endpoints) > 1 {
			out.Endpoints = map[string]string{}
			for _, each := range slices.Backward(k.Endpoints) { // of two in one variable the first counts
				for _, name := range each.Keys {
					out.Endpoints[name] = each.Base
				}
			}
		}
		if c.Key == "" && c.Settings.Base == "" {
			out.Bases = map[string][]string{}
			for _, each := range k.Endpoints {
				out.Bases[each.Base] = append([]string{}, each.Bases...)
			}
		}
		from, err := d.keys.Has("", w)
		if out.KeyFrom = from; err != nil && !errors.Is(err, credential.ErrMissing) {
			out.Problem = problem.Of(err).Text
		}
	}
	if l := loginThere(d.logins, k); l != nil && c.Key == "" {
		out.Login = l.Path()
	}
	if len(k.Programs) == 0 {
		out.Installed, out.Version = true, api.Build()
		return out
	}
	out.InGroups = candidate{d}.inGroups(k)
	person := sandbox.Person{Path: at.Path, Home: at.Home, Top: at.Dir}
	for _, name := range k.Programs {
		path, err := person.Find(name, at.Dir)
		if err != nil {
			continue
		}
		out.Path = path
		in, err := person.Install(path)
		if err != nil {
			out.Problem = "it cannot be shown in a sandbox: " + err.Error()
			return out
		}
		out.Installed = true
		version, err := d.version(ctx, in, k.Version)
		if out.Version = version; err != nil {
			out.Problem = "its version is not known: " + problem.Of(err).Text
		}
		return out
	}
	return out
}

// inGroups says whether the sandbox of a group finds an agent's program. Nobody's shell is there when a group is woken: its PATH is
// the one that the daemon was started with. What an image lacks is not said here, for the way to mend it is another one.
func (c candidate) inGroups(k agent.Known) string {
	own := sandbox.Person{Path: os.Getenv("PATH"), Home: os.Getenv("HOME")}
	if c.image != "" {
		own.Image = c.Images().Root(c.image)
	}
	for _, name := range k.Programs {
		if _, err := own.Find(name, "/"); err == nil {
			return api.AgentFound
		}
	}
	if c.image != "" {
		return ""
	}
	return api.AgentAbsent
}

// loginOf says of an agent whose model is asked with its own program's login what there is.
func loginOf(logins *login.Logins, out *api.Agent, k agent.Known, c live.Choice) {
	c.Settings.Login, out.Keys = true, []string{}
	if e := k.Endpoint(c.Settings); e != nil {
		out.Endpoint = e.Base
	}
	l, err := live.Outfitter{Logins: logins}.Login(k, c)
	if err == nil {
		err = l.Check()
	}
	if err != nil {
		out.Problem = problem.Of(err).Text
		return
	}
	out.KeyFrom = string(credential.Login) + ":" + l.Path()
}

// loginThere is the login of an agent's own program, if it can be used; nil if not.
func loginThere(logins *login.Logins, k agent.Known) *login.Login {
	if k.Login == nil {
		return nil
	}
	l, err := logins.Of(k.Login.Of)
	if err != nil || l.Check() != nil {
		return nil
	}
	return l
}

var versionForm = pattern.Of(`\d+\.\d+[0-9A-Za-z.+-]*`)

// version asks a program for its version, once for as long as it stays what it is.
func (d *Daemon) version(ctx context.Context, in sandbox.Installed, args []string) (string, error) {
	key := in.Path
	if info, err := os.Stat(in.Path); err == nil {
		key = fmt.Sprintf("%s %d %d", in.Path, info.Size(), info.ModTime().UnixNano())
	}
	d.versions.mu.Lock()
	said, ok := d.versions.said[key]
	d.versions.mu.Unlock()
	if ok {
		return said, nil
	}
	spec, err := session.Environment(ctx, session.Surroundings{Owner: trier{d}.owner(),
		Limits: sandbox.Limits{OutputBytes: versionBytes, Timeout: versionTime}})
	if err != nil {
		return "", err
	}
	spec = session.WithProgram(spec, agent.Program{Argv: append([]string{in.Path}, args...), Dirs: in.Dirs, Binds: in.Binds})
	var heard bytes.Buffer
	exit, err := trier{d}.onNothing(ctx, spec, &heard)
	if err != nil {
		return "", err
	}
	if exit.Code != 0 || exit.Limit != nil {
		return "", fmt.Errorf("%s", session.Describe(exit))
	}
	if said = versionForm().FindString(heard.String()); said == "" {
		return "", errors.New("it says none")
	}
	d.versions.mu.Lock()
	defer d.versions.mu.Unlock()
	if d.versions.said == nil || len(d.versions.said) > 100 {
		d.versions.said = map[string]string{}
	}
	d.versions.said[key] = said
	return said, nil
}

// trier runs what no change has asked for.
type trier struct{ *Daemon }

// owner is who what is tried on nothing runs as: no change has this uid before all others have had theirs.
func (d trier) owner() sandbox.Owner {
	if first := d.control.Settings.FirstUID; first != 0 {
		uid := first + accept.UIDsPerHome - 1
		return sandbox.Owner{UID: uid, GID: uid}
	}
	return d.control.Settings.Self
}

// bounded is an output of which no more than so much is kept; its limit is the sandbox's.
type bounded struct {
	mu sync.Mutex
	to *bytes.Buffer
}

func (b *bounded) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.to.Write(p)
}

// onNothing runs a spec on an empty tree that is thrown away, and returns once nothing of it is left.
func (d trier) onNothing(ctx context.Context, spec sandbox.Spec, heard *bytes.Buffer) (sandbox.Exit, error) {
	tree, clear, err := d.scratch(spec.Owner)
	defer clear()
	if err != nil {
		return sandbox.Exit{}, err
	}
	return d.runOn(ctx, spec, sandbox.Tree{Dir: tree}, heard)
}

// scratch makes an empty folder for something that is tried; clear removes it, with all that is in it.
func (d trier) scratch(owner sandbox.Owner) (tree string, clear func(), err error) {
	var dir string
	err = d.Ops.Do("try:make", func() (err error) {
		if dir, err = os.MkdirTemp(filepath.Join(d.Home, ".state"), "probe-"); err != nil {
			return err
		}
		tree = filepath.Join(dir, "tree")
		if err := os.Mkdir(tree, 0o700); err != nil || os.Geteuid() != 0 {
			return err
		}
		return os.Lchown(tree, int(owner.UID), int(owner.GID))
	})
	if err != nil {
		err = unwritable(d.Home, err)
	}
	return tree, func() {
		if dir == "" {
			return
		}
		err := d.Ops.Do("try:remove", func() error {
			place, _, err := beneath.PlaceOf(dir) // an agent may have left folders that their owner cannot enter
			if err != nil || place == (beneath.Place{}) {
				return err
			}
			return place.Remove()
		})
		if err != nil {
			d.log.Warn("what something was tried on was not removed", "folder", dir, "error", err)
		}
	}, err
}

// runOn runs a spec on a tree to its end.
func (d trier) runOn(ctx context.Context, spec sandbox.Spec, tree sandbox.Tree, heard *bytes.Buffer) (sandbox.Exit, error) {
	spec.ID, spec.Tree, spec.Dir = string(id.NewSession("try")), tree, sandbox.Mountpoint
	out := &bounded{to: heard}
	spec.Stdout, spec.Stderr = out, out
	p, err := d.sandbox.Start(ctx, spec)
	if err != nil {
		return sandbox.Exit{}, err
	}
	return p.Wait()
}
