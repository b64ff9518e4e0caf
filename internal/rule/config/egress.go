package config

import (
	"errors"
	"fmt"
	"strings"
)

// Registries is the named set of hosts from which packages are installed.
const Registries = "registries"

// The kinds of value that only egress has.
type (
	Host    string // a name, or *. and the name above all that is meant; never an address
	Method  string
	URLPath string // a prefix of whole segments
)

const (
	// A label is of lower-case letters, digits and hyphens; the last one begins with a letter, so that no address is one.
	hostForm    = `^(\*\.)?([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]([a-z0-9-]{0,61}[a-z0-9])?$`
	hostMax     = 253
	urlPathForm = `^/[A-Za-z0-9._~!$&'()*+,;=:@/-]*$`
	urlPathMax  = 1024
)

// Methods are those of HTTP that a rule may name.
var Methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}

func (h *Host) parse(text string) error {
	*h = Host(text)
	if len(text) <= hostMax && match(hostForm, text) {
		return nil
	}
	return fmt.Errorf("%q is no host: write its name in small letters, such as example.org, or *.example.org for all below it; an address is not allowed, and an entry of egress: in sallyport.yaml names a port", text)
}

func (m *Method) parse(text string) error { return oneOf(m, text, Methods) }

func (p *URLPath) parse(text string) error {
	*p = URLPath(text)
	if len(text) > urlPathMax || !match(urlPathForm, text) || strings.Contains(text, "//") || strings.Contains(text+"/", "/./") ||
		strings.Contains(text+"/", "/../") {
		return fmt.Errorf("%q is no prefix of a path; write it like /v1/packages", text)
	}
	return nil
}

// Reach is one host that a sandbox may reach.
type Reach struct {
	Host    Host      `json:"host" jsonschema:"Its name, or *.example.org for all below example.org."`
	Ports   []int     `json:"ports,omitempty" min:"1" max:"65535" jsonschema:"Ports (default 443, and 80 for plain HTTP)."`
	Methods []Method  `json:"methods,omitempty" jsonschema:"Methods (default: all). With methods or paths the host looks into TLS, with an authority of its own that is trusted inside."`
	Paths   []URLPath `json:"paths,omitempty" jsonschema:"Prefixes of paths, whole segments (default: all)."`
}

func (r Reach) fits() error {
	if r.Host == "" {
		return errors.New("host is missing: write the name of what may be reached")
	}
	return nil
}

// Egress is an entry of egress: the name of a set or of a host, or a host with more said of it.
type Egress struct {
	Set string `json:"-"` // registries; "" = Reach
	Reach
}

// parse takes an entry that is one word.
func (e *Egress) parse(text string) error {
	if text == Registries {
		*e = Egress{Set: text}
		return nil
	}
	*e = Egress{}
	return e.Host.parse(text)
}

// ParseEgress reads an entry as --egress has it: one word. The error is one clause.
func ParseEgress(text string) (e Egress, err error) {
	err = e.parse(text)
	return e, err
}
