package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

// newRepositoryCommand builds a verb of target: it is about one repository.
func newRepositoryCommand(a *app, use, brief, long, example string, run func(ctx context.Context, c *client.Client, dir string) error) *cobra.Command {
	var repo string
	cmd := a.cmd(use, brief, long, example, exactly(), func(cmd *cobra.Command, _ []string) error {
		dir, err := a.here(repo)
		if err != nil {
			return err
		}
		c, err := a.connect(cmd.Context())
		if err != nil {
			return err
		}
		return run(cmd.Context(), c, dir)
	})
	cmd.Flags().StringVar(&repo, "repo", "", "`DIR` inside the repository (default: where you stand)")
	return cmd
}

func newTargetShowCommand(a *app) *cobra.Command {
	return newRepositoryCommand(a, "show [--repo DIR]", "show how a repository's code is restarted and probed once a change has landed",
		`Shows how the code of a repository is restarted, and how it is probed, when a change has landed. It
shows what the home's sallyport.yaml says, what the repository's own .sallyport.yaml proposes at its
HEAD, and which of the two counts. Nothing is run.

The commands run on this machine, outside of every sandbox. So what a repository proposes runs only
once you have trusted exactly these words: "sallyport target trust". Words are shown as a shell
would read them: a line break as \n, a hidden character by its number.`,
		"  sallyport target show\n  sallyport target show --repo ~/app --json",
		func(ctx context.Context, c *client.Client, dir string) error {
			return tell(ctx, a, c, api.TargetShow, api.InRepo{Repo: dir}, func(s sheet, t api.Target) {
				printTarget(a, t)
				if t.Home == nil && t.Proposed != nil && !t.Trusted {
					s.line("") // in one piece, however narrow the terminal: it is to be pasted
					s.line("trust exactly this: %s", a.command("sallyport target trust --repo "+inert.Path(t.Repo)+" --digest "+t.Proposed.Digest))
				}
			})
		})
}

func newTargetTrustCommand(a *app) *cobra.Command {
	digest := ""
	cmd := newRepositoryCommand(a, "trust [--repo DIR] [--digest HEX]", "let the commands that a repository proposes run on this machine",
		`Shows every word that the repository's .sallyport.yaml proposes at its HEAD and, at a terminal, asks
whether to trust exactly these. Elsewhere --digest says which words you have read. Once trusted, the
commands run on this machine when a change lands, outside of every sandbox. Nothing is run now.

If one character or number differs later, the words are not trusted. A change cannot bring its own:
the words from before it count.

Exit status: 0 when they are trusted, 4 when you said no.`,
		"  sallyport target trust\n  sallyport target trust --repo ~/app --digest 4f0c2a91be774f0c2a91be774f0c2a91",
		func(ctx context.Context, c *client.Client, dir string) error {
			return trustTarget(ctx, a, c, dir, digest)
		})
	cmd.Flags().StringVar(&digest, "digest", "", "`HEX` of the words that you have read, as target show shows it; at least 32 digits")
	return cmd
}

func newTargetDistrustCommand(a *app) *cobra.Command {
	return newRepositoryCommand(a, "distrust [--repo DIR]", "run nothing more that a repository proposes",
		`Takes back the trust that "sallyport target trust" gave: from now on nothing that the repository
proposes is run. A change that is on trial already keeps the target that it began with.`,
		`  sallyport target distrust
  sallyport target distrust --repo ~/app`,
		func(ctx context.Context, c *client.Client, dir string) error {
			if err := client.Do(ctx, c, api.TargetDistrust, api.InRepo{Repo: dir}); err != nil {
				return err
			}
			return answer(a, struct{}{}, "nothing that %s proposes is trusted any more", inert.Path(dir))
		})
}

