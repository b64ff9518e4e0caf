package sandbox

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Person is whose programs and folders are shown, for what may never be.
type Person struct {
	Path string // PATH
	Home string // home folder; never shown itself
	Top  string // top of the repository, which stands at Mountpoint inside; "" = none
	// Image is the root file system that is shown in place of the machine's (Spec.Image): programs of /usr are looked up there, by its own
	// links. Those that the person has installed elsewhere are the machine's all the same.
	Image string
	// Registries says that package registries can be reached: profiles do not tell programs to do without.
	Registries bool
	Caches     bool // there is a folder at Caches
	SetUp      bool // a command of the repository's or the person's fills it with what a build needs
}

// Installed is a program and what has to be shown for it to run.
type Installed struct {
	Path  string   // inside
	Dirs  []string // folders with its programs, for PATH, inside
	Binds []Bind   // read-only, at the same paths as on the host
}

// interpretersMax is how many scripts may stand behind one another.
const interpretersMax = 4

// Find looks a program up as the person would from dir: a name by the image's PATH and theirs, a
// path as it is. The error wraps os.ErrNotExist or os.ErrPermission.
func (p Person) Find(name, dir string) (string, error) {
	if name == "" {
		return "", fmt.Errorf("no program is named: %w", os.ErrNotExist)
	}
	if strings.Contains(name, "/") {
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		return name, p.runnable(name)
	}
	var shim string
	last := os.ErrNotExist
	for _, folder := range p.Folders() {
		if !filepath.IsAbs(folder) {
			continue
		}
		path := filepath.Join(folder, name)
		switch err := p.runnable(path); {
		case err != nil:
			if !errors.Is(err, os.ErrNotExist) {
				last = err
			}
		case filepath.Base(folder) != "shims":
			return path, nil
		case shim == "":
			// A version manager's stand-in looks for the real one in a folder that is not shown.
			shim = path
		}
	}
	if shim != "" {
		return shim, nil
	}
	return "", fmt.Errorf("%q is not in PATH: %w", name, last)
}

func runnable(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular() || info.Mode()&0o111 == 0:
		return fmt.Errorf("%q is no program: %w", path, os.ErrPermission)
	}
	return nil
}

// Install returns how a program on the host is seen inside, with its interpreter
// if it is a script. What lies below /usr is there anyway; what lies in the
// repository is at Mountpoint; else the folder it was installed in is shown.
func (p Person) Install(path string) (Installed, error) {
	return p.install(filepath.Clean(path), 0)
}

func (p Person) install(path string, level int) (Installed, error) {
	if level >= interpretersMax {
		return Installed{}, fmt.Errorf("%q: more than %d interpreters behind one another", path, interpretersMax)
	}
	real, words, err := p.follow(path)
	if err != nil {
		return Installed{}, fmt.Errorf("find out where %q leads: %w", path, err)
	}
	if inside, ok := p.inRepository(path); ok {
		in := Installed{Path: inside} // its folder is the agent's to write: nothing is looked up there
		if err := p.ownInterpreter(path, words); err != nil {
			return Installed{}, err
		}
		return p.withInterpreter(in, words, level)
	}
	in := Installed{Path: path}
	if !common(path) {
		in.Dirs = []string{filepath.Dir(path)}
	}
	for _, place := range []string{path, real} {
		if p.Shows(place) || shown(place, in.Binds) || p.inTop(place) {
			continue
		}
		bind := p.folderOf(place, real)
		if p.inImage(real) && p.enters(bind.Source) != "" {
			in.Path, in.Dirs = real, nil // the machine has another file there, or none
			continue
		}
		if place != real && bind.Source != bind.Target && modulesOf(real) != "" {
			in.Path, in.Dirs = real, []string{filepath.Dir(real)} // by another name it would not find its modules
			continue
		}
		in.Binds = append(in.Binds, bind)
	}
	return p.withInterpreter(in, words, level)
}

// follow finds where a path leads on the machine, or in the image if it leads there, and the words after #! if it is a script.
func (p Person) follow(path string) (real string, words []string, err error) {
	if at := p.enters(path); at != "" {
		return p.followImage(at)
	}
	if real, err = filepath.EvalSymlinks(path); err != nil {
		return "", nil, err
	}
	f, err := os.Open(real)
	if err != nil {
		return real, nil, nil // what nobody here may read is no script to us
	}
	defer f.Close()
	return real, interpreter(f), nil
}

// Shows reports whether every sandbox of the person's shows a path.
func (p Person) Shows(path string) bool { return common(path) || p.inImage(path) }

// common reports whether every sandbox shows a path: /usr and the names that lead into it.
func common(path string) bool {
	for _, top := range []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"} {
		if Below(path, top) {
			return true
		}
	}
	return false
}

// inRepository translates a path of the repository to the one inside.
func (p Person) inRepository(path string) (string, bool) {
	if !p.inTop(path) {
		return "", false
	}
	rest, err := filepath.Rel(p.Top, path)
	return filepath.Join(Mountpoint, rest), err == nil
}

func (p Person) inTop(path string) bool { return p.Top != "" && Below(path, p.Top) }

// folderOf returns what to show for a program at path: …/bin/x stands for the
// folder above bin, a program of node for all the modules that it was installed with, anything
// else for its own folder. A folder that holds more than programs is never shown; then it is the file alone.
func (p Person) folderOf(path, real string) Bind {
	if modules := modulesOf(path); modules != "" && !p.private(modules) {
		return Bind{Source: modules, Target: modules}
	}
	folder := filepath.Dir(path)
	flat := true
	if name := filepath.Base(folder); name == "bin" || name == "sbin" || name == "libexec" {
		folder, flat = filepath.Dir(folder), false
	}
	if p.private(folder) || flat && p.everybodys(folder) {
		return Bind{Source: real, Target: path}
	}
	return Bind{Source: folder, Target: folder}
}

