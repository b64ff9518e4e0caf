package egress

import (
	"crypto/tls"
	"encoding/binary"
	"net"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sallyport/internal/base/rapidtest"
)

// realHello is what Go's client says first.
func realHello(t testing.TB, name string) []byte {
	t.Helper()
	ours, theirs := net.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		tls.Client(theirs, &tls.Config{ServerName: name, InsecureSkipVerify: true}).Handshake()
	}()
	defer func() { ours.Close(); theirs.Close(); <-done }()
	head := make([]byte, 5)
	if _, err := ours.Read(head); err != nil {
		t.Fatal(err)
	}
	body := make([]byte, binary.BigEndian.Uint16(head[3:]))
	for n := 0; n < len(body); {
		m, err := ours.Read(body[n:])
		if err != nil {
			t.Fatal(err)
		}
		n += m
	}
	return append(head, body...)
}

// number writes n big-endian into size bytes.
func number(n, size int) (b []byte) {
	for i := size - 1; i >= 0; i-- {
		b = append(b, byte(n>>(8*i)))
	}
	return b
}

func vector(size int, data []byte) []byte { return append(number(len(data), size), data...) }

func extension(kind int, data []byte) []byte { return append(number(kind, 2), vector(2, data)...) }

func sni(name string) []byte {
	return extension(extensionSNI, vector(2, append([]byte{sniHost}, vector(2, []byte(name))...)))
}

// madeHello is a hello with these extensions; nil has none at all.
func madeHello(extensions []byte) []byte {
	body := append(number(0x0303, 2), make([]byte, 32)...)
	body = append(body, vector(1, nil)...)
	body = append(body, vector(2, number(0x1301, 2))...)
	body = append(body, vector(1, []byte{0})...)
	if extensions != nil {
		body = append(body, vector(2, extensions)...)
	}
	return append([]byte{clientHello}, vector(3, body)...)
}

// records cuts a message into records of these sizes; the last one has the rest.
func records(message []byte, sizes ...int) (out []byte) {
	for len(message) > 0 {
		n := len(message)
		if len(sizes) > 0 {
			n, sizes = min(n, sizes[0]), sizes[1:]
		}
		out = append(out, append([]byte{recordHandshake, 3, 1}, vector(2, message[:n])...)...)
		message = message[n:]
	}
	return out
}

func TestAHelloIsReadHoweverItIsCut(t *testing.T) {
	both := append(sni("example.com"), sni("example.com")...)
	twoNames := extension(extensionSNI, vector(2, append(append([]byte{0}, vector(2, []byte("a.example"))...), append([]byte{0}, vector(2, []byte("b.example"))...)...)))
	// again is a hello with other bytes behind what it has before its extensions.
	bare := madeHello(nil)[4:]
	again := func(rest ...byte) []byte {
		return records(append([]byte{clientHello}, vector(3, append(slices.Clone(bare), rest...))...))
	}
	loose := extension(extensionSNI, append(vector(2, append(append([]byte{sniHost}, vector(2, []byte("example.com"))...), 0)), 0))
	longest := strings.Repeat("a", nameBytesMax)
	for _, c := range []struct {
		name  string
		bytes []byte
		want  Hello
		more  bool
	}{
		{"a real one", realHello(t, "example.com"), Hello{Name: "example.com"}, false},
		{"a real one without a name", realHello(t, "127.0.0.1"), Hello{}, false},
		{"in one record", records(madeHello(sni("example.com"))), Hello{Name: "example.com"}, false},
		{"a byte a record", records(madeHello(sni("example.com")), strings1(80)...), Hello{Name: "example.com"}, false},
		{"with more behind it", append(records(madeHello(sni("example.com"))), "rest"...), Hello{Name: "example.com"}, false},
		{"without extensions", records(madeHello(nil)), Hello{}, false},
		{"with an encrypted one", records(madeHello(append(sni("example.com"), extension(extensionECH, []byte{0})...))), Hello{Name: "example.com", Encrypted: true}, false},
		{"with an encrypted name", records(madeHello(extension(extensionESNI, []byte{0}))), Hello{Encrypted: true}, false},
		{"two extensions with a name", records(madeHello(both)), Hello{Why: "its TLS hello is broken"}, false},
		{"two names", records(madeHello(twoNames)), Hello{Why: "its TLS hello is broken"}, false},
		{"bytes behind the name and behind its list", records(madeHello(loose)), Hello{Why: "its TLS hello is broken"}, false},
		{"bytes behind the extensions", again(append(vector(2, sni("example.com")), 0)...), Hello{Why: "its TLS hello is broken"}, false},
		{"extensions that do not come", again(0, 5), Hello{Why: "its TLS hello is broken"}, false},
		{"the longest name", records(madeHello(sni(longest))), Hello{Name: longest}, false},
		{"a longer name", records(madeHello(sni(longest + "a"))), Hello{Why: "its TLS hello is broken"}, false},
		{"an empty name", records(madeHello(sni(""))), Hello{Why: "its TLS hello is broken"}, false},
		{"an extension that is not whole", records(madeHello(sni("example.com")[:9])), Hello{Why: "its TLS hello is broken"}, false},
		{"nothing", nil, Hello{}, true},
		{"a part", records(madeHello(sni("example.com")))[:30], Hello{}, true},
		{"a request", []byte("GET / HTTP/1.1\r\n"), Hello{Plain: true, Why: "what is in the tunnel is not TLS"}, false},
		{"a shell", []byte("\x00\x01ssh"), Hello{Why: "what is in the tunnel is not TLS"}, false},
		{"SSH", []byte("SSH-2.0-x\r\n"), Hello{Plain: true, Why: "what is in the tunnel is not TLS"}, false},
		{"another record", []byte{23, 3, 3, 0, 1, 0}, Hello{Why: "what is in the tunnel is not TLS"}, false},
		{"another message", records([]byte{2, 0, 0, 0}), Hello{Why: "what is in the tunnel does not begin with a TLS hello"}, false},
		{"anything that begins with A", []byte("A"), Hello{Plain: true, Why: "what is in the tunnel is not TLS"}, false},
		{"or with Z", []byte("Z"), Hello{Plain: true, Why: "what is in the tunnel is not TLS"}, false},
		{"a request behind a record", append(records([]byte{1, 0}), "GET /"...), Hello{Why: "what is in the tunnel is not TLS"}, false},
		{"one of 64 KiB that has begun", records([]byte{1, 1, 0, 0}), Hello{}, true},
		{"one of 64 KiB and a byte", records([]byte{1, 1, 0, 1}), Hello{Why: "its TLS hello is longer than 64 KiB"}, false},
		{"one of 16 MiB", records([]byte{1, 0xff, 0xff, 0xff}), Hello{Why: "its TLS hello is longer than 64 KiB"}, false},
		{"the longest record, that has begun", []byte{22, 3, 1, 0x40, 0}, Hello{}, true},
		{"a longer record", []byte{22, 3, 1, 0x40, 1}, Hello{Why: "its TLS hello is broken"}, false},
		{"an empty record", []byte{22, 3, 1, 0, 0}, Hello{Why: "its TLS hello is broken"}, false},
	} {
		h, more := ReadHello(c.bytes)
		if h != c.want || (more > 0) != c.more {
			t.Errorf("%s: %+v, more %d", c.name, h, more)
		}
	}
}

