package egress

import (
	"net/netip"
	"strconv"
	"strings"
)

// Bounds of a host name (RFC 1035).
const (
	nameBytesMax  = 253
	labelBytesMax = 63
)

// hostName returns the one spelling of a host name that rules, certificates and the resolver are asked with, or why there is none: lower
// case, letters, digits and hyphens, two labels at least. No spelling of an address passes: what a C library would read
// as a number (127.1, 0x7f.1, 2130706433) ends in a label that looks like one.
func hostName(raw string) (name, why string) {
	switch {
	case raw == "":
		return "", "it names no host"
	case len(raw) > nameBytesMax:
		return "", "its host name is longer than 253 bytes"
	case strings.ContainsAny(raw, ":[]"):
		return "", "an address is no name; only names are allowed"
	case strings.HasSuffix(raw, "."):
		return "", "its host name ends in a dot"
	}
	name = lower(raw)
	labels := strings.Split(name, ".")
	for _, label := range labels {
		if why := badLabel(label); why != "" {
			return "", why
		}
	}
	if numeric(labels[len(labels)-1]) {
		return "", "an address is no name; only names are allowed"
	}
	if len(labels) < 2 {
		return "", "a name without a dot belongs to this machine or its network"
	}
	return name, ""
}

func badLabel(label string) string {
	switch {
	case label == "":
		return "its host name has an empty part"
	case len(label) > labelBytesMax:
		return "a part of its host name is longer than 63 bytes"
	case label[0] == '-' || label[len(label)-1] == '-':
		return "a part of its host name begins or ends with a hyphen"
	}
	for i := range len(label) {
		if c := label[i]; c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') {
			return "its host name has other characters than letters, digits and hyphens"
		}
	}
	return ""
}

// numeric reports whether a last label would be read as part of an IPv4 address (inet_aton: decimal, octal, hexadecimal).
func numeric(label string) bool {
	digits, hex := strings.CutPrefix(label, "0x")
	for i := range len(digits) {
		c := digits[i]
		if (c < '0' || c > '9') && (!hex || c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// lower folds ASCII letters alone: other alphabets have folds that make two names one.
func lower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// authority splits host:port as it stands in a request. Without a port it is the given one; 0 means that there must be one.
func authority(raw string, port uint16) (host string, at uint16, why string) {
	if strings.Contains(raw, "@") {
		return "", 0, "there is a user name in it"
	}
	name := raw
	if i := strings.LastIndexByte(raw, ':'); i >= 0 && !strings.HasSuffix(raw, "]") {
		if port, why = portNumber(raw[i+1:]); why != "" {
			return raw[:i], 0, why
		}
		name = raw[:i]
	}
	if port == 0 {
		return name, 0, "it names no port"
	}
	return name, port, ""
}

func portNumber(s string) (uint16, string) {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || n == 0 || strconv.FormatUint(n, 10) != s { // no sign, no leading zero
		return 0, "its port is no number from 1 to 65535"
	}
	return uint16(n), ""
}

// special are the networks that no name of the public internet has an address in. What is not in 2000::/3 is not public either.
var special = prefixes(
	"0.0.0.0/8",         // this network
	"10.0.0.0/8",        // private
	"100.64.0.0/10",     // carrier NAT; the metadata service of one cloud
	"127.0.0.0/8",       // loopback
	"168.63.129.16/32",  // the virtual machine's host, of one cloud
	"169.254.0.0/16",    // link-local; metadata services
	"172.16.0.0/12",     // private
	"192.0.0.0/24",      // protocol assignments; the metadata service of one cloud
	"192.0.2.0/24",      // documentation
	"192.31.196.0/24",   // AS112
	"192.52.193.0/24",   // AMT relays
	"192.88.99.0/24",    // 6to4 relays
	"192.168.0.0/16",    // private
	"192.175.48.0/24",   // AS112
	"198.18.0.0/15",     // benchmarks
	"198.51.100.0/24",   // documentation
	"203.0.113.0/24",    // documentation
	"224.0.0.0/4",       // multicast
	"240.0.0.0/4",       // reserved, broadcast
	"2001::/23",         // protocol assignments: Teredo, ORCHID, benchmarks
	"2001:db8::/32",     // documentation
	"2002::/16",         // 6to4: an IPv4 address in disguise
	"2620:4f:8000::/48", // AS112
	"3fff::/20",         // documentation
)

var (
	global = netip.MustParsePrefix("2000::/3")
	nat64  = netip.MustParsePrefix("64:ff9b::/96")
)

func prefixes(texts ...string) (out []netip.Prefix) {
	for _, t := range texts {
		out = append(out, netip.MustParsePrefix(t))
	}
	return out
}

// public reports whether an address is one of the public internet. An IPv4 address that is mapped into IPv6 never is; one
// behind the well-known NAT64 prefix is what it leads to.
func public(a netip.Addr) bool {
	if !a.IsValid() || a.Zone() != "" || a.Is4In6() {
		return false
	}
	if to := leadsTo(a); to != a {
		return public(to)
	}
	if a.Is6() && !global.Contains(a) {
		return false
	}
	for _, p := range special {
		if p.Contains(a) {
			return false
		}
	}
	return true
}

// leadsTo is what an address leads to: behind the well-known NAT64 prefix the IPv4 address in it, else itself.
func leadsTo(a netip.Addr) netip.Addr {
	if !nat64.Contains(a) {
		return a
	}
	b := a.As16()
	return netip.AddrFrom4([4]byte(b[12:]))
}

// allPublic says why a name must not be reached: one address that is not public is enough, whatever the others are.
func allPublic(addrs []netip.Addr) string {
	if len(addrs) == 0 {
		return "it has no address"
	}
	for _, a := range addrs {
		if !public(a) {
			return "it has an address that is not one of the public internet"
		}
	}
	return ""
}
