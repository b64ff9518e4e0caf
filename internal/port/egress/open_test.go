package egress

import (
	"bufio"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/idna"
)

// openProxy is the control: a proxy without a rule, as lenient as any. It reads targets as C libraries, browsers and careless
// proxies do, and passes on what it gets. Every address that it would dial is reported instead.
type openProxy struct {
	t *testing.T
}

// reached says where a try went and what was sent there.
type reached struct {
	to   string // address:port, or name:port
	sent string
}

// try sends raw through the open proxy.
func (p openProxy) try(raw, later string) reached {
	p.t.Helper()
	r := bufio.NewReader(strings.NewReader(raw))
	line, _ := r.ReadString('\n')
	head := line
	hostHeader := ""
	for {
		l, err := r.ReadString('\n')
		head += l
		if name, value, ok := strings.Cut(l, ":"); ok && strings.EqualFold(strings.TrimSpace(name), "host") {
			hostHeader = strings.TrimSpace(value) // the last one wins, as in some
		}
		if err != nil || strings.TrimSpace(l) == "" {
			break
		}
	}
	rest, _ := io.ReadAll(r)
	words := strings.Fields(line)
	if len(words) < 2 {
		return reached{}
	}
	target := words[1]
	if words[0] == "CONNECT" {
		return reached{p.where(target, "443"), string(rest) + later}
	}
	port := "80"
	if scheme, after, ok := strings.Cut(target, "://"); ok {
		if strings.EqualFold(scheme, "https") {
			port = "443"
		}
		if i := strings.IndexAny(after, "/?#\\"); i >= 0 {
			after = after[:i]
		}
		return reached{p.where(after, port), head + string(rest) + later}
	}
	return reached{p.where(hostHeader, port), head + string(rest) + later}
}

// where is what a lenient program would connect to.
func (p openProxy) where(hostport, usual string) string {
	if i := strings.LastIndexByte(hostport, '@'); i >= 0 {
		hostport = hostport[i+1:]
	}
	hostport = unescaped(strings.ReplaceAll(hostport, "+", ""))
	if i := strings.IndexAny(hostport, "\x00\r\n"); i >= 0 {
		hostport = hostport[:i]
	}
	host, port, err := net.SplitHostPort(hostport)
	if err != nil {
		host, port = strings.Trim(hostport, "[]"), usual
	}
	if n, err := strconv.Atoi(strings.TrimLeft(port, "0")); err == nil {
		port = strconv.Itoa(n)
	}
	host, _, _ = strings.Cut(host, "%") // a zone
	if mapped, err := idna.Lookup.ToASCII(host); err == nil && !strings.Contains(host, ":") {
		host = mapped
	}
	host = strings.ToLower(strings.TrimRight(host, "."))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		host = "127.0.0.1"
	}
	if a, ok := aton(host); ok {
		host = a.String()
	}
	if a, err := netip.ParseAddr(host); err == nil {
		host = a.Unmap().String()
	}
	return net.JoinHostPort(host, port)
}

// aton reads an IPv4 address as inet_aton does: one to four numbers, each decimal, octal or hexadecimal.
func aton(s string) (netip.Addr, bool) {
	parts := strings.Split(s, ".")
	if len(parts) > 4 {
		return netip.Addr{}, false
	}
	var v uint64
	for i, p := range parts {
		n, err := strconv.ParseUint(strings.ToLower(p), 0, 64)
		if strings.HasPrefix(p, "0") && len(p) > 1 && p[1] >= '0' && p[1] <= '9' {
			n, err = strconv.ParseUint(p, 8, 64)
		}
		if err != nil || strings.ContainsAny(p, "_+-bBoO") {
			return netip.Addr{}, false
		}
		if i < len(parts)-1 {
			if n > 255 {
				return netip.Addr{}, false
			}
			v |= n << (24 - 8*i)
			continue
		}
		if n >= 1<<(8*(5-len(parts))) {
			return netip.Addr{}, false
		}
		v |= n
	}
	return netip.AddrFrom4([4]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)}), true
}

// unescaped resolves the escapes of a name as far as they are right.
func unescaped(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '%' && i+2 < len(s) && isHex(s[i+1]) && isHex(s[i+2]):
			b.WriteByte(unhex(s[i+1])<<4 | unhex(s[i+2]))
			i += 2
		case s[i] == '+':
			b.WriteByte(' ')
		default:
			b.WriteByte(s[i])
		}
	}
	return strings.TrimSpace(b.String())
}
