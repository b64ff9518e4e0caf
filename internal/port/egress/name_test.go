package egress

import (
	"net/netip"
	"path"
	"strings"
	"testing"
)

func TestOnlyOneSpellingOfANamePasses(t *testing.T) {
	long := strings.Repeat("a", 63)
	longest := strings.Repeat(long+".", 3) + long[:61]
	for raw, want := range map[string]string{
		"example.com":              "example.com",
		"EXAMPLE.Com":              "example.com",
		"xn--mnchen-3ya.de":        "xn--mnchen-3ya.de",
		"a-b.c3po.example":         "a-b.c3po.example",
		"1.example.com":            "1.example.com",
		"0x.example":               "0x.example",
		"dead.beef":                "dead.beef", // hexadecimal only behind 0x
		long + ".example":          long + ".example",
		"AZ.a0z9.example":          "az.a0z9.example",
		"example.0xg":              "example.0xg",
		"example.9":                "",
		"example.0xa":              "",
		"example.0xf":              "",
		longest:                    longest,
		longest + "a":              "",
		"":                         "",
		"localhost":                "",
		"example":                  "",
		"example.com.":             "",
		"example.com..":            "",
		".example.com":             "",
		"a..example.com":           "",
		"-a.example.com":           "",
		"a-.example.com":           "",
		"a_b.example.com":          "",
		"*.example.com":            "",
		"exa mple.com":             "",
		"example.com\x00.evil":     "",
		"example.com\r\nHost: x":   "",
		"example.com\t":            "",
		"user@example.com":         "",
		"example%2ecom":            "",
		"ex\u00e4mple.com":         "",
		"example\u3002com":         "", // an ideographic full stop
		"\uff45xample.com":         "", // a wide letter
		"\u212aelvin.example":      "", // the sign for kelvin folds to k
		"127.0.0.1":                "",
		"127.1":                    "",
		"2130706433":               "",
		"0x7f000001":               "",
		"0x7f.0.0.0x1":             "",
		"0177.0.0.1":               "",
		"017700000001":             "",
		"127.0.0.0x1":              "",
		"127.0.0.01":               "",
		"1.2.3.4.5":                "", // no address, but a program may think so
		"example.0x":               "", // inet_aton of some reads it as 0
		"169.254.169.254":          "",
		"::1":                      "",
		"[::1]":                    "",
		"fe80::1%eth0":             "",
		"[fe80::1%25eth0]":         "",
		"::ffff:127.0.0.1":         "",
		"[::ffff:7f00:1]":          "",
		"\u2460\u2461\u2466.0.0.1": "", // circled digits
		"\uff11\uff12\uff17.0.0.1": "", // wide digits
		long + "a.example":         "",
		strings.Repeat(long+".", 3) + long + ".example": "",
	} {
		got, why := hostName(raw)
		if got != want || (why == "") != (want != "") {
			t.Errorf("%q: %q, %q", raw, got, why)
		}
	}
}

func FuzzNoSpellingOfAnAddressIsAName(f *testing.F) {
	for _, s := range []string{"example.com", "127.1", "0x7f.1", "2130706433", "1.2.3.0x4", "[::1]", "a.b.", "xn--a.0x7f"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		name, why := hostName(raw)
		if (name == "") == (why == "") {
			t.Fatalf("%q: %q and %q", raw, name, why)
		}
		if name == "" {
			return
		}
		if again, why := hostName(name); again != name || why != "" {
			t.Fatalf("%q is %q, which is %q: %s", raw, name, again, why)
		}
		if _, err := netip.ParseAddr(name); err == nil {
			t.Fatalf("%q is an address", name)
		}
		if a, ok := aton(name); ok {
			t.Fatalf("%q is %s for a C library", name, a)
		}
		if len(name) != len(raw) || strings.ContainsAny(name, "%@:[]/\\ \x00\r\n") {
			t.Fatalf("%q became %q", raw, name)
		}
	})
}

func TestOnlyPublicAddressesAreReached(t *testing.T) {
	for text, want := range map[string]bool{
		"93.184.215.14": true, "1.1.1.1": true, "172.15.255.255": true, "172.32.0.1": true, "100.63.255.255": true, "100.128.0.1": true,
		"198.17.0.1": true, "198.20.0.1": true, "223.255.255.255": true, "2606:4700::1111": true, "2a00:1450::1": true, "64:ff9b::5db8:d70e": true,
		"0.0.0.0": false, "0.1.2.3": false, "10.0.0.1": false, "100.64.0.1": false, "100.100.100.200": false, "127.0.0.1": false, "127.255.255.254": false,
		"168.63.129.16": false, "169.254.169.254": false, "169.254.0.1": false, "172.16.0.1": false, "172.31.255.255": false, "192.0.0.192": false,
		"192.0.2.1": false, "192.88.99.1": false, "192.168.1.1": false, "198.18.0.1": false, "198.19.255.255": false, "198.51.100.1": false,
		"203.0.113.1": false, "224.0.0.1": false, "239.255.255.255": false, "240.0.0.1": false, "255.255.255.255": false,
		"::": false, "::1": false, "::ffff:93.184.215.14": false, "::ffff:127.0.0.1": false, "::7f00:1": false, "fe80::1": false, "fe80::1%eth0": false,
		"fec0::1": false, "fc00::1": false, "fd00:ec2::254": false, "ff02::1": false, "2001:db8::1": false, "3fff::1": false, "2001::1": false,
		"2001:2::1": false, "2001:10::1": false, "2002:7f00:1::": false, "2002:5db8:d70e::": false, "64:ff9b::7f00:1": false, "64:ff9b::a9fe:a9fe": false,
		"64:ff9b:1::1": false, "100::1": false, "2606:4700::1%eth0": false,
	} {
		if got := public(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s: public is %t", text, got)
		}
	}
	if public(netip.Addr{}) {
		t.Error("no address is public")
	}
	mixed := []netip.Addr{publicAddr, netip.MustParseAddr("10.0.0.1")}
	if allPublic(mixed) == "" || allPublic(nil) == "" || allPublic(mixed[:1]) != "" {
		t.Error("one address that is not public must be enough, and none is not public")
	}
}

