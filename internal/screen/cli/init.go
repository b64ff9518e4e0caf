package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/port/agent"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/rule/config"
)

const initLong = `Writes a .sallyport.yaml at the top of the repository, the rules for its changes. It says which
agent "sallyport run" uses here when you name none, and what becomes of work that breaks a rule.
Everything else that can be said there is commented out, with its default. The file counts once it
is committed. No other file is touched.

At a terminal it asks. With --yes, --agent or --strategy, and without a terminal, it takes the
defaults: the first agent that is installed and whose key is in your environment, and
direct_worktree. A file that is there already is left as it is; --force shows the difference and
replaces it.

Then it says whether changes can be made in this repository as it stands, and what the repository's
own files say that does not count. "sallyport doctor" says that again. The last lines are the
commands to run next.

With HOME it makes a home instead: a git repository with the configuration, the template that new
groups are copied from, and the group echo, whose agent needs no account. With --agent, or if you
choose one at a terminal, a second group gets that agent. Nothing that is there is overwritten; an
older home gets what it lacks. With --source it also gets the source of its host, which an agent can
then be asked to change: see docs/host.md.`

// initFlags are the words of init.
type initFlags struct {
	repo, agent, strategy, source string
	yes, force                    bool
}

func newInitCommand(a *app) *cobra.Command {
	var f initFlags
	cmd := a.cmd("init [HOME] [flags]", "write the rules of a repository, or make a home with groups", initLong,
		`  sallyport init
  sallyport init --yes
  sallyport init --agent codex --strategy shadow_workspace
  sallyport init ~/assistants
  sallyport init ~/assistants --agent codex
  sallyport init ~/assistants --source ~/src/sallyport`,
		atMost("HOME"), func(cmd *cobra.Command, words []string) error {
			if len(words) == 1 {
				return initHome(a, cmd, f, words[0])
			}
			if f.source != "" {
				return problem.Errorf(problem.Usage, "sallyport init --help", "--source is for a HOME: say which one")
			}
			return writeRules(a, cmd, f)
		})
	cmd.Flags().StringVar(&f.repo, "repo", "", "`DIR` inside the repository (default: where you stand)")
	cmd.Flags().StringVar(&f.agent, "agent", "", "the agent for this repository, or of a second group of HOME: `NAME`, or none")
	cmd.Flags().StringVar(&f.strategy, "strategy", "",
		"what becomes of work that breaks a rule: `NAME`, direct_worktree (it stays, and the agent corrects it) or shadow_workspace (everything returns to the last valid checkpoint)")
	cmd.Flags().StringVar(&f.source, "source", "", "of HOME: take what is committed in `DIR`, a clone of sallyport, as the source of its host, below src")
	cmd.Flags().BoolVar(&f.yes, "yes", false, "ask nothing, and take the defaults where no flag says otherwise")
	cmd.Flags().BoolVar(&f.force, "force", false, "replace a file that is there already, after showing the difference")
	return cmd
}

func writeRules(a *app, cmd *cobra.Command, f initFlags) error {
	const next = "sallyport init --help"
	if f.agent != "" && f.agent != noAgent && !slices.Contains(agent.Names(), f.agent) {
		return problem.Errorf(problem.Usage, "sallyport agent list",
			"--agent %q is not one of %s, or none; a repository cannot name a command", f.agent, strings.Join(agent.Names(), ", "))
	}
	if f.strategy != "" && !slices.Contains(strategies, f.strategy) {
		return problem.Errorf(problem.Usage, next, "--strategy %q is none of %s", f.strategy, strings.Join(strategies, ", "))
	}
	dir, err := a.here(f.repo)
	if err != nil {
		return err
	}
	root, err := repositoryTop(dir)
	if err != nil {
		return err
	}
	name := filepath.Join(root, config.RepositoryFile)
	before, there, err := standing(name)
	if err != nil {
		return err
	}
	if there && !f.force {
		return problem.Errorf(problem.Conflict, "sallyport init --force",
			"there is a %s in %s already; --force shows the difference and replaces it", config.RepositoryFile, inert.Path(root))
	}
	choice, err := chooseRules(a, f, surveyAgents(a.Getenv, root))
	if err != nil {
		return err
	}
	text := config.RepositoryText(choice.agent, choice.strategy)
	if there && string(before) == text {
		return reportRules(cmd.Context(), a, root, choice, "says exactly this already")
	}
	if there && !a.json {
		printDifference(a.sheet(a.Err), string(before), text)
	}
	if err := writeFile(name, text, there); err != nil {
		return err
	}
	return reportRules(cmd.Context(), a, root, choice, "written")
}

// repositoryTop finds the work tree that a folder lies in.
func repositoryTop(dir string) (string, error) {
	root, err := top(dir)
	if problem.KindOf(err) == problem.NotFound {
		return "", problem.Errorf(problem.Usage, "git init "+inert.Path(dir),
			"%q is in no git repository, and a %s belongs at the top of one", dir, config.RepositoryFile)
	}
	return root, err
}

// standing reads the file that is there. What is no ordinary file is not touched.
func standing(name string) (text []byte, there bool, err error) {
	info, err := os.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err == nil && !info.Mode().IsRegular() {
		return nil, true, problem.Errorf(problem.Refused, "ls -l "+inert.Path(name), "%s is not an ordinary file; it is left as it is", inert.Path(name))
	}
	if err == nil && info.Size() > config.FileBytesMax {
		return nil, true, problem.Errorf(problem.Refused, "ls -l "+inert.Path(name),
			"%s has %d bytes, and at most %d are read; it is left as it is", inert.Path(name), info.Size(), config.FileBytesMax)
	}
	if err == nil {
		text, err = os.ReadFile(name)
	}
	if err != nil {
		return nil, true, problem.Errorf(problem.Unavailable, "ls -l "+inert.Path(name), "read what is there: %w", err)
	}
	return text, true, nil
}

