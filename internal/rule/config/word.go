package config

import (
	"fmt"
	"math"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"sallyport/internal/base/inert"
	"sallyport/internal/rule/policy"
)

// The kinds of value that a file may hold beside plain numbers and booleans.
type (
	Size        int64         // bytes: a whole number, or one with B, KiB, MiB, GiB or TiB
	Duration    time.Duration // 1d, 2h, 30m, 10s, and those in a row
	Glob        string        // see package policy
	Command     string        // for a shell inside a sandbox
	Folder      string        // absolute path on this machine
	Profile     string        // one of Profiles
	Executables string        // review or refuse
	Marks       string        // ask, refuse or show
	Self        string        // allow or refuse
	Permissions string        // on or off
	Handing     string        // conversation or terminal
	Sum         string        // a SHA-256 in hex
	Name        string        // of a person or program, in a commit
	ImageName   string        // of an image, as FROM has it
	Email       string
	Subject     string // of a commit, with {request} where the request's first line goes
)

// Profiles are the module caches there are.
var Profiles = []string{"go", "node", "python"}

const commandBytesMax = 4096

// forms is what a word must look like; the schemas say the same.
var forms = map[string]string{
	"size":     `^[1-9][0-9]{0,15}(B|KiB|MiB|GiB|TiB)$`,
	"duration": `^([1-9][0-9]{0,4}d)?([1-9][0-9]{0,5}h)?([1-9][0-9]{0,5}m)?([1-9][0-9]{0,5}s)?$`,
	"folder":   `^/`,
	"sum":      `^[0-9a-f]{64}$`,
	"name":     `^[^<>\n\x00-\x1f\x7f]+$`,
	"image":    `^[a-zA-Z0-9][a-zA-Z0-9._/:@-]{0,254}$`,
	"subject":  `^[^{}\x00-\x1f\x7f]{0,40}\{request\}[^{}\x00-\x1f\x7f]{0,40}$`,
	"email":    `^[^<>\s\x00-\x1f\x7f]+@[^<>\s\x00-\x1f\x7f]+$`,
}

// formed holds what compile has made: form → *regexp.Regexp.
var formed sync.Map

// compile is asked when the first word of a form is read: every command starts with this package.
func compile(form string) *regexp.Regexp {
	re, ok := formed.Load(form)
	if !ok {
		re, _ = formed.LoadOrStore(form, regexp.MustCompile(form))
	}
	return re.(*regexp.Regexp)
}

func match(form, text string) bool { return compile(form).MatchString(text) }

// word is a value that reads itself from text; the error is one clause.
type word interface{ parse(text string) error }

var units = []struct {
	name  string
	bytes int64
}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