// modulesOf is the outermost folder of node's modules that a path lies in; "" if it lies in none.
func modulesOf(path string) string {
	const name = "/node_modules"
	if at := strings.Index(path, name+"/"); at >= 0 {
		return path[:at+len(name)]
	}
	return ""
}

// private reports whether a folder is too much to show: a home or what it lies
// in, a dot-folder of a home, a folder right below the root, one with the repository in it.
func (p Person) private(folder string) bool {
	if strings.Count(folder, "/") < 2 || filepath.Dir(folder) == "/home" || folder == "/root" {
		return true
	}
	if p.Top != "" && Below(p.Top, folder) {
		return true
	}
	for _, home := range p.homes(folder) {
		if Below(home, folder) {
			return true
		}
		rest, err := filepath.Rel(home, folder)
		if err != nil || !strings.HasPrefix(rest, ".") || strings.HasPrefix(rest, "..") {
			continue
		}
		for _, kept := range []string{".ssh", ".gnupg", ".config", ".aws", ".kube", ".docker"} {
			if Below(rest, kept) {
				return true
			}
		}
		// ~/.local, ~/.local/share and ~/.cargo hold everybody's things; ~/.pyenv/versions/3.12 is one installation.
		if strings.Count(rest, "/") < 2 {
			return true
		}
	}
	return false
}

// homes are the home folders that a folder may lie in: the person's, and, said by its name alone, whoever's.
func (p Person) homes(folder string) []string {
	homes := []string{"/root"}
	if parts := strings.Split(folder, "/"); len(parts) > 2 && parts[1] == "home" {
		homes = append(homes, "/home/"+parts[2])
	}
	if p.Home == "" {
		return homes
	}
	homes = append(homes, filepath.Clean(p.Home))
	if real, err := filepath.EvalSymlinks(p.Home); err == nil {
		homes = append(homes, real)
	}
	return homes
}

// everybodys reports whether a program that lies in a folder by itself says nothing about the rest of it: right
// below a home, as ~/Downloads, or where everybody puts things.
func (p Person) everybodys(folder string) bool {
	if folder == "/var/tmp" || folder == "/dev/shm" {
		return true
	}
	for _, home := range p.homes(folder) {
		if filepath.Dir(folder) == home {
			return true
		}
	}
	return false
}

// withInterpreter adds what a script's first line asks for.
func (p Person) withInterpreter(in Installed, words []string, level int) (Installed, error) {
	if len(words) == 0 {
		return in, nil
	}
	path := words[0]
	if filepath.Base(path) == "env" {
		if err := p.runnable(path); err != nil && p.Image != "" {
			return in, fmt.Errorf("%q of %q: %w", path, in.Path, err)
		}
		name := ""
		for _, word := range words[1:] {
			if !strings.HasPrefix(word, "-") && !strings.Contains(word, "=") {
				name = word
				break
			}
		}
		found, err := p.Find(name, "/")
		if err != nil {
			return in, fmt.Errorf("the interpreter of %q: %w", in.Path, err)
		}
		path = found
	} else if err := p.runnable(path); err != nil {
		return in, fmt.Errorf("the interpreter %q of %q: %w", path, in.Path, err)
	}
	more, err := p.install(path, level+1)
	if err != nil {
		return in, err
	}
	for _, b := range more.Binds {
		if !shown(b.Target, in.Binds) {
			in.Binds = append(in.Binds, b)
		}
	}
	for _, dir := range more.Dirs {
		if !slices.Contains(in.Dirs, dir) {
			in.Dirs = append(in.Dirs, dir)
		}
	}
	return in, nil
}

// ownInterpreter refuses a script of the repository whose first line names a program that the person
// would not find by its name: whoever wrote the script would choose which folder is shown.
func (p Person) ownInterpreter(path string, words []string) error {
	if len(words) == 0 || filepath.Base(words[0]) == "env" {
		return nil // what env finds, it finds in the person's PATH
	}
	named := filepath.Clean(words[0])
	if p.Shows(named) || p.inTop(named) {
		return nil
	}
	for _, dir := range filepath.SplitList(p.Path) {
		if filepath.IsAbs(dir) && filepath.Dir(named) == filepath.Clean(dir) {
			return nil
		}
	}
	return fmt.Errorf("the first line of %q, a file of the repository, asks for %q; a sandbox shows an interpreter for it only if it lies in a folder of your PATH", path, words[0])
}

// interpreter returns the words after #! of a script; none if it is no script.
func interpreter(f io.Reader) []string {
	line, err := bufio.NewReaderSize(f, 256).ReadSlice('\n')
	if err != nil || !strings.HasPrefix(string(line), "#!") {
		return nil
	}
	words := strings.Fields(string(line[2:]))
	if len(words) == 0 || !filepath.IsAbs(words[0]) {
		return nil
	}
	return words
}

// Below reports whether path is folder or lies in it; both are clean and absolute.
func Below(path, folder string) bool {
	return path == folder || folder == "/" || strings.HasPrefix(path, folder+"/")
}

func shown(path string, binds []Bind) bool {
	return slices.ContainsFunc(binds, func(b Bind) bool { return Below(path, b.Target) })
}
