package daemon

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/leftover"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/client"
	"sallyport/internal/drive/live"
	"sallyport/internal/host/storage"
	"sallyport/internal/path/session"
	"sallyport/internal/port/egress"
	"sallyport/internal/port/login"
	"sallyport/internal/rule/config"
	"sallyport/internal/rule/credential"
	"sallyport/internal/rule/secret"
	"sallyport/internal/rule/stuck"
)

// Outside is what ways out stand on; the zero value is the system's.
type Outside struct {
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	Dial    func(ctx context.Context, to netip.AddrPort) (net.Conn, error)
	Roots   egress.Roots
}

// network opens the ways out of this home's sandboxes: one door each, behind a socket of its own in the folder of the
// daemon's. What may be reached is read anew each time.
type network struct {
	settings *config.Settings
	folder   string // of sockets
	outside  Outside
	ops      disk.Ops
	log      *slog.Logger

	number atomic.Int64
	mu     sync.Mutex
	ca     *egress.Authority // made when it is first needed
	bundle string
}

func newNetwork(o Options, settings *config.Settings, log *slog.Logger) (*network, error) {
	path, err := client.Me().Socket(o.Home)
	if err != nil {
		return nil, err
	}
	return &network{settings: settings, folder: filepath.Dir(path), outside: o.Outside, ops: o.Ops, log: log}, nil
}

// Left tells what an earlier daemon of this home has left beside its socket.
func (n *network) Left(ctx context.Context) ([]leftover.Item, error) {
	return leftover.Names{Folder: n.folder, Goes: leftover.AtStart, Ops: n.ops, Op: "network:sweep",
		Patterns: []string{storage.WayPrefix + "*", storage.BundlePrefix + "*", live.SocketPrefix + "*"}}.Left(ctx)
}

// close removes what the ways out had in common; all of them are closed.
func (n *network) close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ca == nil {
		return nil
	}
	n.ca = nil
	return n.ops.Do("network:remove", func() error { return os.Remove(n.bundle) })
}

// Open opens one way out.
func (n *network) Open(_ context.Context, o live.Outgoing) (live.Way, error) {
	rules, registries, err := reach(n.settings.Sallyport().Egress, o)
	if err != nil {
		return live.Way{}, err
	}
	conf := egress.Config{Rules: rules, Decided: o.Decided, Resolve: n.outside.Resolve, Dial: n.outside.Dial, Roots: n.outside.Roots}
	if o.Model != nil && !o.Check {
		route, err := model(o)
		if err != nil {
			return live.Way{}, err
		}
		conf.Routes = []egress.Route{route}
	}
	if len(conf.Rules)+len(conf.Routes) == 0 {
		return live.Way{}, nil
	}
	way := session.Way{Registries: registries}
	if slices.ContainsFunc(rules, egress.Rule.Inspected) {
		if conf.CA, way.Bundle, err = n.ensureAuthority(); err != nil {
			return live.Way{}, err
		}
	}
	door, err := egress.New(conf)
	if err != nil {
		return live.Way{}, err
	}
	way.Socket, way.End, err = n.serve(door)
	return way, err
}

// reach is what a sandbox may reach beside its model: what the home lets all of them, and what the person lets this one.
func reach(home []config.Egress, o live.Outgoing) (rules []egress.Rule, registries bool, err error) {
	if o.Check && len(home) == 0 {
		return nil, false, nil
	}
	if o.Setup {
		return reachSetup(home, o)
	}
	if o.Webless {
		return nil, false, nil
	}
	add := func(e config.Egress, from string) {
		if e.Set == config.Registries {
			if !registries {
				rules = append(rules, egress.Registries()...)
			}
			registries = true
			return
		}
		r := egress.Rule{Host: string(e.Host), Methods: config.Strings(e.Methods), Paths: config.Strings(e.Paths), From: from}
		for _, p := range e.Ports {
			r.Ports = append(r.Ports, uint16(p)) // a number from 1 to 65535: the parser saw to it
		}
		rules = append(rules, r)
	}
	for _, e := range home {
		add(e, "sallyport.yaml")
	}
	for _, text := range o.Asked {
		e, err := config.ParseEgress(text)
		if err != nil {
			return nil, false, problem.Errorf(problem.Usage, "sallyport run --help", "--egress: %w", err)
		}
		add(e, "--egress")
	}
	return rules, registries, nil
}

// reachSetup is what the setup of a change may reach: package registries, if the home, the person's --egress or their own --setup says so.
func reachSetup(home []config.Egress, o live.Outgoing) ([]egress.Rule, bool, error) {
	granted := o.Fetch || slices.ContainsFunc(home, func(e config.Egress) bool { return e.Set == config.Registries })
	for _, text := range o.Asked {
		granted = granted || text == config.Registries
	}
	if !granted {
		return nil, false, nil
	}
	return egress.Registries(), true, nil
}

