package trust

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// URLBytesMax bounds the address of a probe.
const URLBytesMax = 2048

// CheckURL refuses an address that a probe does not ask; the error is one clause. It never holds a name or a password.
func CheckURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case len(text) > URLBytesMax:
		return fmt.Errorf("the address has %d bytes; at most %d are allowed", len(text), URLBytesMax)
	case err != nil || u.Scheme != "http" || u.Hostname() == "":
		return errors.New("that is not an address like http://127.0.0.1:8080/health")
	case u.User != nil:
		return errors.New("the address holds a user name or a password: probe with a command instead")
	case strings.ContainsAny(text, "# "):
		return errors.New("the address holds a space or a #")
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return fmt.Errorf("%q is not a port", port)
		}
	}
	return nil
}

// Loopback reports whether an address that CheckURL takes names this machine's own addresses.
func Loopback(text string) bool {
	u, err := url.Parse(text)
	if err != nil {
		return false
	}
	if u.Hostname() == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return err == nil && ip.IsLoopback()
}