// trustTarget takes the owner's word on what is proposed: by digest, or by asking with every word on the screen.
func trustTarget(ctx context.Context, a *app, c *client.Client, dir, digest string) error {
	t, err := client.Call(ctx, c, api.TargetShow, api.InRepo{Repo: dir})
	if err != nil {
		return err
	}
	show := "sallyport target show --repo " + inert.Path(t.Repo)
	switch {
	case t.Proposed == nil:
		return problem.Errorf(problem.NotFound, show, "%q proposes no target at %s", t.Repo, short(t.Commit))
	case digest != "", t.Home != nil, t.Trusted:
	case !a.interactive() || a.json:
		return problem.Errorf(problem.Usage, show, "nobody can be asked here: name the words that were read by --digest")
	}
	if digest == "" {
		digest = t.Proposed.Digest
		if t.Home == nil && !t.Trusted {
			printTarget(a, t)
			if yes, err := askTrust(a); err != nil || !yes {
				return err
			}
		}
	}
	if t, err = client.Call(ctx, c, api.TargetTrust, api.TrustTarget{Repo: dir, Digest: digest}); err != nil || a.document(t) {
		return err
	}
	a.sheet(a.Out).line("trusted: %s", t.Proposed.Digest)
	return nil
}

// askTrust asks whether to trust what was shown; silence and any other word are a no.
func askTrust(a *app) (bool, error) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGINT)
	defer signal.Stop(signals)
	word, err := a.prompt("[t]rust exactly these words, to be run on this machine, or [n]o? ", signals)
	if err == nil {
		switch strings.ToLower(strings.TrimSpace(word)) {
		case "t", "trust", "yes":
			return true, nil
		}
	} else {
		fmt.Fprintln(a.Err)
	}
	fmt.Fprintln(a.Err, "nothing was trusted: only the answer t, trust or yes does that")
	return false, exit(exitRefused)
}

// printTarget shows all that is said of a repository's target.
func printTarget(a *app, t api.Target) {
	s := a.sheet(a.Out)
	s.name("", "", inert.Path(t.Repo))
	if t.Home != nil {
		s.line("")
		s.line("%s, as the home's sallyport.yaml says:", s.green("counts"))
		printTargetWords(s, *t.Home)
	}
	if p := t.Proposed; p != nil {
		s.line("")
		how := s.yellow("not trusted, so it is not run")
		switch {
		case t.Trusted && t.Home != nil:
			how = "trusted, and the home's word counts instead"
		case t.Trusted:
			how = s.green("counts") + ", trusted"
		case t.Home != nil:
			how = "does not count"
		}
		s.line("proposed by the repository at %s: %s", short(t.Commit), how)
		printTargetWords(s, *p)
		s.line("  digest  %s", p.Digest)
	}
	if t.Home == nil && t.Proposed == nil {
		s.line("")
		s.line("no target at %s: nothing is restarted or probed when a change has landed", short(t.Commit))
	}
	if tr := t.Trust; tr != nil {
		s.line("")
		what := "these words"
		if !t.Trusted {
			what = "other words (digest " + short(tr.Digest) + ")"
		}
		s.line("%s were trusted by %s, %s", what, inert.Line(tr.By.Name), ago(tr.At, s.now))
	}
}

// printTargetWords shows every word and number of a target, those that are left out with their defaults.
func printTargetWords(s sheet, w api.TargetWords) {
	word := func(label, text string) {
		first := fmt.Sprintf("  %-9s ", label)
		for part := range strings.SplitAfterSeq(text, "\n") { // exactly, as a shell reads it: words in a row are one
			if part != "" {
				s.name(first, strings.Repeat(" ", 14), inert.Path(part))
				first = strings.Repeat(" ", 12)
			}
		}
	}
	length := func(label string, ms int64, key string) {
		note := ""
		if slices.Contains(w.Defaults, key) {
			note = " (default)"
		}
		s.line("    %-9s %s%s", label, time.Duration(ms)*time.Millisecond, note)
	}
	if w.Restart == "" {
		s.line("  restart   nothing")
	} else {
		word("restart", w.Restart)
		length("within", w.RestartWithinMS, "restart_within")
	}
	if p := w.Probe; p == nil {
		s.line("  probe     nothing")
	} else {
		if p.Command != "" {
			word("probe", p.Command)
		}
		if p.HTTP != "" {
			word("probe GET", p.HTTP)
		}
		length("healthy", p.HealthyMS, "probe.healthy")
		length("within", p.WithinMS, "probe.within")
		length("every", p.EveryMS, "probe.every")
		length("timeout", p.TimeoutMS, "probe.timeout")
	}
	if w.TrialMS == 0 {
		s.line("  trial     none: nobody is asked to confirm")
	} else {
		s.line("  trial     %s to confirm", time.Duration(w.TrialMS)*time.Millisecond)
	}
}