// model is the route to a session's model: the key is added here, outside.
func model(o live.Outgoing) (egress.Route, error) {
	base, err := url.Parse(o.Model.Base)
	if err != nil {
		return egress.Route{}, problem.Errorf(problem.Usage, "sallyport agent list", "the endpoint of the model of %s is no URL: %w", o.Agent, err)
	}
	route := egress.Route{
		Name: "model", Base: base, Methods: []string{http.MethodGet, http.MethodPost}, Paths: o.Model.Paths, Only: o.Model.Only, Wire: string(o.Model.Wire),
		Admit: o.Admit, Used: o.Used, Waits: o.Waits, Moved: o.Moved, Idle: stuck.Silence,
	}
	switch {
	case o.Login != nil:
		route.Header, route.Credential = o.Model.Header, pass{login: o.Login, prefix: o.Model.Prefix, lost: o.Lost}
	case !o.Key.Empty():
		route.Header, route.Value = o.Model.Header, secret.Hold(o.Model.Prefix+o.Key.Reveal())
	case !o.Model.Keyless:
		return egress.Route{}, problem.Errorf(problem.Unavailable, "sallyport agent list", "the key of the model of %s is missing", o.Agent)
	}
	return route, nil
}

// newLogins are those of the user whose daemon this is. What renews them goes the way that models are asked, and follows no redirect.
func newLogins(o Options, held *secret.Held, log *slog.Logger) *login.Logins {
	transport := http.DefaultTransport.(*http.Transport).Clone() // it is one: the library says so
	if o.Outside.Roots != nil {
		transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: o.Outside.Roots}
	}
	if dial := o.Outside.Dial; dial != nil {
		transport.DialContext = func(ctx context.Context, _, to string) (net.Conn, error) {
			host, port, err := net.SplitHostPort(to)
			if err != nil {
				return nil, err
			}
			at, err := o.Outside.Resolve(ctx, host)
			if err != nil || len(at) == 0 {
				return nil, errors.Join(err, &net.DNSError{Err: "no address", Name: host, IsNotFound: true})
			}
			n, err := strconv.ParseUint(port, 10, 16)
			if err != nil {
				return nil, err
			}
			return dial(ctx, netip.AddrPortFrom(at[0], uint16(n)))
		}
	}
	return login.New(login.Options{
		Client: &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
		Held:   held, Getenv: os.Getenv, UID: os.Geteuid(), Ops: o.Ops, Log: log,
	})
}

// pass is a login as a route takes it.
type pass struct {
	login  *login.Login
	prefix string
	lost   func(error)
}

var _ egress.Credential = pass{}

func (p pass) Present(ctx context.Context) (secret.Value, map[string]string, error) {
	now, err := p.login.Present(ctx)
	if err != nil {
		return secret.Value{}, nil, p.tell(err)
	}
	more := map[string]string{}
	if name := p.login.Kind().Account; name != "" && now.Account != "" {
		more[name] = now.Account
	}
	return secret.Hold(p.prefix + now.Token.Reveal()), more, nil
}

func (p pass) Refused(ctx context.Context, value secret.Value) error {
	return p.tell(p.login.Refused(ctx, secret.Hold(strings.TrimPrefix(value.Reveal(), p.prefix))))
}

// tell passes an error on; that a login has ended is told first.
func (p pass) tell(err error) error {
	if p.lost != nil && errors.Is(err, credential.ErrMissing) {
		p.lost(err)
	}
	return err
}

// serve opens a door's socket. Whoever starts the sandbox gives it to the sandbox's uid; nobody else enters its folder.
func (n *network) serve(door *egress.Door) (path string, end func(), err error) {
	path = filepath.Join(n.folder, storage.WayPrefix+strconv.FormatInt(n.number.Add(1), 36))
	var l *net.UnixListener
	err = n.ops.Do("network:listen", func() (err error) {
		if l, err = net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: path}); err != nil {
			return err
		}
		l.SetUnlinkOnClose(false) // by us, when it is silent
		return os.Chmod(path, 0o600)
	})
	if err != nil {
		if l != nil {
			err = errors.Join(err, l.Close(), os.Remove(path))
		}
		return "", nil, fmt.Errorf("open a way out: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background()) // as long as the sandbox, whatever asked for it
	done := make(chan error, 1)
	go func() { done <- door.Serve(ctx, l) }() // ends with end
	return path, sync.OnceFunc(func() {
		cancel()
		err := <-done
		err = errors.Join(err, n.ops.Do("network:remove", func() error { return os.Remove(path) }))
		if err != nil {
			n.log.Warn("a way out did not close as it should", "error", err)
		}
	}), nil
}

// ensureAuthority makes the daemon's own authority once, and returns it with the file of what is trusted inside: the system's and it.
func (n *network) ensureAuthority() (*egress.Authority, string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ca != nil {
		return n.ca, n.bundle, nil
	}
	ca, err := egress.NewAuthority()
	if err != nil {
		return nil, "", err
	}
	bundle := filepath.Join(n.folder, storage.BundlePrefix+strconv.Itoa(os.Getpid()))
	// Nobody else enters the folder; inside, another uid reads it.
	if err := n.ops.Do("network:bundle", func() error { return os.WriteFile(bundle, ca.Bundle(), 0o644) }); err != nil {
		return nil, "", fmt.Errorf("write the certificates that are trusted inside: %w", err)
	}
	n.ca, n.bundle = ca, bundle
	return n.ca, n.bundle, nil
}
