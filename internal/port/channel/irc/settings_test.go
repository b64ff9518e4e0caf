package irc

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/problem"
	"sallyport/internal/port/channel"
)

func TestSettingsThatCannotBeAreRefused(t *testing.T) {
	secret := func() (string, error) { return "hunter2", nil }
	for _, row := range []struct {
		said       string
		credential func() (string, error)
		want       string // in the refusal; "" = it is taken
	}{
		{"server=irc.h.example nick=port", nil, ""},
		{"server=irc.h.example:7000 nick=port channels=#a,#b account=port", secret, ""},
		{"server=127.0.0.1:6667 nick=port tls=no", secret, ""},
		{"server=irc.h.example nick=port tls=no", nil, ""},
		{"nick=port", nil, "the setting server is missing"},
		{"server=irc.h.example", nil, "the setting nick is missing"},
		{"server=irc.h.example nick=port colour=red", nil, `no setting "colour"`},
		{"server=irc.h.example nick=1port", nil, "the setting nick"},
		{"server=irc.h.example nick=port tls=maybe", nil, "neither yes nor no"},
		{"server=irc.h.example nick=port tls=no", secret, "for everybody to read"},
		{"server=irc.h.example nick=port account=port", nil, "needs its password"},
		{"server=irc.h.example nick=port channels=team", nil, "is no channel"},
		{"server=irc.h.example nick=port channels=#a*", nil, "is no channel"},
		{"server=irc.h.example:99999999 nick=port", nil, "is no host"},
		{"server=h@irc.h.example nick=port", nil, "is no host"},
		{"server=irc.h.example nick=port pace=0s", nil, "the setting pace"},
		{"server=irc.h.example nick=port pace=5s", nil, "at most 4s"},
		{"server=irc.h.example nick=port certificate=abcd", nil, "SHA-256"},
		{"server=irc.h.example nick=port channels=" + strings.Repeat("#a,", 51), nil, "more than 50"},
	} {
		settings := map[string]string{}
		for word := range strings.FieldsSeq(row.said) {
			name, value, _ := strings.Cut(word, "=")
			settings[name] = value
		}
		_, err := Open(settings, row.credential)
		if row.want == "" && err != nil || row.want != "" && (problem.KindOf(err) != problem.Usage || !strings.Contains(err.Error(), row.want)) {
			t.Errorf("%s: %v", row.said, err)
		}
	}
}

func TestOnlyTheNamedCertificateIsTrusted(t *testing.T) {
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	sum := sha256.Sum256(server.Certificate().Raw)
	addr := server.Listener.Addr().String()
	for finger, good := range map[string]bool{hex.EncodeToString(sum[:]): true, strings.Repeat("ab", 32): false, "": false} {
		d, err := Open(map[string]string{"server": addr, "nick": "port", "certificate": finger}, nil)
		if err != nil {
			t.Fatal(err)
		}
		conn, err := d.(*Driver).dial(t.Context())
		if good != (err == nil) {
			t.Errorf("with the certificate %.8q: %v", finger, err)
		}
		if conn != nil {
			if _, is := conn.(*tls.Conn); !is {
				t.Error("it is not TLS")
			}
			_ = conn.Close()
		}
	}
}

// TestAPortWithoutTLSIsNamed holds that whoever adds a server by the wrong port is told so, whether it is silent or answers in plain words.
func TestAPortWithoutTLSIsNamed(t *testing.T) {
	for name, says := range map[string]string{"silent": "", "in plain words": ":irc NOTICE * :Looking up your hostname...\r\n"} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte(says))
			_, _ = io.Copy(io.Discard, conn) // until the other side has given up
			_ = conn.Close()
		}()
		d, err := Open(map[string]string{"server": l.Addr().String(), "nick": "port"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := t.Context(), func() {}
		if says == "" {
			ctx, cancel = context.WithTimeout(t.Context(), 200*time.Millisecond)
		}
		_, err = d.(*Driver).dial(ctx)
		cancel()
		if err == nil || !strings.Contains(err.Error(), "--set tls=no") && !strings.HasPrefix(err.Error(), "connect to") {
			t.Errorf("%s: %v", name, err)
		}
		_ = l.Close()
		<-done
	}
}

func TestWithoutASessionNothingIsSent(t *testing.T) {
	d, err := Open(map[string]string{"server": "h.example", "nick": "port"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Deliver(t.Context(), channel.Message{Place: "#a", Text: "x"}); !errors.Is(err, channel.ErrAway) {
		t.Error(err)
	}
	if _, err := d.Direct(t.Context(), "ann"); !errors.Is(err, channel.ErrAway) {
		t.Error(err)
	}
}
