package login_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/problem"
	"sallyport/internal/port/login"
	"sallyport/internal/rule/credential"
	"sallyport/internal/rule/secret"
)

// vendor renews logins as those endpoints do that take a token for a renewal once.
type vendor struct {
	mu        sync.Mutex
	taken     string // the token for renewals that it takes
	n         int
	asked     []map[string]string
	at        []string
	meanwhile func()               // before it answers
	instead   func() (int, string) // answers in its place
	span      time.Duration        // that its tokens are good for
}

func (v *vendor) RoundTrip(r *http.Request) (*http.Response, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	raw, _ := io.ReadAll(r.Body)
	var got map[string]string
	_ = json.Unmarshal(raw, &got)
	v.asked, v.at = append(v.asked, got), append(v.at, r.Method+" "+r.URL.String())
	if v.meanwhile != nil {
		v.meanwhile()
	}
	status, body := http.StatusOK, ""
	switch {
	case v.instead != nil:
		if status, body = v.instead(); status == 0 {
			return nil, errors.New("no route to it")
		}
	case got["refresh_token"] != v.taken:
		status, body = http.StatusBadRequest, `{"error":"invalid_grant","error_description":"not `+got["refresh_token"]+`"}`
	default:
		v.n++
		v.taken = fmt.Sprintf("renewal-token-%d", v.n)
		body = fmt.Sprintf(`{"access_token":%q,"refresh_token":%q,"id_token":%q,"expires_in":%d}`, token(time.Now().Add(v.span), v.n), v.taken, v.identity(), int(v.span/time.Second))
	}
	return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(body)), Header: http.Header{}, Request: r}, nil
}

// identity says who the person is; every other one is none.
func (v *vendor) identity() string {
	if v.n%2 == 0 {
		return "Tulip"
	}
	return token(time.Now().Add(v.span), 1000+v.n)
}

// token is one that says when it ends, as codex's do.
func token(ends time.Time, n int) string {
	part := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	return part(`{"alg":"none"}`) + "." + part(fmt.Sprintf(`{"exp":%d}`, ends.Unix())) + "." + part(fmt.Sprintf("signature-%d", n))
}

// place is a person's home folder with a login in it.
type place struct {
	t      *testing.T
	kind   login.Kind
	home   string
	vendor *vendor
	held   *secret.Held
	ops    disk.Ops
}

func settle(t *testing.T, kind string) *place {
	p := &place{t: t, home: t.TempDir(), vendor: &vendor{taken: "renewal-token-0", span: time.Hour}, held: &secret.Held{}}
	for _, k := range login.Kinds {
		if k.Name == kind {
			p.kind = k
		}
	}
	if err := os.Mkdir(filepath.Join(p.home, p.kind.Folder), 0o700); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *place) file() string { return filepath.Join(p.home, p.kind.Folder, p.kind.File) }

// write has the program write a login that is good for so long.
func (p *place) write(access, renewal string, ends time.Time) {
	p.t.Helper()
	identity := token(time.Now().Add(time.Hour), 1000)
	text := fmt.Sprintf(`{"claudeAiOauth":{"accessToken":%q,"refreshToken":%q,"expiresAt":%d,"scopes":["user:inference"],"subscriptionType":"max"},"other":{"x":1.50}}`, access, renewal, ends.UnixMilli())
	if p.kind.Name == "codex" {
		text = fmt.Sprintf(`{"auth_mode":"chatgpt","OPENAI_API_KEY":null,"tokens":{"id_token":%q,"access_token":%q,"refresh_token":%q,"account_id":"account-1"},"last_refresh":"2026-01-01T00:00:00Z","other":{"x":1.50}}`, identity, access, renewal)
	}
	if err := os.WriteFile(p.file(), []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// open is the login as a daemon has it that starts now.
func (p *place) open() *login.Login {
	p.t.Helper()
	all := login.New(login.Options{
		Client: &http.Client{Transport: p.vendor}, Held: p.held, UID: os.Getuid(), Ops: p.ops,
		Getenv: func(name string) string { return map[string]string{"HOME": p.home}[name] },
	})
	l, err := all.Of(p.kind.Name)
	if err != nil {
		p.t.Fatal(err)
	}
	return l
}

func (p *place) kept() string {
	raw, err := os.ReadFile(p.file())
	if err != nil {
		p.t.Error(err)
	}
	return string(raw)
}

// left are the files beside the login. Whoever could read the lock could hold it.
func (p *place) left() (names []string) {
	all, err := os.ReadDir(filepath.Dir(p.file()))
	if err != nil {
		p.t.Error(err)
	}
	for _, e := range all {
		if e.Name() == p.kind.Lock {
			disktest.Private(p.t, filepath.Join(filepath.Dir(p.file()), e.Name()), ".")
		}
		if e.Name() != p.kind.File && e.Name() != p.kind.Lock {
			names = append(names, e.Name())
		}
	}
	return names
}

func each(t *testing.T, do func(t *testing.T, p *place)) {
	for _, k := range login.Kinds {
		t.Run(k.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { do(t, settle(t, k.Name)) })
		})
	}
}