func TestAPathIsReadInOneWayOrNotAtAll(t *testing.T) {
	for raw, want := range map[string][2]string{
		"": {"/", ""}, "/": {"/", ""}, "?a": {"/", "a"}, "/a?b?c": {"/a", "b?c"}, "/~!": {"/~!", ""}, "/" + strings.Repeat("x", pathBytesMax-1): {"/" + strings.Repeat("x", pathBytesMax-1), ""},
		"/a\tb": {}, "/a b": {}, "/a\x01": {}, "/a\x7f": {}, "/\u00e9": {}, "/a#b": {}, `/a\b`: {}, "//a": {}, "a": {}, "a/b": {}, "/" + strings.Repeat("x", pathBytesMax): {},
	} {
		path, query, why := splitPath(raw)
		if got := [2]string{path, query}; got != want || (why == "") != (want[0] != "") {
			t.Errorf("%.40q: %.40q, %q", raw, got, why)
		}
	}
	for raw, want := range map[string]string{
		"/": "/", "/v1": "/v1", "/v1/": "/v1/", "/v1/a%20b": "/v1/a b", "/%761/x": "/v1/x", "/a;b=c/d": "/a;b=c/d", "/...": "/...", "/models/x:generateContent": "/models/x:generateContent",
		"": "", "v1": "", "//v1": "", "/v1//x": "", "/v1/../x": "", "/v1/..": "", "/./x": "", "/v1/%2e%2e/x": "", "/v1/.%2E/x": "", "/v1%2fx": "", "/v1%2Fx": "",
		"/v1%5cx": "", "/v1/%00": "", "/v1/%252e%252e/x": "", "/v1/%2": "", "/v1/%zz": "", "/v1/..;/x": "", "/v1/..;a=b/x": "", "/v1/%3b": "", "/v1/%0a": "", "/v1/%7f": "",
	} {
		got, why := cleanPath(raw)
		if got != want || (why == "") != (want != "") {
			t.Errorf("%q: %q, %q", raw, got, why)
		}
	}
	for _, c := range []struct {
		clean, prefix string
		want          bool
	}{
		{"/v1", "/v1", true}, {"/v1", "/v1/", true}, {"/v1/x", "/v1", true}, {"/v1/x", "/v1/", true}, {"/v1x", "/v1", false}, {"/", "/v1", false}, {"/x", "/", true}, {"/V1", "/v1", false},
	} {
		if got := under(c.clean, []string{c.prefix}); got != c.want {
			t.Errorf("%q under %q: %t", c.clean, c.prefix, got)
		}
	}
}

func FuzzACleanPathStaysWhereItIs(f *testing.F) {
	for _, s := range []string{"/v1/x", "/v1/../x", "/v1/%2e%2e/x", "/a//b", "/a/;/..;/b", "/%25%32%65"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		clean, why := cleanPath(raw)
		if why != "" {
			return
		}
		if again := path.Clean(clean); again != clean && again+"/" != clean {
			t.Fatalf("%q is %q, which a server reads as %q", raw, clean, again)
		}
		if strings.Count(clean, "/") != strings.Count(raw, "/") || strings.ContainsAny(clean, "\\\x00") && !strings.ContainsAny(raw, "\\\x00") {
			t.Fatalf("%q hid a separator: %q", raw, clean)
		}
	})
}

func TestOfAQueryOnlyWhatIsKnownGoesUp(t *testing.T) {
	for query, want := range map[string]string{
		"": "", "a=1": "", "limit=1": "limit=1", "key=x": "", "key": "", "limit=1&key=x&beta=2": "limit=1&beta=2", "key=x&alt=sse": "alt=sse", "alt=json": "alt=json", "limit=1;key=x": "limit=1",
		"alt=proto": "", "alt=media": "", "ALT=sse": "", "$alt=sse": "", "%24key=x": "", "$ct=x": "", "callback=f": "", "fields=candidates.content": "", "$fields=x": "", "oauth_token=x": "", "%6bey=x": "",
		"api_key=x&access_token=y&monkey=z": "", "beta=true": "beta=true", "&&key=x&&": "", "+key=x": "", "beta=key": "beta=key", "al%74=sse": "",
	} {
		if got := plainParams(query); got != want {
			t.Errorf("%q: %q", query, got)
		}
	}
}
