package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sallyport/internal/base/problem"
)

// Profile is what programs of one language need beyond /usr: their toolchain and
// the person's caches, read-only, and an environment that asks no network, unless registries can be reached.
type Profile struct {
	Binds []Bind
	Dirs  []string // for PATH, inside
	Env   []string
}

// TouchedCaches are the folders of Caches whose tool writes to the time of an entry when it uses one that it has not used for long: in
// a layer each such entry would be copied.
var TouchedCaches = []string{"go-build"}

// recipe makes a profile from what a person has.
type recipe struct {
	marks []string // files at the top of a tree that ask for it
	tools []string // looked for in the person's PATH
	fill  func(Person, *Profile)
}

var recipes = map[string]recipe{
	"go":     {marks: []string{"go.mod", "go.work"}, tools: []string{"go"}, fill: fillGo},
	"node":   {marks: []string{"package.json"}, tools: []string{"node", "npm"}, fill: fillNode},
	"python": {marks: []string{"pyproject.toml", "requirements.txt", "setup.py"}, tools: []string{"python3", "python"}, fill: fillPython},
}

// ProfileNames lists the profiles there are.
func ProfileNames() []string { return []string{"go", "node", "python"} }

// DetectProfiles returns the profiles that the names at the top of a tree ask for.
func DetectProfiles(has func(name string) bool) []string {
	var found []string
	for _, name := range ProfileNames() {
		if slices.ContainsFunc(recipes[name].marks, has) {
			found = append(found, name)
		}
	}
	return found
}

// Profile returns the named profile as this person's machine has it; what it
// does not have is left out. With an image the tools are the image's own: one of the machine's would run on libraries that it was not made
// for, and what a sandbox has would not be what image/Dockerfile says. What is left are the environment and the caches that hold data alone.
// Errors: problem.Usage for a name that is none.
func (p Person) Profile(name string) (Profile, error) {
	r, ok := recipes[name]
	if !ok {
		return Profile{}, problem.Errorf(problem.Usage, "sallyport run --help", "there is no profile %q; there are %s", name,
			strings.Join(ProfileNames(), ", "))
	}
	var out Profile
	for _, tool := range r.tools {
		path, err := p.Find(tool, "/")
		if err != nil || p.inTop(path) || p.Image != "" {
			continue
		}
		in, err := p.Install(path)
		if err != nil {
			continue // an interpreter that is gone: the tool does not work outside either
		}
		for _, b := range in.Binds {
			if !shown(b.Target, out.Binds) {
				out.Binds = append(out.Binds, b)
			}
		}
		for _, dir := range in.Dirs {
			if !slices.Contains(out.Dirs, dir) {
				out.Dirs = append(out.Dirs, dir)
			}
		}
	}
	r.fill(p, &out)
	return out, nil
}

// cache adds a folder of the person's, read-only; false if it is not there or is more than a cache.
func (p Person) cache(out *Profile, source, target string) bool {
	real, err := filepath.EvalSymlinks(source)
	if err != nil {
		return false
	}
	info, err := os.Stat(real)
	if err != nil || !info.IsDir() || strings.Count(real, "/") < 2 || p.holdsHome(real) {
		return false
	}
	out.Binds = append(out.Binds, Bind{Source: real, Target: target})
	return true
}

// caches is where tools keep what they can make again.
func (p Person) caches() string {
	if p.Caches {
		return Caches
	}
	return Home + "/.cache"
}

// Toolchain tells one installation of a profile's tools from another: where they are, how large, and from when. With an image it is the image.
func (p Person) Toolchain(name string) string {
	if p.Image != "" {
		return p.Image + "\n"
	}
	var out strings.Builder
	for _, tool := range recipes[name].tools {
		path, err := p.Find(tool, "/")
		if err == nil {
			path, err = filepath.EvalSymlinks(path)
		}
		info, lerr := os.Stat(path)
		if err != nil || lerr != nil {
			continue
		}
		fmt.Fprintf(&out, "%s %q %d %d\n", tool, path, info.Size(), info.ModTime().UnixNano())
	}
	return out.String()
}

