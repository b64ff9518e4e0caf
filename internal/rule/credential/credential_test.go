package credential_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/problem"
	"sallyport/internal/rule/credential"
	"sallyport/internal/rule/secret"
)

const key = "sk-live-" + "Tulip4711Tulip4711"

func TestAReferenceSaysWhereAKeyIsAndIsNeverTheKey(t *testing.T) {
	for text, want := range map[string]struct{ variable, file string }{
		"$OPENAI_API_KEY": {"OPENAI_API_KEY", ""}, "$_a1": {"_a1", ""}, "file:/etc/keys/a b": {"", "/etc/keys/a b"},
		"login": {"", ""},
	} {
		r, err := credential.Parse(text)
		if err != nil || r.Variable() != want.variable || r.File() != want.file {
			t.Errorf("%q: %q %q, %v", text, r.Variable(), r.File(), err)
		}
	}
	for _, text := range []string{"", "$", "$1A", "$A-B", "$A$B", "OPENAI_API_KEY", key, "$" + key, "file:", "file:key", "file:/", "file:/a/../b", "file:/a/", "file://a", "file:/a\nb", "FILE:/a", "${A}", "env:A", "Login", "login:", "login:/a", "$" + strings.Repeat("A", 200)} {
		r, err := credential.Parse(text)
		if err == nil || r != "" || strings.Contains(err.Error(), "Tulip") {
			t.Errorf("%q is taken as %q, or told on: %v", text, r, err)
		}
	}
}

func ring(env map[string]string) (*credential.Ring, *secret.Scanner) {
	held := &secret.Held{}
	s, err := secret.New(secret.Config{Held: held})
	if err != nil {
		panic(err)
	}
	return credential.NewRing(held, func(name string) string { return env[name] }), s
}

func TestAKeyIsFoundWhereItShouldBeAndNowhereElse(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "key")
	disktest.Put(t, file, key+"\n", 0o600)
	given := credential.Keys{"A": secret.Hold("from-the-person-1"), "B": secret.Hold("from-the-person-2")}
	for name, test := range map[string]struct {
		env     map[string]string
		give    credential.Keys
		wanted  credential.Wanted
		key     string
		from    string
		problem problem.Kind
		missing bool
	}{
		"of the person, the first name first": {nil, given, credential.Wanted{Names: []string{"C", "B", "A"}}, "from-the-person-2", "$B", "", false},
		"of the person before the daemon's":   {map[string]string{"C": "from-the-daemon-1"}, given, credential.Wanted{Names: []string{"C", "A"}}, "from-the-person-1", "$A", "", false},
		"of the daemon":                       {map[string]string{"C": "from-the-daemon-1"}, nil, credential.Wanted{Names: []string{"A", "C"}}, "from-the-daemon-1", "$C", "", false},
		"named by the home":                   {map[string]string{"C": "from-the-daemon-1"}, given, credential.Wanted{Names: []string{"A"}, Reference: "$C"}, "from-the-daemon-1", "$C", "", false},
		"named by the home and not there":     {nil, given, credential.Wanted{Names: []string{"A"}, Reference: "$C"}, "", "", problem.Unavailable, true},
		"in a file":                           {nil, given, credential.Wanted{Names: []string{"A"}, Reference: credential.Reference("file:" + file)}, key, "file:" + file, "", false},
		"in no file":                          {nil, given, credential.Wanted{Names: []string{"A"}, Reference: credential.Reference("file:" + dir + "/none")}, "", "", problem.Unavailable, true},
		"nowhere":                             {nil, nil, credential.Wanted{Names: []string{"A", "B"}}, "", "", problem.Unavailable, true},
		"without a name":                      {nil, given, credential.Wanted{}, "", "", problem.Unavailable, true},
		"nowhere and not needed":              {nil, nil, credential.Wanted{Names: []string{"A"}, Keyless: true}, "", "", "", false},
		"there although not needed":           {nil, given, credential.Wanted{Names: []string{"A"}, Keyless: true}, "from-the-person-1", "$A", "", false},
		"a daemon's that is none":             {map[string]string{"C": "two words"}, nil, credential.Wanted{Names: []string{"C"}}, "", "", problem.Refused, false},
	} {
		t.Run(name, func(t *testing.T) {
			test.wanted.Agent = "codex"
			r, clean := ring(test.env)
			if err := r.Give("chg-1", test.give); err != nil {
				t.Fatal(err)
			}
			if from, err := r.Has("chg-1", test.wanted); from != test.from || problem.KindOf(err) != test.problem {
				t.Errorf("it has %q, %v", from, err)
			}
			v, from, err := r.Find("chg-1", test.wanted)
			if v.Reveal() != test.key || from != test.from || problem.KindOf(err) != test.problem || errors.Is(err, credential.ErrMissing) != test.missing {
				t.Errorf("%q from %q, %v", v.Reveal(), from, err)
			}
			if test.missing {
				for _, name := range test.wanted.Variables() {
					if !strings.Contains(err.Error(), "$"+name) {
						t.Errorf("%v does not name %s", err, name)
					}
				}
			}
			if test.key == "" {
				return
			}
			if got := clean.Redact("x " + test.key + " y"); strings.Contains(got, test.key) {
				t.Errorf("it is shown: %q", got)
			}
			if _, _, err := r.Find("chg-2", credential.Wanted{Names: []string{"A", "B"}}); !errors.Is(err, credential.ErrMissing) {
				t.Errorf("another change has it too: %v", err)
			}
			r.Forget("chg-1")
			if got := clean.Redact("x " + test.key + " y"); !strings.Contains(got, test.key) && test.from != "file:"+file { // a live key's form is found all the same
				t.Errorf("it is held although it was forgotten: %q", got)
			}
			if from, _ := r.Has("chg-1", credential.Wanted{Names: []string{"A", "B"}}); from != "" {
				t.Errorf("%s is there although it was forgotten", from)
			}
		})
	}
}

