// Package credential knows where the keys of models are, and holds those of open changes in memory.
//
// A key is nowhere else: not in a row, a log, a transcript, an error or a file of ours, and never inside a sandbox. It
// comes from the person's environment with a request, from the daemon's own environment, or from a file that the home's owner names;
// what is held is found and taken out wherever text is kept or shown (secret.Held), and forgotten when its change ends.
package credential

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"

	"sallyport/internal/base/pattern"
)

// Reference says where a key is: $NAME, a variable of an environment, or file:/path; or Login.
type Reference string

// Login is the reference to the login that an agent's own program keeps of itself on this machine, in place of a key.
const Login Reference = "login"

// ReferenceForm and VariableForm are what a reference and the name of a variable look like.
const (
	ReferenceForm = `^(\$[A-Za-z_][A-Za-z0-9_]{0,127}|file:/.+|login)$`
	VariableForm  = `^[A-Za-z_][A-Za-z0-9_]{0,127}$`
)

var variable = pattern.Of(VariableForm)

var errLiteral = errors.New("a key itself cannot stand in a file, where it is copied, shown and committed: say where it is, as $NAME of a variable or file:/path, or login for the agent's own login")

// Parse reads a reference. The error is one clause and never holds the text: it may be a key.
func Parse(text string) (Reference, error) {
	if name, ok := strings.CutPrefix(text, "$"); ok && variable().MatchString(name) {
		return Reference(text), nil
	}
	file, ok := strings.CutPrefix(text, "file:")
	switch {
	case Reference(text) == Login:
		return Login, nil
	case !ok:
		return "", errLiteral
	case !path.IsAbs(file) || path.Clean(file) != file || file == "/" || strings.ContainsFunc(file, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return "", errors.New("file: must be followed by the absolute path of a file, such as file:/etc/sallyport/key")
	}
	return Reference(text), nil
}

// Variable is the name of the variable that r names; "" if it names a file.
func (r Reference) Variable() string {
	name, ok := strings.CutPrefix(string(r), "$")
	if !ok {
		return ""
	}
	return name
}

// File is the path of the file that r names; "" if it names a variable.
func (r Reference) File() string {
	file, ok := strings.CutPrefix(string(r), "file:")
	if !ok {
		return ""
	}
	return file
}

// CheckVariable refuses what is no name of a variable; the error is one clause.
func CheckVariable(name string) error {
	if !variable().MatchString(name) {
		return fmt.Errorf("%q is no name of a variable: a name has letters, digits and _, and begins with no digit", name)
	}
	return nil
}

// BaseBytesMax bounds the URL of an endpoint.
const BaseBytesMax = 2048

// CheckBase refuses a URL that cannot be where a key is sent: the base of a model's endpoint. The error is one clause,
// without the URL: a password may stand in it.
func CheckBase(base string) error {
	u, err := url.Parse(base)
	switch {
	case err != nil || len(base) > BaseBytesMax || strings.ContainsFunc(base, func(r rune) bool { return r <= ' ' || r >= 0x7f }):
		return errors.New("it is no URL such as https://models.example.org/v1")
	case u.Scheme != "https" && u.Scheme != "http":
		return errors.New("it must begin with https:// or http://")
	case u.Hostname() == "" || u.Opaque != "":
		return errors.New("it names no host")
	case u.User != nil:
		return errors.New("a name or a password cannot stand in it; the key is named by key:")
	case u.RawQuery != "" || u.ForceQuery || strings.Contains(base, "#"):
		return errors.New("nothing can follow its path: no ? and no #")
	case strings.HasSuffix(base, "/"):
		return errors.New("it must not end in a slash")
	case u.Path != "" && slices.ContainsFunc(strings.Split(u.EscapedPath(), "/")[1:], odd):
		return errors.New("its path holds an empty part, . or ..")
	case u.Scheme == "http" && !near(u.Hostname()):
		return errors.New("http:// is taken only for this machine and a private network: the key would cross the net in plain text")
	}
	return nil
}

func odd(segment string) bool {
	plain, err := url.PathUnescape(segment)
	return err != nil || plain == "" || plain == "." || plain == ".."
}

// near reports whether a host is this machine or in its own network, by address or by a name that only such a network has.
func near(host string) bool {
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr.IsLoopback() || addr.IsPrivate()
	}
	return !strings.Contains(host, ".")
}
