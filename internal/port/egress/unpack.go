package egress

import (
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"strings"
)

// unpackedMax bounds what is unpacked of one answer.
const unpackedMax = 256 << 20

var errUnpacked = errors.New("an answer is longer than 256 MiB once it is unpacked")

// wholeOnly asks for an answer that can be read as it comes: not packed, not a part, not the difference to another, in no other letters.
func wholeOnly(h http.Header) {
	for _, name := range []string{"Range", "If-Range", "A-Im", "Accept-Charset"} {
		h.Del(name)
	}
	h.Set("Accept-Encoding", "identity")
}

// readable makes an answer to a request of wholeOnly one that can be searched, or says why it is none. Some endpoints pack what they
// send whatever they are asked for.
func readable(resp *http.Response) (why string) {
	kind := lower(resp.Header.Get("Content-Type"))
	if resp.StatusCode == http.StatusPartialContent || strings.HasPrefix(strings.TrimSpace(kind), "multipart/byteranges") {
		return "the endpoint answered with a part of what was asked for, and nobody asked for a part"
	}
	switch coding := lower(strings.TrimSpace(strings.Join(resp.Header.Values("Content-Encoding"), ","))); coding {
	case "", "identity":
	case "gzip", "x-gzip":
		resp.Header.Del("Content-Encoding")
		resp.Header.Del("Content-Length")
		resp.ContentLength = -1
		resp.Body = &unpacking{packed: resp.Body}
	default:
		return "the endpoint compressed its answer (" + plain(cut(coding, 32)) + "), which nobody asked for; the host cannot search it for the credential"
	}
	return ""
}

// unpacking reads what was packed with gzip.
type unpacking struct {
	packed io.ReadCloser
	z      *gzip.Reader // nil before the first byte is wanted
	n      int64
}

func (u *unpacking) Read(p []byte) (n int, err error) {
	if u.z == nil {
		if u.z, err = gzip.NewReader(u.packed); err != nil {
			return 0, err
		}
	}
	n, err = u.z.Read(p)
	if u.n += int64(n); u.n > unpackedMax {
		return 0, errUnpacked
	}
	return n, err
}

func (u *unpacking) Close() error { return u.packed.Close() }