// strings1 is n records of one byte.
func strings1(n int) (out []int) {
	for range n {
		out = append(out, 1)
	}
	return out
}

func TestRecordsDoNotChangeWhatAHelloSays(t *testing.T) {
	rapidtest.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-z]{1,20}\.example`).Draw(t, "name")
		sizes := rapid.SliceOf(rapid.IntRange(1, 200)).Draw(t, "sizes")
		raw := records(madeHello(append(extension(0x2b, []byte{2, 3, 4}), sni(name)...)), sizes...)
		if h, more := ReadHello(raw); h.Name != name || more > 0 {
			t.Fatalf("%q: %+v, more %d", name, h, more)
		}
		for i := range raw {
			if h, more := ReadHello(raw[:i]); more == 0 && h.Name != name || more > len(raw)-i {
				t.Fatalf("%q at %d of %d: %+v", name, i, len(raw), h)
			}
		}
	})
}

// Who sends a long hello as bytes, each a record of its own, has it read some dozen times, not at each byte.
func TestALongHelloThatComesAsBytesIsReadAFewTimes(t *testing.T) {
	message := madeHello(append(sni("example.com"), extension(21, make([]byte, 20_000))...))
	raw := records(message, strings1(len(message))...)
	times := 0
	for at := 1; ; times++ {
		h, more := ReadHello(raw[:at])
		if more == 0 {
			if h.Name != "example.com" || at != len(raw) {
				t.Errorf("after %d of %d bytes it is %+v", at, len(raw), h)
			}
			break
		}
		if at += more; at > len(raw) {
			t.Fatalf("%d bytes are said to lack after %d of %d", more, at-more, len(raw))
		}
	}
	if times > 100 {
		t.Errorf("it was read %d times", times)
	}
}

// What comes later must not change what was said of what came before: bytes arrive in any pieces.
func FuzzHello(f *testing.F) {
	f.Add(realHello(f, "example.com"))
	f.Add(records(madeHello(append(sni("example.com"), extension(extensionECH, nil)...)), 1, 2, 3))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		whole, more := ReadHello(b)
		if more > 0 && whole != (Hello{}) {
			t.Fatalf("too few bytes and yet %+v", whole)
		}
		for _, n := range []int{0, 1, 5, 6, 9, len(b) / 2, len(b) - 1} {
			if n < 0 || n > len(b) {
				continue
			}
			part, lacks := ReadHello(b[:n])
			if lacks == 0 && part != whole {
				t.Fatalf("after %d bytes %+v, after %d %+v", n, part, len(b), whole)
			}
			if more == 0 && whole.Why == "" && lacks > len(b)-n {
				t.Fatalf("%d bytes are said to lack after %d of %d", lacks, n, len(b))
			}
		}
		if strings.ContainsRune(whole.Name, 0) && (Answer{Host: "example.com"}).Hello(whole).Status == 0 {
			t.Fatal("a name with a zero byte passes")
		}
	})
}