func (s *Size) parse(text string) error {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && text == strconv.FormatInt(n, 10) {
		*s = Size(n)
		return nil
	}
	if !match(forms["size"], text) {
		return fmt.Errorf("%q is not a size; write it like 64MiB, with B, KiB, MiB, GiB or TiB", text)
	}
	for _, u := range units {
		digits, ok := strings.CutSuffix(text, u.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(digits, 10, 64)
		if err != nil || n > math.MaxInt64/u.bytes {
			return fmt.Errorf("%q is larger than any file", text)
		}
		*s = Size(n * u.bytes)
		return nil
	}
	return fmt.Errorf("%q has no unit", text)
}

// String writes a size with the largest unit that keeps it whole.
func (s Size) String() string {
	for _, u := range units {
		if s != 0 && int64(s)%u.bytes == 0 {
			return strconv.FormatInt(int64(s)/u.bytes, 10) + u.name
		}
	}
	return "0B"
}

func (d *Duration) parse(text string) error {
	found := compile(forms["duration"]).FindStringSubmatch(text)
	if found == nil || text == "" {
		return fmt.Errorf("%q is not a duration; write it like 1h or 1h30m, with d, h, m and s", text)
	}
	total := time.Duration(0)
	for i, unit := range []time.Duration{24 * time.Hour, time.Hour, time.Minute, time.Second} {
		if found[i+1] == "" {
			continue
		}
		n, err := strconv.ParseInt(found[i+1][:len(found[i+1])-1], 10, 32)
		if err != nil {
			return fmt.Errorf("%q is too long", text)
		}
		total += time.Duration(n) * unit // each fits, so a sum that does not is negative
		if total < 0 {
			return fmt.Errorf("%q is too long", text)
		}
	}
	*d = Duration(total)
	return nil
}

func (d Duration) String() string { return time.Duration(d).String() }

func (g *Glob) parse(text string) error {
	*g = Glob(text)
	return policy.CheckGlob(text)
}

func (c *Command) parse(text string) error {
	*c = Command(text)
	switch {
	case strings.TrimSpace(text) == "":
		return fmt.Errorf("the command is empty")
	case len(text) > commandBytesMax:
		return fmt.Errorf("the command has %d bytes; %d is the limit", len(text), commandBytesMax)
	}
	return nil
}

func (f *Folder) parse(text string) error {
	*f = Folder(path.Clean(text))
	if !match(forms["folder"], text) {
		return fmt.Errorf("%q is not an absolute path", text)
	}
	return nil
}

func (p *Profile) parse(text string) error { return oneOf(p, text, Profiles) }

var executables = []string{string(policy.Review), string(policy.Refuse)}

func (e *Executables) parse(text string) error { return oneOf(e, text, executables) }

var marks = []string{string(policy.MarksAsk), string(policy.MarksRefuse), string(policy.MarksShow)}

func (m *Marks) parse(text string) error { return oneOf(m, text, marks) }

// What Self can be.
const (
	SelfAllow  Self = "allow"
	SelfRefuse Self = "refuse"
)

var selves = []string{string(SelfAllow), string(SelfRefuse)}

func (s *Self) parse(text string) error { return oneOf(s, text, selves) }

// What Permissions can be.
const (
	PermissionsOn  Permissions = "on"
	PermissionsOff Permissions = "off"
)

var permitted = []string{string(PermissionsOn), string(PermissionsOff)}

func (p *Permissions) parse(text string) error { return oneOf(p, text, permitted) }

// What Handing can be.
const (
	HandedThere    Handing = "conversation"
	HandedTerminal Handing = "terminal"
)

var handings = []string{string(HandedThere), string(HandedTerminal)}

func (h *Handing) parse(text string) error { return oneOf(h, text, handings) }

func (s *Sum) parse(text string) error {
	*s = Sum(text)
	if !match(forms["sum"], text) {
		return fmt.Errorf("%q is no digest; a digest has 64 hexadecimal digits", text)
	}
	return nil
}

func (n *Name) parse(text string) error {
	*n = Name(text)
	if !match(forms["name"], text) || inert.Line(text) != text || strings.TrimSpace(text) != text {
		return fmt.Errorf("%q is no name that a commit can hold", text)
	}
	return nil
}

func (n *ImageName) parse(text string) error {
	*n = ImageName(text)
	if !match(forms["image"], text) {
		return fmt.Errorf("%q is no name of an image, such as debian:12", text)
	}
	return nil
}

func (e *Email) parse(text string) error {
	*e = Email(text)
	if !match(forms["email"], text) || inert.Line(text) != text {
		return fmt.Errorf("%q is no e-mail address that a commit can hold", text)
	}
	return nil
}

func (s *Subject) parse(text string) error {
	*s = Subject(text)
	if !match(forms["subject"], text) || inert.Line(text) != text {
		return fmt.Errorf("%q is no subject; write {request} once, and up to 40 letters before it and behind it", text)
	}
	return nil
}

// oneOf sets what is one of some words.
func oneOf[T ~string](to *T, text string, words []string) error {
	*to = T(text)
	if slices.Contains(words, text) {
		return nil
	}
	return fmt.Errorf("%q is not one of %s", text, strings.Join(words, ", "))
}