func TestALoginThatIsGoodIsUsedAsItIs(t *testing.T) {
	each(t, func(t *testing.T, p *place) {
		good := token(time.Now().Add(time.Hour), 0)
		p.write(good, "renewal-token-0", time.Now().Add(time.Hour))
		before := p.kept()
		l := p.open()
		if err := l.Check(); err != nil {
			t.Error(err)
		}
		pass, err := l.Present(t.Context())
		if err != nil || pass.Token.Reveal() != good || (pass.Account == "account-1") != (p.kind.Name == "codex") {
			t.Errorf("%q of %q, %v", pass.Token.Reveal(), pass.Account, err)
		}
		if len(p.vendor.asked) != 0 || p.kept() != before || len(p.left()) != 0 {
			t.Errorf("asked %v, left %q\n%s", p.vendor.asked, p.left(), p.kept())
		}
	})
}

func TestALoginThatIsNearItsEndIsRenewedAndWhatElseIsInItsFileStays(t *testing.T) {
	each(t, func(t *testing.T, p *place) {
		p.write(token(time.Now().Add(time.Minute), 0), "renewal-token-0", time.Now().Add(time.Minute))
		if err := os.Chmod(p.file(), 0o400); err != nil {
			t.Fatal(err)
		}
		pass, err := p.open().Present(t.Context())
		if want := token(time.Now().Add(time.Hour), 1); err != nil || pass.Token.Reveal() != want {
			t.Fatalf("%q, %v", pass.Token.Reveal(), err)
		}
		if len(p.vendor.asked) != 1 || p.vendor.at[0] != "POST "+p.kind.Renewal || p.vendor.asked[0]["grant_type"] != "refresh_token" || p.vendor.asked[0]["client_id"] != p.kind.Client {
			t.Errorf("asked %q %v", p.vendor.at, p.vendor.asked)
		}
		kept := p.kept()
		for _, want := range []string{pass.Token.Reveal(), `"renewal-token-1"`, `"x": 1.50`} {
			if !strings.Contains(kept, want) {
				t.Errorf("%s is not in\n%s", want, kept)
			}
		}
		if strings.Contains(kept, "renewal-token-0") || len(p.left()) != 0 {
			t.Errorf("what is old is still there: %q\n%s", p.left(), kept)
		}
		if info, err := os.Stat(p.file()); err != nil || info.Mode().Perm() != 0o400 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
		if again, err := p.open().Present(t.Context()); err != nil || !again.Token.Equal(pass.Token) || len(p.vendor.asked) != 1 {
			t.Errorf("the next daemon has %q, %v", again.Token.Reveal(), err)
		}
		scan, err := secret.New(secret.Config{Held: p.held})
		if err != nil {
			t.Fatal(err)
		}
		if shown := scan.Redact("x " + pass.Token.Reveal() + " renewal-token-0 renewal-token-1 y"); strings.Contains(shown, "renewal-token") || strings.Contains(shown, pass.Token.Reveal()) {
			t.Errorf("it is shown: %s", shown)
		}
	})
}

