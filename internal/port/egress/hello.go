package egress

import "encoding/binary"

// helloBytesMax bounds a ClientHello with its records.
const helloBytesMax = 64 << 10

// Hello is what a client says first in a tunnel.
type Hello struct {
	Name      string // the host that it is for (SNI)
	Encrypted bool   // there is another hello in it, which cannot be read
	Plain     bool   // it is no TLS but looks like a request of HTTP
	Why       string // it is no hello; "" if it is one
}

const (
	recordHandshake = 22
	clientHello     = 1
	extensionSNI    = 0
	extensionESNI   = 0xffce
	extensionECH    = 0xfe0d
	sniHost         = 0
)

// ReadHello reads the first bytes of a tunnel. more is how many bytes are lacking at least before it can be judged, 0 = none; until then the
// rest is not set. The hello may be cut into records in any way; what stands behind it is not looked at.
func ReadHello(b []byte) (h Hello, more int) {
	var body []byte
	more = 1
	for whole := len(b); ; {
		if len(b) > 0 && b[0] != recordHandshake || len(b) > 1 && b[1] != 3 {
			plain := whole == len(b) && b[0] >= 'A' && b[0] <= 'Z'
			return Hello{Plain: plain, Why: "what is in the tunnel is not TLS"}, 0
		}
		if len(b) < 5 {
			break
		}
		n := int(binary.BigEndian.Uint16(b[3:5]))
		if n == 0 || n > 16<<10 {
			return Hello{Why: "its TLS hello is broken"}, 0
		}
		body = append(body, b[5:min(5+n, len(b))]...)
		if len(body) > 0 && body[0] != clientHello {
			return Hello{Why: "what is in the tunnel does not begin with a TLS hello"}, 0
		}
		if len(body) >= 4 {
			size := int(body[1])<<16 | int(body[2])<<8 | int(body[3])
			if size > helloBytesMax {
				return Hello{Why: "its TLS hello is longer than 64 KiB"}, 0
			}
			if len(body) >= 4+size {
				return parseHello(body[4 : 4+size]), 0
			}
			more = 4 + size - len(body)
		}
		if len(b) < 5+n {
			break
		}
		b = b[5+n:]
	}
	return Hello{}, more
}

// fields reads the fields of a hello; after one that is not whole, nothing is ok any more.
type fields struct {
	b  []byte
	ok bool
}

func (f *fields) take(n int) []byte {
	if !f.ok || n > len(f.b) {
		f.ok = false
		return nil
	}
	out := f.b[:n]
	f.b = f.b[n:]
	return out
}

// number reads a big-endian number of n bytes.
func (f *fields) number(n int) (v int) {
	for _, c := range f.take(n) {
		v = v<<8 | int(c)
	}
	return v
}

// vector reads bytes that stand behind their length, which has n bytes.
func (f *fields) vector(n int) []byte { return f.take(f.number(n)) }

func parseHello(body []byte) (h Hello) {
	broken := Hello{Why: "its TLS hello is broken"}
	f := fields{b: body, ok: true}
	f.take(2 + 32) // version, random
	f.vector(1)    // session
	f.vector(2)    // ciphers
	f.vector(1)    // compressions
	if !f.ok {
		return broken
	}
	if len(f.b) == 0 {
		return h // a hello without extensions: no name
	}
	extensions := fields{b: f.vector(2), ok: true}
	if !f.ok || len(f.b) != 0 {
		return broken
	}
	names := 0
	for len(extensions.b) > 0 && extensions.ok {
		kind := extensions.number(2)
		data := extensions.vector(2)
		switch kind {
		case extensionSNI:
			names++
			if h.Name = sniName(data); h.Name == "" {
				return broken
			}
		case extensionECH, extensionESNI:
			h.Encrypted = true
		}
	}
	if !extensions.ok || names > 1 {
		return broken
	}
	return h
}

// sniName returns the one name of the extension; "" if it does not hold exactly one.
func sniName(data []byte) string {
	f := fields{b: data, ok: true}
	list := fields{b: f.vector(2), ok: true}
	kind := list.number(1)
	name := list.vector(2)
	if !list.ok || len(f.b)+len(list.b) != 0 || kind != sniHost || len(name) > nameBytesMax {
		return ""
	}
	return string(name)
}
