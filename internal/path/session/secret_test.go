package session_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sallyport/internal/path/session"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/rule/secret"
)

// Keys of no account, put together so that no file holds one.
var (
	key    = "ghp_" + "9fK2mQx7LbR4vTz1WcN8sYd3HjP6gUe5AoXi"
	pemKey = "-----BEGIN RSA PRIVATE " + "KEY-----\n" + strings.Repeat("MIIEowIBAAKCAQEAq7Zp3mXw5NrT2kLdW2hV6bYc4jTg7sEf9fK2mQx7LbR4vTz1\n", 4) + "-----END RSA PRIVATE " + "KEY-----\n"
)

func TestNoSecretThatAProgramPrintsIsWrittenOrGivenOut(t *testing.T) {
	known := "zq81-" + "mellow-otter-42"
	scanner, err := secret.New(secret.Config{Known: secret.Environment([]string{"BILLING_TOKEN=" + known})})
	if err != nil {
		t.Fatal(err)
	}
	pad := strings.Repeat("x ", session.LineBytesMax/2-10)
	for name, c := range map[string]struct {
		writes []string
		parts  []string // no one may be seen
		want   string   // in the transcript
	}{
		"in one write":               {[]string{"a " + key + " b\n"}, []string{key[:9]}, "a [secret: github-token] b"},
		"in two writes":              {[]string{"a " + key[:11], key[11:] + " b\nend\n"}, []string{key[:9], key[11:]}, "a [secret: github-token] b"},
		"byte by byte":               {strings.Split("a "+key+" b\n", ""), []string{key[:9], key[11:]}, "a [secret: github-token] b"},
		"where a long line is cut":   {[]string{pad + key + " b\n"}, []string{key[:9], key[30:]}, " b"},
		"over lines":                 {[]string{"a\n" + pemKey[:60], pemKey[60:] + "b\n"}, []string{"MIIEowIB", "q7Zp3mXw"}, "b"},
		"never ended":                {[]string{"a " + key}, []string{key[:9]}, "a [secret: github-token]"},
		"one that the host knows":    {[]string{"it is ", known[:7], known[7:], " b\n"}, []string{known[:7], known[7:]}, "it is [secret: known-secret] b"},
		"an ordinary line, a prompt": {[]string{"hello\n", "name? "}, nil, "name? "},
	} {
		t.Run(name, func(t *testing.T) {
			r := running(t, func(_ context.Context, spec sandbox.Spec) sandbox.Exit {
				for _, w := range c.writes {
					io.WriteString(spec.Stdout, w)
					io.WriteString(spec.Stderr, "tick\n")
				}
				return sandbox.Exit{}
			})
			r.Secrets = scanner
			r.Program.Argv = append(r.Program.Argv, "--token="+key)
			var live []string
			r.Output = func(l session.Line) { live = append(live, l.Text) }
			if _, err := session.Run(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			raw, err := os.ReadFile(filepath.Join(r.Session.Dir, "transcript.jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			for _, part := range append(c.parts, key) {
				if strings.Contains(string(raw), part) || strings.Contains(strings.Join(live, ""), part) {
					t.Errorf("%q is seen in %s", part, raw)
				}
			}
			if out := texts(lines(t, r.Session.Dir), "stdout"); !slices.ContainsFunc(out, func(l string) bool { return strings.HasSuffix(l, c.want) }) {
				t.Errorf("%.300q does not end in %q", out, c.want)
			}
		})
	}
}