func TestAKeysFileIsItsOwnersAloneAndHoldsOneKey(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		disktest.Put(t, path, text, 0o600)
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		path string
		want string
		next string
	}{
		"read by its group": {write("group", key, 0o640), "(mode 0640)", "chmod 600"},
		"read by all":       {write("all", key, 0o604), "(mode 0604)", "chmod 600"},
		"written by all":    {write("written", key, 0o602), "(mode 0602)", "chmod 600"},
		"a folder":          {dir, "is no ordinary file", "ls -l"},
		"a pipe":            {fifo, "is no ordinary file", "ls -l"},
		"empty":             {write("empty", "\n", 0o600), "is no key: it is empty", "ls -l"},
		"two lines":         {write("two", key+"\n"+key+"\n", 0o600), "is no key: it holds a space, a line break", "ls -l"},
		"one byte too many": {write("byte", strings.Repeat("k", credential.KeyBytesMax+1), 0o600), "it has more than 8192 bytes", "ls -l"},
		"large":             {write("large", strings.Repeat("k", credential.KeyBytesMax+100), 0o600), "it has more than 8192 bytes", "ls -l"},
		"deleted":           {write("deleted", "key\x7f", 0o600), "another character that no key has", "ls -l"},
		"binary":            {write("binary", "key\x00\x01", 0o600), "another character that no key has", "ls -l"},
	} {
		r, _ := ring(nil)
		_, _, err := r.Find("chg-1", credential.Wanted{Agent: "pi", Reference: credential.Reference("file:" + test.path)})
		if problem.KindOf(err) != problem.Refused || !strings.Contains(err.Error(), test.want) || !strings.HasPrefix(problem.Of(err).Next, test.next) || strings.Contains(err.Error(), "Tulip") {
			t.Errorf("%s: %v (%s)", name, err, problem.Of(err).Next)
		}
	}
}

// The one check that a test as root alone would not see: root reads whatever belongs to whomever.
func TestAKeysFileIsTakenFromItsUserAndFromRootOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	disktest.Put(t, path, key, 0o600)
	mine := os.Getuid()
	owners := []int{mine}
	if mine == 0 {
		owners = []int{0, 4711}
	}
	for _, owner := range owners {
		if err := os.Chown(path, owner, -1); err != nil {
			t.Fatal(err)
		}
		for _, user := range []int{0, 4711, 4712, mine} {
			r := credential.NewRing(&secret.Held{}, os.Getenv)
			_, _, err := r.As(user).Find("chg-1", credential.Wanted{Reference: credential.Reference("file:" + path)})
			taken := owner == 0 || owner == user
			if taken && err != nil || !taken && (problem.KindOf(err) != problem.Refused || !strings.Contains(err.Error(), "belongs to another user")) {
				t.Errorf("a file of %d is taken for %d: %v", owner, user, err)
			}
		}
	}
}

