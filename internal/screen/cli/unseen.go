package cli

import (
	"os"
	"path/filepath"
	"strings"

	"sallyport/internal/base/inert"
	"sallyport/internal/door/api"
)

// unseenSettings names the files that git reads in this shell because a variable says where they are. The daemon's git does not know the
// variable: it reads what lies in the person's home folder.
func unseenSettings(getenv func(string) string) []api.Check {
	home := getenv("HOME")
	files := []struct{ variable, path string }{{"GIT_CONFIG_GLOBAL", getenv("GIT_CONFIG_GLOBAL")}}
	if xdg := getenv("XDG_CONFIG_HOME"); xdg != "" {
		for _, name := range []string{"git/config", "git/attributes"} {
			files = append(files, struct{ variable, path string }{"XDG_CONFIG_HOME", filepath.Join(xdg, name)})
		}
	}

	var checks []api.Check
	for _, f := range files {
		st, err := os.Stat(f.path)
		if err != nil || !st.Mode().IsRegular() || readAtHome(st, f.path, home) {
			continue
		}
		key := "include.path"
		if strings.HasSuffix(f.path, "git/attributes") {
			key = "core.attributesFile"
		}
		checks = append(checks, api.Check{
			Name: "git settings", Ignored: true,
			Detail: "sallyport does not read " + inert.Path(f.path) + ", which " + f.variable + " has your git read",
			Fix:    "git -C " + inert.Path(home) + " config --file .gitconfig --add " + key + " " + inert.Path(f.path),
		})
	}
	return checks
}

// readAtHome reports whether a file is one of those that are read without a variable, or is named in one of them.
func readAtHome(file os.FileInfo, path, home string) bool {
	for _, name := range []string{".gitconfig", ".config/git/config", ".config/git/attributes"} {
		read := filepath.Join(home, name)
		if st, err := os.Stat(read); err == nil && os.SameFile(file, st) {
			return true
		}
		short := strings.Replace(path, home+"/", "~/", 1)
		if text, err := os.ReadFile(read); err == nil && (strings.Contains(string(text), path) || strings.Contains(string(text), short)) {
			return true
		}
	}
	return false
}
