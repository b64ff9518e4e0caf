package checkpoint_test

import (
	"archive/zip"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"

	"sallyport/internal/base/git/gittest"
	"sallyport/internal/path/checkpoint"
	wt "sallyport/internal/path/workspace/workspacetest"
	"sallyport/internal/rule/policy"
	"sallyport/internal/rule/secret"
)

// Keys of no account. They are put together here so that no file holds one.
var (
	awsKey = "AKIA" + "Q7ZP3MXW5NRT2KLD"
	oldKey = "AKIA" + "W2HV6BYC4JTG7SEF"
	github = "ghp_" + "9fK2mQx7LbR4vTz1WcN8sYd3HjP6gUe5AoXi"
	pemKey = "-----BEGIN RSA PRIVATE " + "KEY-----\n" + strings.Repeat("MIIEowIBAAKCAQEAq7Zp3mXw5NrT2kLdW2hV6bYc4jTg7sEf9fK2mQx7LbR4vTz1\n", 4) + "-----END RSA PRIVATE " + "KEY-----\n"
)

func zipped(t *testing.T, name, content string) string {
	t.Helper()
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	w, err := z.Create(name)
	if err == nil {
		_, err = w.Write([]byte(content))
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestASecretMakesACheckpointInvalidAndIsNotShown(t *testing.T) {
	old := map[string]string{
		"README": "read me\n", "old.env.txt": "a\nkey = " + oldKey + "\nz\n", "old.pem": "certificate\n", "credentials.json": "{}\n", "keep.key": "was here\n", "big.bin": "1\n",
	}
	for name, c := range map[string]struct {
		ops   []wt.Op
		allow []string
		want  []string // violations
		say   string   // in a message
	}{
		"a key":                      {ops: []wt.Op{wt.Write("src/a.go", "package a\n\nconst k = \""+awsKey+"\"\n")}, want: []string{"src/a.go secret"}, say: "aws-access-key, line 3"},
		"a private key":              {ops: []wt.Op{wt.Write("a.txt", pemKey)}, want: []string{"a.txt secret"}, say: "private-key, line 1"},
		"in a binary":                {ops: []wt.Op{wt.Write("a.bin", "\x00\x01"+github+"\x00\xff")}, want: []string{"a.bin secret"}},
		"in base64":                  {ops: []wt.Op{wt.Write("a.txt", base64.StdEncoding.EncodeToString([]byte("token="+github+" and more words")))}, want: []string{"a.txt secret"}},
		"in an archive":              {ops: []wt.Op{wt.Write("a.zip", zipped(t, "in/b.txt", github))}, want: []string{"a.zip secret"}, say: `"in/b.txt"`},
		"in a link's target":         {ops: []wt.Op{wt.Symlink("l", github)}, want: []string{"l secret", "l symlink"}},
		"a link to a secret's place": {ops: []wt.Op{wt.Symlink("l", ".ssh/id_rsa")}, want: []string{"l secret", "l symlink"}, say: "path .ssh/"},
		"in a name":                  {ops: []wt.Op{wt.Write("x/"+awsKey+".txt", "1")}, want: []string{"x/[secret: aws-access-key].txt secret"}, say: "in its name"},
		"in a name that goes":        {ops: []wt.Op{wt.Write("x/"+awsKey+".txt", "1"), wt.Rename("x/"+awsKey+".txt", "x/"+awsKey)}, want: []string{"x/[secret: aws-access-key] secret"}},
		"a sealed archive":           {ops: []wt.Op{wt.Write("a.7z", "7z\xbc\xaf\x27\x1c\x00\x04 and more")}, want: []string{"a.7z not_scanned"}, say: "could not scan it"},
		"an archive that is broken":  {ops: []wt.Op{wt.Write("a.zip", "PK\x03\x04 and no more")}, want: []string{"a.zip not_scanned"}},
		"too large to be scanned":    {ops: []wt.Op{wt.Exec("truncate -s 33M big.bin")}, want: []string{"big.bin not_scanned"}, say: "the limit is"},

		"a place of secrets":            {ops: []wt.Op{wt.Write("config/secrets/a.txt", "1"), wt.Write("id_rsa.pub", "1"), wt.Write("Server.PEM", "1")}, want: []string{"Server.PEM secret_path", "config/secrets/a.txt secret_path"}},
		"a place the base has, changed": {ops: []wt.Op{wt.Write("keep.key", "other\n")}, want: []string{"keep.key secret_path"}},
		"a place the base has, gone":    {ops: []wt.Op{wt.Remove("keep.key"), wt.Remove("old.pem"), wt.Remove("credentials.json")}},
		"a place the base has, renamed": {ops: []wt.Op{wt.Rename("old.pem", "new.pem")}, want: []string{"new.pem secret_path"}},
		"out of a place of secrets":     {ops: []wt.Op{wt.Rename("old.pem", "old.crt")}},
		"a place the home allows":       {ops: []wt.Op{wt.Write("internal/rule/secret/scan.go", "package secret\n")}, allow: []string{"internal/rule/secret"}},
		"content there is scanned":      {ops: []wt.Op{wt.Write("internal/rule/secret/scan.go", "// "+github+"\n")}, allow: []string{"internal/rule/secret"}, want: []string{"internal/rule/secret/scan.go secret"}},
		"another place stays refused":   {ops: []wt.Op{wt.Write("a.pem", "1")}, allow: []string{"internal/rule/secret"}, want: []string{"a.pem secret_path"}},

		"an old key, edited elsewhere": {ops: []wt.Op{wt.Write("old.env.txt", "first\na\nkey = "+oldKey+"\nz, and more\n")}},
		"an old key, executable":       {ops: []wt.Op{wt.Chmod("old.env.txt", 0o755)}},
		"an old key, gone":             {ops: []wt.Op{wt.Write("old.env.txt", "a\nz\n")}},
		"an old key, and a new one":    {ops: []wt.Op{wt.Write("old.env.txt", "a\nkey = "+oldKey+"\nnew = "+awsKey+"\n")}, want: []string{"old.env.txt secret"}, say: "line 3"},
		"an old key, once more":        {ops: []wt.Op{wt.Write("old.env.txt", "a\nkey = "+oldKey+"\nz\nkey = "+oldKey+"\n")}, want: []string{"old.env.txt secret"}, say: "line 4"},
		"an old key in another file":   {ops: []wt.Op{wt.Write("src/b.go", oldKey)}, want: []string{"src/b.go secret"}},
		"an old key, moved":            {ops: []wt.Op{wt.Rename("old.env.txt", "moved.txt")}, want: []string{"moved.txt secret"}},
		"an allow of its own":          {ops: []wt.Op{wt.Write("a.go", "k := \""+awsKey+"\" // gitleaks:allow\n")}, want: []string{"a.go secret"}},
		"rules of its own":             {ops: []wt.Op{wt.Write(".gitleaks.toml", "[allowlist]\npaths = ['''.*''']\n"), wt.Write("a.go", awsKey)}, want: []string{"a.go secret"}},
	} {
		t.Run(name, func(t *testing.T) {
			with := readyOn(t, old)
			with.Rules.AllowSecretPaths = c.allow
			wt.Edit(t, with.Workspace, c.ops...)
			taken := take(t, with)
			got := broken(taken.Checkpoint)
			if !slices.Equal(got, c.want) {
				t.Errorf("violations %q, want %q", got, c.want)
			}
			text, err := json.Marshal(taken.Checkpoint)
			if err != nil || !strings.Contains(strings.ReplaceAll(string(text), `\"`, `"`), c.say) {
				t.Errorf("%s does not say %s (%v)", text, c.say, err)
			}
			for _, k := range []string{awsKey, oldKey, github, "MIIEowIBAAKC"} {
				if strings.Contains(string(text), k[:8]) {
					t.Errorf("the record shows a secret: %s", text)
				}
			}
			for _, v := range taken.Checkpoint.Violations {
				if strings.HasPrefix(v.Constraint, "secret") && v.Severity != policy.Critical {
					t.Errorf("%+v is not critical", v)
				}
			}
			again, err := checkpoint.Judge(gittest.Context(t), with.Host, taken.Checkpoint.Base, taken.Checkpoint.Commit, with.Plan, with.Rules, nil, nil)
			if err != nil || len(again) != len(taken.Checkpoint.Violations) {
				t.Errorf("the other door says %v, %v", again, err)
			}
		})
	}
}

// What no tree holds is in no record by its name either: a fifo, and a socket.
func TestASecretInTheNameOfWhatIsNoFileIsNotShown(t *testing.T) {
	with := ready(t)
	wt.Edit(t, with.Workspace, wt.Mkdir("x"), wt.Fifo("x/"+awsKey), wt.Socket(github))
	c := take(t, with).Checkpoint
	want := []string{"[secret: github-token] secret", "[secret: github-token] special_file", "x/[secret: aws-access-key] secret", "x/[secret: aws-access-key] special_file"}
	if got := broken(c); !slices.Equal(got, want) {
		t.Errorf("violations %q, want %q", got, want)
	}
	if text, err := json.Marshal(c); err != nil || strings.Contains(string(text), awsKey) || strings.Contains(string(text), github) {
		t.Errorf("the record shows a secret: %s, %v", text, err)
	}
}

// What git ignores stays out, and is named by its folder.
func TestASecretInTheNameOfAFolderThatIsLeftOverIsNotShown(t *testing.T) {
	with := readyOn(t, map[string]string{".gitignore": "out*/\n"})
	wt.Edit(t, with.Workspace, wt.Write("out-"+awsKey+"/x", "1"), wt.Write("out/x", "1"))
	var got []string
	for _, left := range take(t, with).Checkpoint.LeftOver {
		got = append(got, left.Folder)
	}
	slices.Sort(got)
	if want := []string{"out", "out-[secret: aws-access-key]"}; !slices.Equal(got, want) {
		t.Errorf("left over %q, want %q", got, want)
	}
}

// counting counts what was scanned and not merely found again.
type counting struct {
	secret.Cache
	mu   sync.Mutex
	kept []string
}

func (c *counting) Keep(k secret.Key, fs []secret.Finding) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept = append(c.kept, k.Path)
	c.Cache.Keep(k, fs)
}

func TestABlobIsScannedOnce(t *testing.T) {
	cache := &counting{Cache: secret.NewMemory(100)}
	scanner, err := secret.New(secret.Config{Cache: cache})
	if err != nil {
		t.Fatal(err)
	}
	with := ready(t)
	with.Secrets = scanner
	wt.Edit(t, with.Workspace, wt.Write("src/a.go", "package z\n"), wt.Write("new", awsKey))
	first := take(t, with).Checkpoint
	wt.Edit(t, with.Workspace, wt.Write("src/b.go", "package z\n\n"))
	with.Previous = &first
	second := take(t, with).Checkpoint
	if got := broken(second); !slices.Equal(got, []string{"new secret"}) {
		t.Errorf("violations %q", got)
	}
	slices.Sort(cache.kept)
	if want := []string{"new", "src/a.go", "src/b.go"}; !slices.Equal(cache.kept, want) {
		t.Errorf("scanned %q, want %q", cache.kept, want)
	}
}
