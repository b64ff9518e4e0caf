package release

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/internal/base/git"
	"sallyport/internal/drive/grounds"
	"sallyport/internal/path/change"
	"sallyport/internal/path/session"
	wt "sallyport/internal/path/workspace/workspacetest"
)

// TestAFailedBuildNamesItsStepAndWhy has what a builder printed.
func TestAFailedBuildNamesItsStepAndWhy(t *testing.T) {
	long := strings.Repeat("x", 300)
	for name, try := range map[string]struct{ printed, says string }{
		"a command that failed": {
			"STEP 1/3: FROM scratch\nfine\nSTEP 2/3: RUN echo trying; apt-get install foo\ntrying\nE: no package foo\nsubprocess exited with status 3\nsubprocess exited with status 3\n" +
				"Error: building at STEP \"RUN echo trying; apt-get install foo\": exit status 3\n",
			", at step 2/3 (RUN echo trying; apt-get install foo): E: no package foo"},
		"one that says so as the builder does": {
			"STEP 2/2: RUN make\nError: no rule\nError: building at STEP \"RUN make\": while running runtime: exit status 2\n", ", at step 2/2 (RUN make): no rule"},
		"one that says what the builder says otherwise": {
			"STEP 2/2: RUN make\nError: no rule\nError: building at STEP \"RUN make\": it cannot run\n", ", at step 2/2 (RUN make): it cannot run"},
		"a step that looks like an end of one": {
			"STEP 2/2: RUN echo \"a\": b\nError: building at STEP \"RUN echo \"a\": b\": no luck\n", `, at step 2/2 (RUN echo "a": b): no luck`},
		"one that says nothing": {
			"STEP 1/3: RUN true\nfine\n[2/2] STEP 3/3: RUN false\nError: building at STEP \"RUN false\": exit status 1\n", ", at step 3/3 (RUN false): exit status 1"},
		"what is not there": {
			"STEP 2/2: COPY absent /\nError: building at STEP \"COPY absent /\": checking on sources under \"/workspace\": copier: stat: \"/absent\": no such file or directory\n",
			`, at step 2/2 (COPY absent /): checking on sources under "/workspace": copier: stat: "/absent": no such file or directory`},
		"no step that it knows": {
			"STEP 2/2: BOGUS x\ntime=\"2026-11-28T12:00:00Z\" level=error msg=\"+\"\nError: building at STEP \"BOGUS \": Build error: Unknown instruction: \"BOGUS\"\n",
			`, at step 2/2 (BOGUS x): Build error: Unknown instruction: "BOGUS"`},
		"nothing of it":                  {"Error: no contents in \"image/Dockerfile\"\n", `: no contents in "image/Dockerfile"`},
		"more than was kept":             {"…\n 98%\r 99%\r\nError: building at STEP \"RUN fetch\": exit status 1\n", ", at step (RUN fetch): 99%"},
		"what a terminal would obey":     {"STEP 1/1: RUN \x1b[2J" + long + "\n\x1b[31mred\nError: building at STEP \"\": exit status 1\n", `, at step 1/1 (RUN \x1b[2J` + long[:200-len(`RUN \x1b[2J`)] + `…): \x1b[31mred`},
		"an end in the middle of a step": {"STEP 1/1: RUN make\nmaking\n", ", at step 1/1 (RUN make): making"},
		"nothing":                        {"", ""},
	} {
		if got := stumbled(try.printed); got != try.says {
			t.Errorf("%s: %q, not %q", name, got, try.says)
		}
	}
}

// TestAFolderThatIsTooLargeIsItsAgentsFault: a fault of the machine would be tried again, and its agent would not hear of it.
func TestAFolderThatIsTooLargeIsItsAgentsFault(t *testing.T) {
	project, _ := wt.Project(t, map[string]string{"image/Dockerfile": "FROM scratch\n", "image/big": strings.Repeat("x", 1<<20)})
	words, big := []string{"update-index", "--add"}, wt.Git(t, project.Top, "rev-parse", "HEAD:image/big")
	for n := range 255 {
		words = append(words, "--cacheinfo", fmt.Sprintf("100644,%s,image/%d", big, n))
	}
	wt.Git(t, project.Top, words...)
	wt.Git(t, project.Top, "commit", "-qm", "x")
	offer := grounds.Offer{Host: git.Dir{Path: project.Top + "/.git"}, Commit: "HEAD", Edits: []git.Edit{{Path: dockerfile}}}
	_, _, failed, err := (&Rehearsals{}).withImage(t.Context(), change.Row{}, offer, candidate{})
	if want := "has 257 MiB, and at most 256 MiB are taken"; err != nil || failed == nil || failed.OK || failed.Command != imageCommand || !strings.Contains(failed.Why, want) {
		t.Errorf("%+v, %v", failed, err)
	}
}

// TestOfWhatABuildLeavesThePathAloneIsTaken: all else of it may be anything.
func TestOfWhatABuildLeavesThePathAloneIsTaken(t *testing.T) {
	usual, long := strings.Join(session.UsualPath(), ":"), "/"+strings.Repeat("a", 300)
	for name, try := range map[string]struct{ left, path string }{
		"one of its own":       {"A=b\nPATH=/opt/x/bin:" + usual + "\nPATH=/other\n", "/opt/x/bin:" + usual},
		"the usual one":        {"PATH=" + usual + "\n", ""},
		"none":                 {"A=PATH=/x\n", ""},
		"what is no folder":    {"PATH=:.:bin:/a/../b:/c/:/d\x1b[2J:" + long + ":/e", "/e"},
		"more than are taken":  {"PATH=" + strings.Repeat("/a:", 60), strings.TrimSuffix(strings.Repeat("/a:", 50), ":")},
		"more than is read":    {strings.Repeat("A=b\n", 20000) + "PATH=/late\n", ""},
		"a link to the host's": {"->", ""},
		"nothing":              {"-", ""},
	} {
		at := filepath.Join(t.TempDir(), "env")
		var err error
		switch try.left {
		case "-":
		case "->":
			err = errors.Join(os.WriteFile(at+"-host", []byte("PATH=/host\n"), 0o600), os.Symlink(at+"-host", at))
		default:
			err = os.WriteFile(at, []byte(try.left), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := pathIn(at); got != try.path {
			t.Errorf("%s: %q, not %q", name, got, try.path)
		}
	}
}
