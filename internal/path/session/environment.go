package session

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"sallyport/internal/port/agent"
	"sallyport/internal/port/sandbox"
)

// Surroundings is what a change's programs may see beside their tree.
type Surroundings struct {
	Owner    sandbox.Owner
	Limits   sandbox.Limits
	Path     string   // the person's PATH
	Home     string   // the person's home folder; never shown
	Top      string   // the person's repository
	Shares   []string // absolute paths on the host
	Profiles []string // named; those that the files at the top ask for are added
	Way      Way      // out of the sandbox
	Caches   bool     // there is a folder of caches
	SetUp    bool     // which setup commands have filled, or fill
	Image    string   // shown in place of the machine's programs: sandbox.Spec.Image; "" = the machine's
}

// person is whose programs are shown.
func (s Surroundings) person() sandbox.Person {
	return sandbox.Person{
		Path: s.Path, Home: s.Home, Top: s.Top, Registries: s.Way.Socket != "" && s.Way.Registries, Caches: s.Caches, SetUp: s.SetUp, Image: s.Image,
	}
}

// profiles are those that were named, and those that the files at the top ask for.
func (s Surroundings) profiles() (names []string) {
	detected := sandbox.DetectProfiles(func(name string) bool {
		info, err := os.Lstat(filepath.Join(s.Top, name))
		return s.Top != "" && err == nil && info.Mode().IsRegular()
	})
	for _, name := range append(slices.Clone(s.Profiles), detected...) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// Toolchains tells one set of tools from another, by the image and what the profiles find; "" if there is neither.
func (s Surroundings) Toolchains() string {
	var out strings.Builder
	if s.Image != "" {
		out.WriteString("image " + s.Image + "\n")
	}
	for _, name := range s.profiles() {
		out.WriteString(name + "\n" + s.person().Toolchain(name))
	}
	return out.String()
}

// Way is an open way out of a sandbox; the zero value is none: nothing that is asked of the network is answered.
type Way struct {
	Socket     string // on the host; "" = there is none
	Bundle     string // file on the host with the certificates to trust; "" = the system's
	Registries bool   // package registries may be reached
	End        func() // closes it and waits until nothing goes through any more; twice is as good as once. May be nil
}

// Close closes a way that may be none.
func (w Way) Close() {
	if w.End != nil {
		w.End()
	}
}

// env says to programs where the way out is, in every spelling that is in use.
func (w Way) env() (env []string) {
	if w.Socket == "" {
		return nil
	}
	proxy := "http://127.0.0.1:" + strconv.Itoa(sandbox.EgressPort)
	for name, value := range map[string]string{"HTTP_PROXY": proxy, "HTTPS_PROXY": proxy, "NO_PROXY": "127.0.0.1,localhost"} {
		env = append(env, name+"="+value, strings.ToLower(name)+"="+value)
	}
	env = append(env, "NODE_USE_ENV_PROXY=1") // node looks at the others only then
	if w.Bundle != "" {
		for _, name := range []string{"SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "PIP_CERT",
			"GIT_SSL_CAINFO", "DENO_CERT", "npm_config_cafile"} {
			env = append(env, name+"="+sandbox.CABundle)
		}
	}
	slices.Sort(env)
	return env
}

// usual is PATH inside after what is the person's own.
var usual = []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}

// UsualPath are the folders of a PATH that says nothing.
func UsualPath() []string { return slices.Clone(usual) }

// kept has tools that keep what they fetch below the home folder, which goes with its sandbox, keep it among the caches: there what a
// setup fetched is found by agent and checks. A profile may say otherwise.
var kept = []string{
	"XDG_CACHE_HOME=" + sandbox.Caches, "GOMODCACHE=" + sandbox.Caches + "/go-mod", "CARGO_HOME=" + sandbox.Caches + "/cargo",
	"GRADLE_USER_HOME=" + sandbox.Caches + "/gradle", "MAVEN_OPTS=-Dmaven.repo.local=" + sandbox.Caches + "/m2",
	"NUGET_PACKAGES=" + sandbox.Caches + "/nuget", "COMPOSER_CACHE_DIR=" + sandbox.Caches + "/composer",
}

