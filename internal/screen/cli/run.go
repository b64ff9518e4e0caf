package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
	"sallyport/internal/rule/config"
)

const runLong = `Lets an agent, or any COMMAND, work on a copy of the repository, in a sandbox. The result is checked
and shown to you as a card. It lands on the branch once you have approved exactly that. If you
refuse, your files are as they were.

--agent names the agent: codex, claude, codex-acp, gemini, opencode, qwen, pi, api, or 'acp:CMD' for
any other one that speaks ACP. Without it and without a COMMAND the repository's .sallyport.yaml
names the agent. "sallyport agent list" says under which name the key of its model is read from your
environment. The key is added outside the sandbox to what goes to the model, and is kept nowhere.

An agent whose work breaks a rule or fails a check is told so and tries again, five times in all.
After three checkpoints in a row that break a rule it is stopped and waits for you.

The copy starts from the last commit of the branch. Your uncommitted work is not in it, unless you
say --include-dirty, and is not touched. The sandbox reaches no network but its model and what
--egress names. Your home folder is not in it. Of the machine it sees only /usr, the agent's own
install folder and what --share names. It may read the module caches of the project's kind, which a
go.mod, a package.json, a pyproject.toml or --profile names.

--approve ask shows the card here and asks; that is the default at a terminal. --approve later
leaves the change waiting, with exit status 3; that is the default elsewhere. --approve yes approves
beforehand, and the commit says so. --message is the commit's message, as with approve.

--onto NAME lands on another branch than the one it starts from, which may be new. No file that is
checked out changes, and a pull request can be made of that branch.

--trial 2m puts what has landed on trial. The repository's target, if it has one, restarts and is
probed. Then "sallyport confirm" keeps the change. If you run "sallyport rollback", or nobody
confirms in time, sallyport rolls it back: the old files return, and the old version runs again. A
target that does not answer is rolled back at once. Without --trial the target decides. --trial 0
asks nobody, but what does not answer is still rolled back.

Ctrl-C asks whether to cancel the change or to leave it running; closing the terminal leaves it
running. Next: "sallyport change watch" shows it again, "sallyport status" what waits for you.`

// runFlags are the words of run.
type runFlags struct {
	repo, replay, approve string
	plan                  string
	timeout, trial        time.Duration
	output                bool
	request               api.Run
}