func TestOneRenewalIsForAllWhoAskAtOnce(t *testing.T) {
	each(t, func(t *testing.T, p *place) {
		old := token(time.Now().Add(time.Hour), 0)
		p.write(old, "renewal-token-0", time.Now().Add(time.Hour))
		homes := []*login.Login{p.open(), p.open()} // two daemons
		done := make(chan error)
		for i := range 8 {
			go func() { done <- homes[i%2].Refused(t.Context(), secret.Hold(old)) }()
		}
		for range 8 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		time.Sleep(time.Hour)
		if _, err := homes[1].Present(t.Context()); err != nil || strings.Contains(p.kept(), "Tulip") || !strings.Contains(p.kept(), "renewal-token-2") {
			t.Errorf("%v: what is no identity is kept as one\n%s", err, p.kept())
		}
		if len(p.vendor.asked) != 2 || len(p.left()) != 0 {
			t.Errorf("asked %d times, left %q", len(p.vendor.asked), p.left())
		}
		// A token that is refused although it is new is no reason to ask for one after another.
		var err error
		for range 4 {
			pass, is := homes[0].Present(t.Context())
			err = errors.Join(is, homes[0].Refused(t.Context(), pass.Token))
		}
		if problem.KindOf(err) != problem.Unavailable || len(p.vendor.asked) > 3 {
			t.Errorf("asked %d times: %v", len(p.vendor.asked), err)
		}
	})
}

func TestWhatTheProgramItselfHasWrittenMeanwhileStays(t *testing.T) {
	each(t, func(t *testing.T, p *place) {
		theirs := token(time.Now().Add(2*time.Hour), 77)
		for name, test := range map[string]struct {
			do    func()
			token string
		}{
			"a renewal or another login": {func() { p.write(theirs, "renewal-token-theirs", time.Now().Add(2*time.Hour)) }, theirs},
			"a logout":                   {func() { _ = os.Remove(p.file()) }, ""},
		} {
			p.vendor.taken, p.vendor.meanwhile = "renewal-token-0", test.do
			p.write(token(time.Now(), 0), "renewal-token-0", time.Now())
			pass, err := p.open().Present(t.Context())
			if pass.Token.Reveal() != test.token || (err == nil) != (test.token != "") || err != nil && !errors.Is(err, credential.ErrMissing) {
				t.Errorf("%s: %q, %v", name, pass.Token.Reveal(), err)
			}
			if test.token != "" && !strings.Contains(p.kept(), "renewal-token-theirs") || len(p.left()) != 0 {
				t.Errorf("%s: left %q", name, p.left())
			}
		}
	})
}

// An endpoint takes a token once: what it has answered must not be lost with the machine.
func TestARenewalThatReachedTheDiskOutlivesTheMachine(t *testing.T) {
	each(t, func(t *testing.T, p *place) {
		for at := 0; ; at++ {
			for _, after := range []bool{false, true} {
				p.vendor.taken, p.vendor.n, p.vendor.asked = "renewal-token-0", 0, nil
				p.write(token(time.Now(), 0), "renewal-token-0", time.Now())
				crash := &disktest.Crash{At: at, After: after}
				p.ops = crash.Ops()
				_, err := disktest.Run(func() error { _, err := p.open().Present(t.Context()); return err })
				p.ops = disk.Ops{}
				if !crash.Crashed() {
					if err != nil || at < 2 {
						t.Errorf("after %d operations: %v", at, err)
					}
					return
				}
				var whole map[string]any
				if err := json.Unmarshal([]byte(p.kept()), &whole); err != nil {
					t.Errorf("%v: the file is broken: %v", crash.Seen(), err)
				}
				pass, err := p.open().Present(t.Context())
				switch lost := at == 0 && !after; {
				case lost && (!errors.Is(err, credential.ErrMissing) || problem.Of(err).Next != p.kind.Again):
					t.Errorf("%v: %v", crash.Seen(), err)
				case !lost && (err != nil || pass.Token.Reveal() != token(time.Now().Add(time.Hour), 1) || len(p.vendor.asked) != 1):
					t.Errorf("%v: %q, %v; asked %d times", crash.Seen(), pass.Token.Reveal(), err, len(p.vendor.asked))
				}
				if len(p.left()) != 0 {
					t.Errorf("%v: left %q", crash.Seen(), p.left())
				}
			}
		}
	})
}