func fillGo(p Person, out *Profile) {
	out.Env = append(out.Env,
		"GOTOOLCHAIN=local", "GOTELEMETRY=off", "GOPATH="+Home+"/go", "GOCACHE="+p.caches()+"/go-build", "GOENV=off")
	cache := goModCache(p.Home)
	shown := cache != "" && p.cache(out, cache, cache)
	if p.Caches && p.SetUp {
		out.Env = append(out.Env, "GOMODCACHE="+Caches+"/go-mod")
	}
	switch {
	case p.Registries && shown && plain(cache): // what the person has is not asked for again; nothing new fits into their cache
		out.Env = append(out.Env, "GOPROXY=file://"+cache+"/cache/download,"+goProxy)
	case p.Registries:
		out.Env = append(out.Env, "GOPROXY="+goProxy)
	case p.Caches && p.SetUp && shown && plain(cache):
		out.Env = append(out.Env, "GOPROXY=file://"+cache+"/cache/download,off")
	case shown && !(p.Caches && p.SetUp):
		out.Env = append(out.Env, "GOPROXY=off", "GOMODCACHE="+cache)
	default:
		out.Env = append(out.Env, "GOPROXY=off")
	}
}

// goProxy is the registry of Go modules; where a module comes from itself is no registry.
const goProxy = "https://proxy.golang.org"

// plain reports whether a path is the same in a URL, and in a list of URLs.
func plain(path string) bool {
	return !strings.ContainsFunc(path, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-", r)
	})
}

// GoModules is where the person's go keeps modules, which builds find there; "" if that is not known.
func (p Person) GoModules() string { return goModCache(p.Home) }

// goModCache reads where go keeps modules: what `go env -w` wrote, else the default.
func goModCache(home string) string {
	if home == "" {
		return ""
	}
	settings := map[string]string{}
	if raw, err := readBounded(filepath.Join(home, ".config/go/env"), 64<<10); err == nil {
		for line := range strings.Lines(string(raw)) {
			name, value, ok := strings.Cut(strings.TrimSpace(line), "=")
			if ok {
				settings[name] = value
			}
		}
	}
	cache := settings["GOMODCACHE"]
	if cache == "" {
		first := filepath.Join(home, "go")
		if list := filepath.SplitList(settings["GOPATH"]); len(list) > 0 && list[0] != "" {
			first = list[0]
		}
		cache = filepath.Join(first, "pkg/mod")
	}
	if !filepath.IsAbs(cache) {
		return ""
	}
	return filepath.Clean(cache)
}

func readBounded(path string, most int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > most {
		return nil, errors.New("not a small regular file")
	}
	return os.ReadFile(path)
}

func fillNode(p Person, out *Profile) {
	npm := Home + "/.npm"
	if p.Caches && p.Registries {
		npm = Caches + "/npm"
	}
	out.Env = append(out.Env,
		"npm_config_update_notifier=false", "npm_config_audit=false", "npm_config_fund=false", "npm_config_cache="+npm)
	if p.Registries {
		return // npm writes what it fetches into its cache, and fails where it cannot
	}
	out.Env = append(out.Env, "npm_config_offline=true")
	if p.Home != "" {
		p.cache(out, filepath.Join(p.Home, ".npm/_cacache"), Home+"/.npm/_cacache")
	}
}

func fillPython(p Person, out *Profile) {
	out.Env = append(out.Env, "PIP_DISABLE_PIP_VERSION_CHECK=1")
	if !p.Registries {
		out.Env = append(out.Env, "PIP_NO_INDEX=1")
	}
	if p.Caches {
		out.Env = append(out.Env, "PIP_CACHE_DIR="+Caches+"/pip")
	}
	if p.Home == "" || p.Image != "" { // the image's python is another
		return
	}
	// Packages that the person installed for themselves: seen where python looks for them inside.
	sites, err := filepath.Glob(filepath.Join(p.Home, ".local/lib/python3*/site-packages"))
	if err != nil {
		return
	}
	for _, site := range sites {
		rest, err := filepath.Rel(p.Home, site)
		if err == nil {
			p.cache(out, site, filepath.Join(Home, rest))
		}
	}
}