func newRunCommand(a *app) *cobra.Command {
	var f runFlags
	cmd := a.cmd("run [flags] REQUEST | run --request TEXT [flags] -- COMMAND [ARG…]",
		"let an agent or a program work on a copy, and land what you approve", runLong,
		`  sallyport run --agent codex "make the tests pass" --check "go test ./..."
  sallyport run --agent api --model claude-sonnet-4-5 --egress registries "update the dependencies"
  sallyport run --agent 'acp:my-agent --acp' --egress docs.example.org "explain the parser in its README"
  sallyport run --request "make the test pass" --check "go test ./..." -- my-agent --fix
  sallyport run --request "format" --allow "**/*.go" --approve yes -- gofmt -w .
  sallyport run --request "replace" --include-dirty --timeout 5m -- sh -c 'sed -i s/a/b/ *.txt'
  sallyport run --request "tidy src" --plan plan.yaml --strategy shadow_workspace --messages -- my-agent
  sallyport run --request "serve it faster" --trial 2m -- my-agent
  sallyport run --request "play a script" --replay script.yaml`,
		nil, func(cmd *cobra.Command, args []string) error { return runChange(a, cmd, &f, args) })
	flags := cmd.Flags()
	flags.SetInterspersed(false) // COMMAND's own flags are not ours, also when -- was forgotten
	flags.StringVar(&f.request.Agent, "agent", "", "who does it: `NAME` (see sallyport agent list), or 'acp:CMD' (default: as the repository says)")
	flags.StringVar(&f.request.Model, "model", "",
		"ask this model, by the name that its endpoint knows: `NAME` (default: as the home says, or the agent itself)")
	flags.StringArrayVar(&f.request.Egress, "egress", nil,
		"`HOST` that the agent may reach; *.HOST for all below it; registries for where packages come from; repeatable")
	flags.StringVar(&f.repo, "repo", "", "`DIR` inside the repository (default: where you stand)")
	flags.StringVar(&f.request.Text, "request", "", "what you want, in words: `TEXT`")
	flags.StringArrayVar(&f.request.Allow, "allow", nil, "`GLOB` of paths that may change; repeatable (default: all)")
	flags.StringArrayVar(&f.request.Forbid, "forbid", nil, "`GLOB` of paths that may not change; repeatable")
	flags.StringArrayVar(&f.request.Checks, "check", nil, "shell `COMMAND` that must succeed on the proposed tree, in a sandbox; repeatable")
	flags.StringArrayVar(&f.request.Setup, "setup", nil,
		"shell `COMMAND` that installs what the project needs, such as 'npm ci'; it runs in a sandbox that reaches package registries, once for each lock file; agent and checks find what it leaves at paths that git ignores, and in the caches of Go, pip, Cargo, Maven, Gradle, NuGet, Composer and ~/.cache, but nothing else of its home folder; repeatable")
	flags.StringArrayVar(&f.request.Shares, "share", nil, "`DIR` that the program may read; repeatable")
	flags.StringArrayVar(&f.request.Profiles, "profile", nil, "tool chain `NAME` whose module cache the program may read: go, node, python; repeatable")
	flags.BoolVar(&f.request.IncludeDirty, "include-dirty", false, "take your uncommitted changes along into the copy")
	flags.StringArrayVar(&f.request.IncludeIgnored, "include-ignored", nil, "`GLOB` of paths that git ignores and that may land too; repeatable")
	flags.StringVar(&f.request.Branch, "branch", "", "branch `NAME` to start from and land on (default: the one checked out)")
	flags.StringVar(&f.request.Onto, "onto", "", "land on branch `NAME` instead, which is not checked out; a new one is made from the branch that the change starts from")
	flags.StringVarP(&f.request.Message, "message", "m", "", "commit with this message: `TEXT`; its first line is the subject (default: the request)")
	flags.StringVar(&f.approve, "approve", "", "what to do with the finished work: `MODE`, ask (show it and ask), yes (land it if rules and checks pass and nothing is marked) or later (leave it waiting)")
	flags.DurationVar(&f.timeout, "timeout", 0, "how long the program may take, such as 90s or 2h: `DURATION` (default 1h, at most 24h)")
	flags.DurationVar(&f.trial, "trial", 0, "how long a person has to confirm what has landed, 10s to 10m: `DURATION`; 0 asks nobody (default: as the target says)")
	flags.StringVar(&f.replay, "replay", "", "play the YAML script in `FILE` instead of running COMMAND, as the demo does")
	flags.StringVar(&f.request.Strategy, "strategy", "",
		"what becomes of work that breaks a rule: `NAME`, direct_worktree (it stays, and the agent corrects it) or shadow_workspace (everything returns to the last valid checkpoint); default: as the rules say")
	flags.BoolVar(&f.request.Messages, "messages", false,
		"COMMAND reads messages, one JSON object a line, on its standard input, and may answer (docs/protocol.md)")
	flags.StringVar(&f.plan, "plan", "", "read allowed_areas and forbidden_areas of this change from a YAML `FILE`; --forbid adds to it")
	flags.StringVar(&f.request.ExecutionMode, "execution-mode", "", "`MODE`: interactive is the only one for an agent or a COMMAND; deterministic is refused")
	flags.BoolVar(&f.output, "output", false, "show the program's output while it works")
	return cmd
}

func runChange(a *app, cmd *cobra.Command, f *runFlags, args []string) error {
	err := f.complete(a, cmd, args)
	if help := cmd.Flags().Lookup("help"); help != nil && help.Value.String() == "true" { // behind the request
		return cmd.Help()
	}
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	c, err := a.connect(ctx)
	if err != nil {
		return err
	}
	if err := f.nameAgent(ctx, a.Getenv, c); err != nil {
		return err
	}
	change, err := client.Call(ctx, c, api.ChangeRun, f.request)
	if err != nil {
		return err
	}
	reportAccepted(a, change)
	noteUnloaded(ctx, a, c)
	return followThrough(ctx, a, c, change.ID, mannerOf(a.Program, f.request.Approve, f.output))
}