func TestAHalfWrittenRenewalIsNone(t *testing.T) {
	each(t, func(t *testing.T, p *place) {
		p.write(token(time.Now(), 0), "renewal-token-0", time.Now())
		crash := &disktest.Crash{At: 1}
		p.ops = crash.Ops()
		_, _ = disktest.Run(func() error { _, err := p.open().Present(t.Context()); return err })
		p.ops = disk.Ops{}
		if len(p.left()) != 1 {
			t.Fatalf("left %q", p.left())
		}
		half := filepath.Join(filepath.Dir(p.file()), p.left()[0])
		disktest.Put(t, half, p.kept()[:40], 0o600)
		p.vendor.taken = "renewal-token-0"
		if pass, err := p.open().Present(t.Context()); err != nil || pass.Token.Empty() || len(p.left()) != 0 {
			t.Errorf("%q, %v; left %q", pass.Token.Reveal(), err, p.left())
		}
	})
}

func TestARenewalThatCannotBeWrittenIsUsedAndWrittenLater(t *testing.T) {
	each(t, func(t *testing.T, p *place) {
		p.write(token(time.Now(), 0), "renewal-token-0", time.Now())
		full := true
		p.ops = disk.Ops{Around: func(_ string, do func() error) error {
			if full {
				return syscall.ENOSPC
			}
			return do()
		}}
		l := p.open()
		for hour := range 3 { // each is renewed anew
			pass, err := l.Present(t.Context())
			if want := token(time.Now().Add(time.Hour), hour+1); err != nil || pass.Token.Reveal() != want {
				t.Fatalf("%d: %q, %v", hour, pass.Token.Reveal(), err)
			}
			if !strings.Contains(p.kept(), "renewal-token-0") {
				t.Errorf("it was written")
			}
			time.Sleep(time.Hour)
		}
		full = false
		if _, err := l.Present(t.Context()); err != nil || !strings.Contains(p.kept(), "renewal-token-4") {
			t.Errorf("%v\n%s", err, p.kept())
		}
	})
}