// Environment returns a spec with everything but a tree and a program: binds,
// limits and the whole environment. Nothing of the person's own environment goes in.
//
// Errors: as of sandbox.Person.Share and Profile.
func Environment(ctx context.Context, s Surroundings) (sandbox.Spec, error) {
	if err := ctx.Err(); err != nil {
		return sandbox.Spec{}, fmt.Errorf("gather what a sandbox shows: %w", context.Cause(ctx))
	}
	person := s.person()
	spec := sandbox.Spec{Owner: s.Owner, Limits: s.Limits, Dir: sandbox.Mountpoint, Egress: s.Way.Socket, Image: s.Image}
	if s.Way.Socket != "" && s.Way.Bundle != "" {
		spec.Binds = addBinds(spec.Binds, sandbox.Bind{Source: s.Way.Bundle, Target: sandbox.CABundle})
	}
	for _, path := range s.Shares {
		b, err := person.Share(path)
		if err != nil {
			return sandbox.Spec{}, err
		}
		spec.Binds = addBinds(spec.Binds, b)
	}
	env := []string{
		"HOME=" + sandbox.Home, "USER=agent", "LOGNAME=agent", "SHELL=/bin/sh", "TERM=dumb", "LANG=C.UTF-8", "TMPDIR=/tmp",
	}
	env = append(env, s.Way.env()...)
	if s.Caches && s.SetUp {
		env = append(env, kept...)
	}
	var dirs []string
	for _, name := range s.profiles() {
		profile, err := person.Profile(name)
		if err != nil {
			return sandbox.Spec{}, err
		}
		spec.Binds = addBinds(spec.Binds, profile.Binds...)
		dirs = append(dirs, profile.Dirs...)
		env = setEnv(env, profile.Env...)
	}
	spec.Env = setEnv(env, "PATH="+search(person, dirs, spec.Binds))
	return spec, nil
}

// WithProgram returns spec running p: its binds, its folders in front of PATH, its environment.
func WithProgram(spec sandbox.Spec, p agent.Program) sandbox.Spec {
	spec.Binds = addBinds(slices.Clone(spec.Binds), p.Binds...)
	spec.Argv = p.Argv
	spec.Env = setEnv(slices.Clone(spec.Env), p.Env...)
	dirs := slices.Clone(p.Dirs)
	for _, dir := range filepath.SplitList(lookEnv(spec.Env, "PATH")) {
		if !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	spec.Env = setEnv(spec.Env, "PATH="+strings.Join(dirs, ":"))
	return spec
}

// search is PATH inside: the image's and the person's folders that can be seen, then first, then the usual ones.
func search(p sandbox.Person, first []string, binds []sandbox.Bind) string {
	var dirs []string
	add := func(dir string) {
		if !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	for _, dir := range p.Folders() {
		dir = filepath.Clean(dir)
		visible := slices.Contains(usual, dir) || p.Shows(dir) ||
			slices.ContainsFunc(binds, func(b sandbox.Bind) bool { return sandbox.Below(dir, b.Target) })
		if filepath.IsAbs(dir) && visible {
			add(dir)
		}
	}
	for _, dir := range append(slices.Clone(first), usual...) {
		add(dir)
	}
	return strings.Join(dirs, ":")
}

// addBinds leaves out what is shown already, read-only, by a bind of the same target.
func addBinds(all []sandbox.Bind, more ...sandbox.Bind) []sandbox.Bind {
	for _, b := range more {
		if !slices.ContainsFunc(all, func(a sandbox.Bind) bool { return a.Target == b.Target }) {
			all = append(all, b)
		}
	}
	return all
}

func setEnv(env []string, more ...string) []string {
	for _, entry := range more {
		name, _, _ := strings.Cut(entry, "=")
		env = slices.DeleteFunc(env, func(old string) bool { return strings.HasPrefix(old, name+"=") })
		env = append(env, entry)
	}
	return env
}

func lookEnv(env []string, name string) string {
	for _, entry := range env {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}