func TestWhatCannotBeAKeyIsNotTaken(t *testing.T) {
	r, _ := ring(nil)
	many := credential.Keys{}
	for i := range credential.KeysMax + 1 {
		many[fmt.Sprintf("K%d", i)] = secret.Hold("x")
	}
	for name, keys := range map[string]credential.Keys{
		"too many": many, "a name that is none": {"A B": secret.Hold(key)}, "empty": {"A": secret.Hold("")}, "nothing": {"A": {}},
		"a line break": {"A": secret.Hold(key + "\n")}, "a header of its own": {"A": secret.Hold("x\r\nHost: evil")}, "too long": {"A": secret.Hold(strings.Repeat("x", 10_000))},
	} {
		if err := r.Give("chg-1", keys); problem.KindOf(err) != problem.Usage || strings.Contains(err.Error(), "Tulip") || strings.Contains(err.Error(), "evil") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if from, _ := r.Has("chg-1", credential.Wanted{Names: []string{"A"}}); from != "" {
		t.Errorf("%s is there", from)
	}

	delete(many, "K0")
	many["K1"] = secret.Hold(strings.Repeat("x", credential.KeyBytesMax))
	if err := r.Give("chg-1", many); err != nil {
		t.Errorf("as many and as long as can be: %v", err)
	}
}

func TestNoPrintOfKeysShowsOne(t *testing.T) {
	keys := credential.Keys{"OPENAI_API_KEY": secret.Hold(key)}
	r, _ := ring(nil)
	if err := r.Give("chg-1", keys); err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(map[string]any{"keys": keys})
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "keys", keys, "ring", r)
	for _, shown := range []string{string(raw), log.String(), fmt.Sprint(keys), fmt.Sprintf("%+v %#v %s %q %x", keys, keys, keys, keys, keys), fmt.Sprintf("%v %+v %#v", r, r, r)} {
		if strings.Contains(shown, "Tulip") || strings.Contains(shown, fmt.Sprintf("%x", "Tulip")) {
			t.Errorf("shown: %s", shown)
		}
	}
}

func TestABaseIsAPlainURLAndKeepsTheKeyToItself(t *testing.T) {
	for base, taken := range map[string]bool{
		"https://api.example.org": true, "https://api.example.org/v1": true, "https://api.example.org:8443/a/b": true,
		"http://127.0.0.1:11434/v1": true, "http://localhost:1234": true, "https://x/a//b": false, "http://[::1]:80/v1": true, "http://10.1.2.3/v1": true, "http://models/v1": true,
		"http://api.example.org": false, "http://8.8.8.8": false, "https://api.example.org/": false, "https://u:p@api.example.org": false,
		"https://api.example.org/v1?k=v": false, "https://api.example.org/v1#x": false, "https://api.example.org/v1?": false, "https://": false, "https:///v1": false,
		"ftp://x": false, "api.example.org": false, "": false, "https://x/a/../b": false, "https://x/a/%2e%2e/b": false, "https://x/ y": false, "https://x\n": false,
		"unix:///run/x": false, "https://" + strings.Repeat("x", 3000): false,
		"https://x/" + strings.Repeat("x", credential.BaseBytesMax-10): true, "https://x/" + strings.Repeat("x", credential.BaseBytesMax-9): false,
		"https://x/\x7f": false, "http://[::ffff:127.0.0.1]": true, "http://[::ffff:8.8.8.8]": false,
	} {
		if err := credential.CheckBase(base); (err == nil) != taken {
			t.Errorf("%.60q: %v", base, err)
		} else if err != nil && strings.Contains(err.Error(), "u:p") {
			t.Errorf("a password is told: %v", err)
		}
	}
}