func TestALoginThatIsOverIsSaidWithTheWayOutAndNotAskedForAgain(t *testing.T) {
	each(t, func(t *testing.T, p *place) {
		for name, instead := range map[string]func() (int, string){
			"revoked":            nil,
			"not taken any more": func() (int, string) { return 401, "" },
			"used by another":    func() (int, string) { return 400, `{"error":{"code":"refresh_token_reused","message":"x"}}` },
			"of another form":    func() (int, string) { return 403, `{"code":"refresh_token_expired"}` },
		} {
			p.vendor.taken, p.vendor.asked, p.vendor.instead = "renewal-token-another", nil, instead
			p.write(token(time.Now(), 0), "renewal-token-0", time.Now())
			l := p.open()
			for range 3 {
				_, err := l.Present(t.Context())
				if !errors.Is(err, credential.ErrMissing) || problem.KindOf(err) != problem.Unavailable || problem.Of(err).Next != p.kind.Again || strings.Contains(err.Error(), "renewal-token") {
					t.Errorf("%s: %v (%s)", name, err, problem.Of(err).Next)
				}
				if l.Check() == nil {
					t.Errorf("%s: it is there all the same", name)
				}
				time.Sleep(time.Hour)
			}
			if len(p.vendor.asked) != 1 {
				t.Errorf("%s: asked %d times", name, len(p.vendor.asked))
			}

			p.write(token(time.Now().Add(time.Hour), 5), "renewal-token-5", time.Now().Add(time.Hour)) // the person logs in anew
			if _, err := l.Present(t.Context()); err != nil || l.Check() != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

func TestAnEndpointThatIsAwayIsAskedAgainAfterAWhile(t *testing.T) {
	each(t, func(t *testing.T, p *place) {
		for name, instead := range map[string]func() (int, string){
			"no route":        func() (int, string) { return 0, "" },
			"it is broken":    func() (int, string) { return 500, "renewal-token-0" },
			"it leads away":   func() (int, string) { return 302, "" },
			"no answer":       func() (int, string) { return 200, "<html>" },
			"no token":        func() (int, string) { return 200, `{"access_token":""}` },
			"a broken token":  func() (int, string) { return 200, `{"access_token":"a\r\nHost: evil","expires_in":3600}` },
			"another refusal": func() (int, string) { return 400, `{"error":"invalid_request"}` },
		} {
			p.vendor.taken, p.vendor.asked, p.vendor.instead = "renewal-token-0", nil, instead
			near := token(time.Now().Add(2*time.Minute), 0)
			p.write(near, "renewal-token-0", time.Now().Add(2*time.Minute))
			l := p.open()
			for range 3 { // it is good for two minutes more
				if pass, err := l.Present(t.Context()); err != nil || pass.Token.Reveal() != near {
					t.Errorf("%s: %q, %v", name, pass.Token.Reveal(), err)
				}
			}
			if len(p.vendor.asked) != 1 {
				t.Errorf("%s: asked %d times", name, len(p.vendor.asked))
			}
			time.Sleep(3 * time.Minute)
			if _, err := l.Present(t.Context()); problem.KindOf(err) != problem.Unavailable || errors.Is(err, credential.ErrMissing) || strings.Contains(err.Error(), "renewal-token") {
				t.Errorf("%s: %v", name, err)
			}
			p.vendor.instead = nil
			time.Sleep(time.Minute)
			if _, err := l.Present(t.Context()); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

func TestALoginIsItsUsersAloneAndHoldsOne(t *testing.T) {
	each(t, func(t *testing.T, p *place) {
		l, path := p.open(), p.file()
		good := func() { p.write(token(time.Now().Add(time.Hour), 0), "renewal-token-0", time.Now().Add(time.Hour)) }
		text := func(s string) func() { return func() { _ = os.WriteFile(path, []byte(s), 0o600) } }
		for name, test := range map[string]struct {
			make    func()
			kind    problem.Kind
			next    string
			missing bool
		}{
			"not there":            {func() {}, problem.Unavailable, p.kind.Again, true},
			"read by others":       {func() { good(); _ = os.Chmod(path, 0o644) }, problem.Refused, "chmod 600", false},
			"a folder":             {func() { _ = os.Mkdir(path, 0o700) }, problem.Refused, "ls -l", false},
			"a pipe":               {func() { _ = syscall.Mkfifo(path, 0o600) }, problem.Refused, "ls -l", false},
			"too large":            {text(strings.Repeat(" ", 70_000) + "{}"), problem.Refused, "ls -l", false},
			"no JSON":              {text("Tulip"), problem.Unavailable, p.kind.Again, true},
			"of another form":      {text(`{"tokens":"Tulip","claudeAiOauth":"Tulip"}`), problem.Unavailable, p.kind.Again, true},
			"no login":             {text(`{}`), problem.Unavailable, p.kind.Again, true},
			"a header of its own":  {func() { p.write("Tulip\r\nHost: evil", "x", time.Now().Add(time.Hour)) }, problem.Unavailable, p.kind.Again, true},
			"over, and no renewal": {func() { p.write(token(time.Now(), 0), "", time.Now()) }, problem.Unavailable, p.kind.Again, true},
		} {
			test.make()
			for _, err := range []error{l.Check(), func() error { _, err := l.Present(t.Context()); return err }()} {
				if problem.KindOf(err) != test.kind || !strings.HasPrefix(problem.Of(err).Next, test.next) || errors.Is(err, credential.ErrMissing) != test.missing || strings.Contains(err.Error(), "Tulip") {
					t.Errorf("%s: %v (%s)", name, err, problem.Of(err).Next)
				}
			}
			if err := os.RemoveAll(path); err != nil {
				t.Fatal(err)
			}
		}
		if len(p.vendor.asked) != 0 {
			t.Errorf("asked %v", p.vendor.asked)
		}
	})
}

func TestAnAPIKeyOfCodexIsNoLogin(t *testing.T) {
	p := settle(t, "codex")
	disktest.Put(t, p.file(), `{"OPENAI_API_KEY":"sk-Tulip4711","tokens":null}`, 0o600)
	if err := p.open().Check(); !errors.Is(err, credential.ErrMissing) || !strings.Contains(err.Error(), "with an API key") || strings.Contains(err.Error(), "Tulip") {
		t.Error(err)
	}
}

// Root reads whatever belongs to whomever: a test as root alone would not see this.
func TestALoginOfAnotherUserIsNotTaken(t *testing.T) {
	p := settle(t, "claude")
	p.write("access-token-0", "renewal-token-0", time.Now().Add(time.Hour))
	all := login.New(login.Options{Client: &http.Client{Transport: p.vendor}, UID: os.Getuid() + 1, Getenv: func(string) string { return filepath.Dir(p.file()) }})
	l, err := all.Of("claude")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Present(t.Context()); problem.KindOf(err) != problem.Refused || !strings.Contains(err.Error(), "belongs to another user") {
		t.Error(err)
	}
}

func TestALoginIsFoundWhereItsProgramKeepsIt(t *testing.T) {
	dir := t.TempDir()
	real := filepath.Join(dir, "real.json")
	if err := errors.Join(os.WriteFile(real, []byte("{}"), 0o600), os.Symlink(real, filepath.Join(dir, "auth.json"))); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		env  map[string]string
		want string
	}{
		"in the home folder": {map[string]string{"HOME": "/home/me"}, "/home/me/.codex/auth.json"},
		"elsewhere":          {map[string]string{"HOME": "/home/me", "CODEX_HOME": "/srv/codex"}, "/srv/codex/auth.json"},
		"where a link leads": {map[string]string{"CODEX_HOME": dir}, real},
		"nowhere":            {nil, ""},
	} {
		l, err := login.New(login.Options{Getenv: func(v string) string { return test.env[v] }}).Of("codex")
		if (err != nil) != (test.want == "") || err == nil && l.Path() != test.want {
			t.Errorf("%s: %v, %v", name, l, err)
		}
	}
	if _, err := login.New(login.Options{Getenv: os.Getenv}).Of("pi"); problem.KindOf(err) != problem.Usage {
		t.Error(err)
	}
}

func TestNoPrintOfALoginShowsIt(t *testing.T) {
	p := settle(t, "codex")
	p.write(token(time.Now().Add(time.Hour), 0), "renewal-token-0", time.Now())
	l := p.open()
	pass, err := l.Present(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(pass)
	if shown := fmt.Sprintf("%v %+v %#v %+v %s", l, l, pass, pass, raw); err != nil || bytes.Contains([]byte(shown), []byte("renewal-token")) || strings.Contains(shown, pass.Token.Reveal()) {
		t.Errorf("%s, %v", shown, err)
	}
}

func TestARenewalIsOnTheDiskBeforeItTakesThePlaceOfWhatWasThere(t *testing.T) {
	calls := disktest.Calls(t, func(dir string) {
		v := &vendor{taken: "renewal-token-0", span: time.Hour}
		all := login.New(login.Options{Client: &http.Client{Transport: v}, UID: os.Getuid(), Getenv: func(string) string { return dir }})
		file := filepath.Join(dir, ".credentials.json")
		disktest.Put(t, file, `{"claudeAiOauth":{"accessToken":"a","refreshToken":"renewal-token-0","expiresAt":1}}`, 0o600)
		l, err := all.Of("claude")
		if err == nil {
			_, err = l.Present(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
	})
	disktest.Ordered(t, calls, `fsync \.sallyport-login-[0-9a-f]+`, `rename \.sallyport-login-[0-9a-f]+ \.credentials\.json`, `fsync \.`)
}