// complete checks the words and fills in what the person's surroundings say.
func (f *runFlags) complete(a *app, cmd *cobra.Command, args []string) error {
	args, err := f.takeRequest(a, cmd, args)
	if err != nil {
		return err
	}
	if strings.TrimSpace(f.request.Text) == "" {
		return problem.Errorf(problem.Usage, "sallyport run --help", `say what you want: sallyport run --agent NAME "…", or --request "…" with a COMMAND`)
	}
	if f.timeout < 0 || f.timeout == 0 && cmd.Flags().Changed("timeout") {
		return problem.Errorf(problem.Usage, "sallyport run --help", "--timeout %s leaves no time to work in", f.timeout)
	}
	if f.request.Approve, err = approveMode(a, f.approve); err != nil {
		return err
	}
	if err := f.agent(args); err != nil {
		return err
	}
	if err := f.supervised(); err != nil {
		return err
	}
	dir, err := a.Dir()
	if err != nil {
		return fmt.Errorf("find where you stand: %w", err)
	}
	f.request.Dir = within(dir, f.repo)
	if err := f.planned(dir); err != nil {
		return err
	}
	for i, share := range f.request.Shares {
		f.request.Shares[i] = within(dir, share)
	}
	f.request.TimeoutMS = onTheWire(f.timeout)
	if cmd.Flags().Changed("trial") {
		ms := onTheWire(f.trial)
		f.request.TrialMS = &ms
	}
	f.request.Path, f.request.Home = a.Getenv("PATH"), a.Getenv("HOME")
	return nil
}

// onTheWire is a length of time as it crosses the socket; a short one does not become none.
func onTheWire(d time.Duration) int64 {
	if ms := d.Milliseconds(); ms != 0 || d == 0 {
		return ms
	}
	return 1
}

// takeRequest takes the request that stands on the line as it is, with the flags behind it, and returns COMMAND: what stands behind --.
func (f *runFlags) takeRequest(a *app, cmd *cobra.Command, args []string) (command []string, err error) {
	flags := cmd.Flags()
	if len(args) == 0 || flags.ArgsLenAtDash() == 0 {
		return args, nil
	}
	if flags.Changed("request") {
		if f.request.Agent == "" && f.replay == "" {
			return nil, problem.Errorf(problem.Usage, correctedLine(a, args), "put -- before the command %q, so that its flags are its own", args[0])
		}
		return nil, problem.Errorf(problem.Usage, "sallyport run --help",
			"--request says what you want, and %q is on the line too; give one of the two", args[0])
	}
	f.request.Text = args[0]
	if err := flags.Parse(args[1:]); err != nil {
		return nil, problem.Errorf(problem.Usage, "sallyport run --help", "%s (a COMMAND comes after --, and what you want before it in --request)", plain(err))
	}
	if err := given(cmd, flags.Args()); err != nil {
		return nil, err
	}
	rest, dash := flags.Args(), flags.ArgsLenAtDash()
	switch {
	case len(rest) > 0 && dash != 0:
		if at := slices.IndexFunc(rest, func(w string) bool { return strings.HasPrefix(w, "-") }); at >= 0 {
			rest = rest[:at]
		}
		words := append([]string{f.request.Text}, rest...)
		return nil, problem.Errorf(problem.Usage, "sallyport run --help",
			"what you want is more than one word; put all of it in quotes: %q", strings.Join(words, " "))
	case dash == 0:
		return rest, nil
	}
	return nil, nil
}

// nameAgent finds who does it, when no COMMAND and no script does, and takes the key of its model along.
func (f *runFlags) nameAgent(ctx context.Context, getenv func(string) string, c *client.Client) error {
	if f.request.Agent == "command" || f.request.Agent == "replay" {
		return nil
	}
	w, err := client.Call(ctx, c, api.KeyWanted, api.WhoWants{Agent: f.request.Agent, Dir: f.request.Dir, Branch: f.request.Branch})
	if err != nil {
		return err
	}
	f.request.Agent, f.request.Keys, f.request.Bases, f.request.Env = w.Agent, keysFrom(getenv, w), basesFrom(getenv, w), envFrom(getenv, w)
	return nil
}

