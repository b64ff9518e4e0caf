package rehearser

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/release"
	"sallyport/internal/port/rehearsal"
)

// TestMain makes the test binary the keeper as well.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "runner" && os.Args[2] == "keep" {
		os.Exit(Keep(os.Args[3:]))
	}
	os.Exit(m.Run())
}

// candidate is a program whose daemon serves, and whose command line finds it. What stands in the place of a line is put there by a test.
const candidate = `#!/bin/sh
case "$1 $2" in
"daemon run")
	# BEGIN
	trap 'rm -f up; exit 0' TERM
	# TRAPPED
	printf 'hello 1\nready\n' >&3
	cd %HOME%
	# SERVE
	: >up
	while :; do sleep 0.02; done ;;
"daemon status")
	cat %HOME%/status 2>/dev/null
	test -e %HOME%/up ;;
"chat echo")
	# CHAT
	echo "$4" ;;
esac
`

// TestWhatACandidateFailsInIsTold holds the steps of SM-913, each with a candidate that fails in it.
func TestWhatACandidateFailsInIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		at, does   string // which line it has instead
		step, why  string // "" = nothing fails
		tail       string
		ready, end time.Duration
		back       GoBack // nil: its schema is that of now
		steps      int    // that go well; 0 = 5
	}{
		"all goes well":           {},
		"it has another schema":   {back: func(context.Context, string, string) (int, bool, error) { return 3, true, nil }, steps: 6},
		"there is no way back":    {back: func(context.Context, string, string) (int, bool, error) { return 0, true, errors.New("too odd") }, step: rehearsal.Back, why: "the host that runs now could not go on with its database: too odd"},
		"what was said is lost":   {back: func(context.Context, string, string) (int, bool, error) { return 0, true, nil }, step: rehearsal.Back, why: "nothing that was said to it stays in the database once the old schema is back"},
		"it ends at once":         {at: "BEGIN", does: "echo sallyport.yaml does not load >&2; exit 1", step: rehearsal.Start, why: "it ended before it answered: exit status 1", tail: "sallyport.yaml does not load"},
		"it never answers":        {at: "SERVE", does: "while :; do sleep 0.02; done", step: rehearsal.Start, why: "it did not answer `daemon status` within 1s", ready: time.Second},
		"its agent says nothing":  {at: "CHAT", does: "echo no such agent >&2; exit 1", step: rehearsal.Answer, why: "`sallyport chat echo --say hello` failed: exit status 1", tail: "no such agent"},
		"its agent says no hello": {at: "CHAT", does: "echo what; exit 0", step: rehearsal.Answer, why: "the agent echo did not say hello", tail: "what"},
		"it does not end":         {at: "TRAPPED", does: "trap : TERM", step: rehearsal.End, why: "it did not end within 1s of being asked to", end: time.Second},
		"it starts only once":     {at: "BEGIN", does: "test -e %HOME%/once && exit 3; : >%HOME%/once", step: rehearsal.Again, why: "it ended before it answered: exit status 3"},
		"it was started again":    {at: "CHAT", does: `echo '{"keeper":{"restarts":1,"why":"it fell"}}' >%HOME%/status`, step: rehearsal.End, why: "it ended by itself, and was started again: it fell"},
	} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			text := candidate
			if c.at != "" {
				text = strings.Replace(text, "# "+c.at, c.does, 1)
			}
			from := t.TempDir()
			disktest.Put(t, filepath.Join(from, release.Program), strings.ReplaceAll(text, "%HOME%", home), 0o755)
			folder := release.In(home, disk.Ops{})
			is, err := folder.Put(from, release.Release{Build: "candidate"})
			if err == nil {
				err = folder.Use(is.Digest)
			}
			if err != nil {
				t.Fatal(err)
			}
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}

			long := time.Minute // what a busy machine needs; nothing that is awaited takes so long
			r := rehearser{self: self, env: os.Environ(), Order: rehearsal.Order{
				Home: home, Program: filepath.Join(folder.Dir, is.Digest, release.Program), Ready: long, Answer: long, End: long,
			}}
			if r.back = c.back; r.back == nil {
				r.back = func(_ context.Context, used, before string) (int, bool, error) {
					is, err := os.ReadFile(used)
					was, err2 := os.ReadFile(before)
					if string(is) != "rows" || string(was) != "rows" {
						t.Errorf("it would go back from %q to %q", is, was)
					}
					return 0, false, errors.Join(err, err2)
				}
			}
			disktest.Put(t, filepath.Join(home, database), "rows", 0o600)
			if err := r.keep(); err != nil {
				t.Fatal(err)
			}
			disktest.Private(t, filepath.Join(home, before), ".")
			if c.ready > 0 {
				r.Ready = c.ready
			}
			if c.end > 0 {
				r.End = c.end
			}
			if err := r.play(); err != nil {
				t.Fatal(err)
			}
			switch f := r.report.Failed; {
			case c.step == "":
				if f != nil || len(r.report.Done) != cmp.Or(c.steps, 5) {
					t.Errorf("%+v, %+v", r.report.Done, f)
				}
			case f == nil || f.Step != c.step || f.Why != c.why || !strings.Contains(f.Tail, c.tail):
				t.Errorf("%+v, after %+v", f, r.report.Done)
			}
		})
	}
}

// The end of what a candidate prints is told, and no more than that.
func TestWhatACandidatePrintsIsBounded(t *testing.T) {
	var out tail
	for range 100 {
		_, _ = out.Write([]byte(strings.Repeat("x", 1000)))
	}
	_, _ = out.Write([]byte("the end"))
	if got := out.String(); len(got) != rehearsal.TailBytes || !strings.HasSuffix(got, "xthe end") {
		t.Errorf("%d bytes: %q", len(got), got[len(got)-20:])
	}
}

// TestACredentialIsADummy holds that no value of the home is in a rehearsal.
func TestACredentialIsADummy(t *testing.T) {
	home := t.TempDir()
	t.Setenv("THERE", "as it is")
	disktest.Put(t, filepath.Join(home, "sallyport.yaml"), "agents: {x: {key: $ABSENT_KEY}, y: {key: $THERE}}\n", 0o600)
	env, err := environment(home)
	all := strings.Join(env, "\n") + "\n"
	if err != nil || !strings.Contains(all, "\nABSENT_KEY=dummy\n") || strings.Contains(all, "THERE=dummy") || !strings.Contains(all, rehearsal.Variable+"=1\n") {
		t.Errorf("%v\n%s", err, all)
	}
}

// Outside of a rehearsal nothing is done.
func TestOutsideOfARehearsalNothingIsRehearsed(t *testing.T) {
	t.Setenv(rehearsal.Variable, "1")
	home := t.TempDir()
	if got := Main([]string{`{"home": "` + home + `"}`}, nil); got != rehearsal.StatusFault {
		t.Errorf("it ended with %d", got)
	}
	if there, err := os.ReadDir(home); err != nil || len(there) > 0 {
		t.Errorf("it left %v, %v", there, err)
	}
}