// noAgent leaves the agent to who runs.
const noAgent = "none"

// candidate is an agent as this person has it.
type candidate struct {
	agent.Known
	installed bool
	key       string // variable in which its key is
}

// surveyAgents looks which agents are here; it starts none.
func surveyAgents(getenv func(string) string, root string) []candidate {
	person := sandbox.Person{Path: getenv("PATH"), Home: getenv("HOME"), Top: root}
	var all []candidate
	for _, k := range agent.Table() {
		if k.Talks { // it would change nothing
			continue
		}
		c := candidate{Known: k, installed: len(k.Programs) == 0}
		for _, p := range k.Programs {
			if _, err := person.Find(p, root); err == nil {
				c.installed = true
			}
		}
		for _, name := range k.KeyNames() {
			if c.key == "" && getenv(name) != "" {
				c.key = name
			}
		}
		all = append(all, c)
	}
	return all
}

// likely is the agent that is taken when nobody chooses: installed, with a key; else one that is installed; else none.
func likely(all []candidate) string {
	for _, c := range all {
		if c.installed && c.key != "" {
			return c.Name
		}
	}
	for _, c := range all {
		if c.installed && len(c.Programs) > 0 {
			return c.Name
		}
	}
	return noAgent
}

// chosenFile is what goes into the file; "" is left to the default.
type chosenFile struct{ agent, strategy string }

// chooseRules takes flags, asks a person for what they leave open, or takes the default.
func chooseRules(a *app, f initFlags, all []candidate) (chosenFile, error) {
	ask := a.interactive() && !a.json && !f.yes
	c := chosenFile{agent: f.agent, strategy: f.strategy}
	var err error
	if c.agent == "" {
		c.agent = likely(all)
		if ask {
			c.agent, err = pickOption(a, "which agent shall work on this repository?", c.agent, agentChoices(all))
		}
	}
	if err == nil && c.strategy == "" && ask {
		c.strategy, err = pickOption(a, "what shall become of files that break a rule while it works?", strategies[0], []option{
			{strategies[0], "they stay, and the agent is told to correct them"},
			{strategies[1], "everything returns to the last state that broke none, and the agent is told"},
		})
	}
	if c.agent == noAgent {
		c.agent = ""
	}
	return c, err
}

func agentChoices(all []candidate) []option {
	var out []option
	for _, c := range all {
		state := "not installed"
		switch {
		case c.installed && c.key != "":
			state = "here, key in $" + c.key
		case c.installed:
			state = "here, no key in " + "$" + strings.Join(c.KeyNames(), " or $")
		}
		out = append(out, option{c.Name, c.Title + ": " + state})
	}
	return append(out, option{noAgent, "name an agent or a command at each run"})
}

// option is one answer of a few.
type option struct{ word, meaning string }

// pickOption asks until an answer is one of the options, by number or word; nothing is the usual one.
func pickOption(a *app, question, usual string, options []option) (string, error) {
	s := a.sheet(a.Err)
	s.line("%s", s.bold(question))
	for i, o := range options {
		mark := " "
		if o.word == usual {
			mark = "*"
		}
		s.line(" %s %d  %-16s %s", mark, i+1, o.word, s.dim(o.meaning))
	}
	for {
		word, err := a.prompt(fmt.Sprintf("number or name [%s]: ", usual), nil)
		if err != nil {
			fmt.Fprintln(a.Err)
			return "", problem.Errorf(problem.Usage, "sallyport init --yes", "nothing was chosen, so nothing was written")
		}
		word = strings.TrimSpace(word)
		if word == "" {
			return usual, nil
		}
		if n, err := strconv.Atoi(word); err == nil && n >= 1 && n <= len(options) {
			return options[n-1].word, nil
		}
		if slices.ContainsFunc(options, func(o option) bool { return o.word == word }) {
			return word, nil
		}
		fmt.Fprintf(a.Err, "there is no %s; answer with a number from 1 to %d, or a name\n", inert.Line(word), len(options))
	}
}

// reportRules says what the file says, what a first run would meet, and what to do now.
func reportRules(ctx context.Context, a *app, root string, c chosenFile, what string) error {
	odd := foresee(ctx, a, root)
	if a.document(map[string]any{"path": filepath.Join(root, config.RepositoryFile), "agent": c.agent, "strategy": c.strategy, "checks": odd}) {
		return nil
	}
	s := a.sheet(a.Out)
	s.line("%s %s", inert.Path(filepath.Join(root, config.RepositoryFile)), what)
	who := "--agent NAME "
	if c.agent != "" {
		s.line("  agent:    %s", c.agent)
		who = ""
	}
	if c.strategy != "" {
		s.line("  strategy: %s", c.strategy)
	}
	printCheckLines(a, s, odd)
	s.line("next:")
	git := "git -C " + inert.Path(root)
	step := func(command, why string) { s.line("  %-60s %s", command, s.dim("# "+why)) }
	step(git+" add "+config.RepositoryFile+" && "+git+" commit -m 'Say how changes are made'", "it counts from the commit on")
	if c.agent == "" {
		step(a.command("sallyport agent list"), "which agents there are")
	} else {
		step(a.command("sallyport agent test "+c.agent), "does it work?")
	}
	step(a.command("sallyport run "+who+`"…"`), "in words, what you want")
	return nil
}