// agent takes COMMAND, or the script that stands in for it.
func (f *runFlags) agent(args []string) error {
	switch {
	case f.request.Agent != "" && (f.replay != "" || len(args) > 0):
		return problem.Errorf(problem.Usage, "sallyport run --help",
			"--agent %q and a COMMAND or --replay cannot be used together; give one of them", f.request.Agent)
	case f.replay == "" && len(args) == 0:
		return nil // the one that is named, or the repository's own
	case f.replay != "" && len(args) > 0:
		return problem.Errorf(problem.Usage, "sallyport run --help",
			"--replay %q and the COMMAND %q cannot be used together; give one of them", f.replay, args[0])
	case f.replay == "":
		f.request.Agent, f.request.Argv = "command", args
		return nil
	}
	script, err := readScript(f.replay)
	if err != nil {
		return problem.Errorf(problem.Usage, "sallyport run --help", "read --replay %q: %w", f.replay, err)
	}
	f.request.Agent, f.request.Script = "replay", script
	return nil
}

// supervised checks how the program is to be watched.
func (f *runFlags) supervised() error {
	const next = "sallyport run --help"
	if s := f.request.Strategy; s != "" && s != "direct_worktree" && s != "shadow_workspace" {
		return problem.Errorf(problem.Usage, next, "--strategy %q is none of direct_worktree, shadow_workspace", s)
	}
	if f.request.Messages && f.replay != "" {
		return problem.Errorf(problem.Usage, next, "--messages is for a COMMAND; the script %q reads no messages", f.replay)
	}
	if f.request.Model != "" && (f.request.Agent == "command" || f.request.Agent == "replay") {
		return problem.Errorf(problem.Usage, next, "--model %q is for an agent with a name (--agent); a COMMAND has its own flags", f.request.Model)
	}
	if f.request.Messages && f.request.Agent != "command" {
		return problem.Errorf(problem.Usage, next, "--messages is for a COMMAND; an agent with a name reads messages without it")
	}
	return executionMode(f.request.ExecutionMode, next)
}

// planned joins the plan's file with the flags. Two lists of what may change have no plain
// meaning together, so one is wanted; two lists of what may not change add up.
func (f *runFlags) planned(dir string) error {
	if f.plan == "" {
		return nil
	}
	plan, err := config.LoadPlan(within(dir, f.plan))
	if err != nil {
		return err
	}
	if len(plan.AllowedAreas) > 0 && len(f.request.Allow) > 0 {
		return problem.Errorf(problem.Usage, "sallyport run --help",
			"--allow and the allowed_areas of --plan %q both say what may change; give one of them", f.plan)
	}
	f.request.Allow = append(f.request.Allow, config.Strings(plan.AllowedAreas)...)
	f.request.Forbid = append(f.request.Forbid, config.Strings(plan.ForbiddenAreas)...)
	return nil
}

// readScript reads a script of at most what the daemon takes.
func readScript(path string) ([]byte, error) {
	const most = 1 << 20
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close() // read only
	script, err := io.ReadAll(io.LimitReader(file, most+1))
	if err == nil && len(script) > most {
		err = fmt.Errorf("it is larger than %s", size(most))
	}
	if err == nil && len(script) == 0 {
		err = errors.New("it is empty")
	}
	return script, err
}

// correctedLine is the command with -- in front of its first word that is no flag.
func correctedLine(a *app, args []string) string {
	words := a.words
	at := len(words) - len(args)
	if at < 0 || !slices.Equal(words[at:], args) {
		return "sallyport run --help"
	}
	quoted := []string{"sallyport"}
	for i, w := range words {
		if i == at {
			quoted = append(quoted, "--")
		}
		quoted = append(quoted, inert.Word(w))
	}
	return strings.Join(quoted, " ")
}
