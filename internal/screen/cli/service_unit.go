package cli

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"sallyport/internal/base/problem"
)

// unitMark is the first line of every unit that is ours to replace and to remove.
const unitMark = "# Written by `sallyport service install`; `sallyport service remove` removes it."

// unitNameMax is how long systemd lets the name of a unit be.
const unitNameMax = 255

// unit is the service of one home.
type unit struct {
	home string
	self string   // the program that it starts
	user bool     // of a user's own systemd
	env  []string // NAME=value
}

// name is the unit's, made of the home's path: one for each home.
func (u unit) name() (string, error) {
	name := "sallyport-" + unitEscape(u.home) + ".service"
	if len(name) > unitNameMax {
		return "", problem.Errorf(problem.Usage, "sallyport service install --help",
			"the path of the home %q is too long for the name of a unit: that has %d bytes, and systemd takes %d", u.home, len(name), unitNameMax)
	}
	return name, nil
}

// unitEscape writes a path as systemd-escape --path does.
func unitEscape(path string) string {
	path = strings.Trim(path, "/")
	if path == "" {
		return "-"
	}
	var b strings.Builder
	for i := range len(path) {
		switch c := path[i]; {
		case c == '/' && path[i-1] == '/': // as one
		case c == '/':
			b.WriteByte('-')
		case c == '.' && i > 0, c == ':', c == '_', c >= '0' && c <= '9', c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z':
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, `\x%02x`, c)
		}
	}
	return b.String()
}

// unitQuote writes a word so that systemd reads exactly it, in a command or as a variable.
func unitQuote(what, word string) (string, error) {
	if !utf8.ValidString(word) || strings.ContainsFunc(word, unicode.IsControl) {
		return "", problem.Errorf(problem.Usage, "sallyport service install --help",
			"%s %q holds what no unit of systemd can: a line break, another control character, or no valid UTF-8", what, word)
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, `%`, `%%`).Replace(word) + `"`, nil
}

// text is the whole unit. The colon before the program says that no $ of a path is a variable. The keeper that it starts is what ends a
// daemon and starts another: so systemd starts the keeper again for ever, leaves what else runs to it, and lets it have the control groups
// below.
func (u unit) text() (string, error) {
	program, err := unitQuote("the program", u.self)
	if err != nil {
		return "", err
	}
	if strings.ContainsAny(u.self, `"'\`) {
		return "", problem.Errorf(problem.Usage, "sallyport service install --help",
			"systemd starts no program whose path has a quote or a backslash in it: %q; install sallyport elsewhere", u.self)
	}
	home, err := unitQuote("the home", u.home)
	if err != nil {
		return "", err
	}
	var env strings.Builder
	for _, variable := range u.env {
		name, _, _ := strings.Cut(variable, "=")
		word, err := unitQuote("the variable "+name, variable)
		if err != nil {
			return "", err
		}
		env.WriteString("Environment=" + word + "\n")
	}
	after, wantedBy := "After=network.target\n", "multi-user.target"
	if u.user {
		after, wantedBy = "", "default.target"
	}
	return unitMark + `
[Unit]
Description=sallyport serves (` + strings.ReplaceAll(u.home, "%", "%%") + `)
` + after + `StartLimitIntervalSec=0

[Service]
Type=exec
Environment=SALLYPORT_SERVICE=1
` + env.String() + `ExecStart=":` + program[1:] + ` serve ` + home + `
Restart=always
RestartSec=1
OOMPolicy=continue
Delegate=yes
KillMode=mixed
TimeoutStopSec=60

[Install]
WantedBy=` + wantedBy + `
`, nil
}
