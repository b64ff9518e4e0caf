package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/internal/client"
	"sallyport/internal/problem"
)

// doctor asks a doctor about a home; what connecting answers is given.
func (d *daemon) doctor(home string, err error) result {
	var out bytes.Buffer
	p := Program{Out: &out, Err: &out, Getenv: os.Getenv, Connect: func(context.Context, string, bool) (*client.Client, error) {
		return client.New(d.socket), err
	}}
	code := Main(p, []string{"doctor", "--home", home})
	return result{code, out.String(), ""}
}

func TestTheDoctorReadsTheHomesFiles(t *testing.T) {
	d := newDaemon(t)
	home := t.TempDir()
	for name, text := range map[string]string{"sallyport.yaml": "limits: [\n", "policy.yaml": "no_such_key: 1\n"} {
		if err := os.WriteFile(filepath.Join(home, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got := d.doctor(home, nil)
	for _, want := range []string{"MISSING sallyport.yaml: ", "MISSING policy.yaml: ", "no_such_key", "fix: ${EDITOR:-vi} "} {
		if !strings.Contains(got.out, want) {
			t.Errorf("%q is not in:\n%s", want, got.out)
		}
	}
	if got.code != exitError {
		t.Errorf("exit %d", got.code)
	}
}

func TestTheDoctorGoesOnWithADaemonOfAnotherBuild(t *testing.T) {
	d := newDaemon(t)
	got := d.doctor(t.TempDir(), problem.Errorf(problem.Unavailable, "sallyport daemon stop", "the daemon is build x"))
	if !strings.Contains(got.out, "absent  build: the daemon is build x") || !strings.Contains(got.out, "ok      sandbox: they run") {
		t.Errorf("exit %d\n%s", got.code, got.out)
	}
}
