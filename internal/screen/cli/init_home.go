package cli

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
	"sallyport/internal/port/rehearsal"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/rule/config"
)

// madeHome is what init answers of a home in JSON.
type madeHome struct {
	Home   string      `json:"home"`
	Made   bool        `json:"made"`             // it was not there before
	Added  []string    `json:"added"`            // groups that are new
	Change *api.Change `json:"change"`           // that brought what an older home lacked
	Source string      `json:"source,omitempty"` // commit whose files are below src now
	Groups []api.Group `json:"groups"`
	Lacks  []string    `json:"lacks,omitempty"` // what keeps a new group from answering, or its source from being built
	Next   string      `json:"next"`
}

// initHome makes a home with groups, or adds to one what it lacks. What is there stays as it is.
func initHome(a *app, cmd *cobra.Command, f initFlags, word string) error {
	for _, name := range []string{"repo", "strategy", "force"} {
		if cmd.Flags().Changed(name) {
			return problem.Errorf(problem.Usage, "sallyport init --help",
				"--%s is for the rules of a repository, and %q names a home: leave one of them out", name, word)
		}
	}
	home, err := a.namedHome([]string{word})
	if err != nil {
		return err
	}
	out := madeHome{Home: home, Added: []string{}}
	if out.Made, err = fitForHome(home); err != nil {
		return err
	}
	ctx := cmd.Context()
	agent, err := chooseRunner(a, f, home, out.Made)
	if err != nil {
		return err
	}
	var source hostSource
	if f.source != "" {
		if source, err = findSource(ctx, a, f.source); err != nil {
			return err
		}
	}
	a.about(home)
	c, err := a.Connect(ctx, home, true)
	if err != nil {
		return err
	}
	if err := out.complete(ctx, a, c, f.yes); err != nil {
		return err
	}
	if f.source != "" {
		if err := source.take(ctx, a, home); err != nil {
			return err
		}
		out.Source = string(source.commit)
		out.lackToBuild(a)
	}
	if err := out.add(ctx, a, c, agent, f.yes); err != nil {
		return err
	}
	return out.report(a)
}

// fitForHome refuses a folder that holds something else, and says whether a home is still to be made there.
func fitForHome(home string) (fresh bool, err error) {
	entries, err := os.ReadDir(home)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return true, nil
	case err != nil:
		return false, problem.Errorf(problem.Unavailable, "ls -ld "+inert.Path(home), "read the folder of the home: %w", err)
	}
	has := func(name string) bool {
		return slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() == name })
	}
	switch {
	case has(".state") || has(config.SallyportFile):
		return !has(".git"), nil
	case has(".git"):
		return false, problem.Errorf(problem.Usage, "sallyport init --repo "+inert.Path(home),
			"%q is a git repository and no home of sallyport's; the rules of a repository are written without a HOME", home)
	case len(entries) > 0:
		return false, problem.Errorf(problem.Refused, "ls -a "+inert.Path(home),
			"%q holds files and is no home of sallyport's; name an empty folder, or one that is to be made", home)
	}
	return true, nil
}

// chooseRunner is the agent of a second group: the one of the flag, or a person's choice of those that are here; "" for none.
func chooseRunner(a *app, f initFlags, home string, fresh bool) (string, error) {
	here := slices.DeleteFunc(surveyAgents(a.Getenv, home), func(c candidate) bool { return !c.installed })
	switch {
	case f.agent == noAgent || f.agent == config.Echo:
		return "", nil
	case f.agent != "":
		if err := knownRunner(f.agent); err != nil {
			return "", err
		}
		if !slices.ContainsFunc(here, func(c candidate) bool { return c.Name == f.agent }) {
			return "", problem.Errorf(problem.NotFound, "sallyport agent list", "the agent %s is not installed here", f.agent)
		}
		return f.agent, nil
	case f.yes || !fresh || a.json || !a.interactive():
		return "", nil
	}
	options := agentChoices(here)
	for i, c := range here {
		options[i].meaning = c.Title + ": here, with a key from a file that sallyport.yaml names"
		if c.Login != nil {
			options[i].meaning += ", or its login"
		}
	}
	options[len(options)-1].meaning = "only the group echo, which needs no account"
	agent, err := pickOption(a, "which agent shall answer in a second group?", likely(here), options)
	if agent == noAgent {
		agent = ""
	}
	return agent, err
}

// complete brings what a home lacks that was made before there were groups.
func (m *madeHome) complete(ctx context.Context, a *app, c *client.Client, yes bool) error {
	begun, err := sayShown(a, yes, templateAsCommitted, "sallyport init --help", func(s api.Shown) (api.Begun, error) {
		return client.Call(ctx, c, api.HomeComplete, api.CompleteHome{User: a.userHome(), Shown: s})
	})
	if err != nil || begun.Change == nil {
		return err
	}
	d, err := settled(ctx, a, c, begun.Change.ID)
	m.Change = &d.Change
	return err
}

// lackToBuild looks whether a build of the source would find what it needs: a change of it would only fail long after it was asked for.
func (m *madeHome) lackToBuild(a *app) {
	p := sandbox.Person{Path: a.Getenv("PATH"), Home: a.Getenv("HOME"), Registries: config.Look(m.Home).Sallyport().Host.Build.Registries}
	if lack, fix := rehearsal.Unbuildable(p, filepath.Join(m.Home, config.SourceFolder), api.Modules()); lack != "" {
		m.Lacks = append(m.Lacks, "a change of the source cannot be built yet: "+lack+": "+fix)
	}
}

// add makes a group with an agent, unless there is one already, and lists what there is then.
func (m *madeHome) add(ctx context.Context, a *app, c *client.Client, agent string, yes bool) error {
	list := func() ([]api.Group, error) {
		all, err := client.Call(ctx, c, api.GroupList, api.OfUser{User: a.userHome()})
		return all.Groups, err
	}
	var err error
	if m.Groups, err = list(); err != nil {
		return err
	}
	if m.Made || m.Change != nil {
		for _, g := range m.Groups {
			m.Added = append(m.Added, g.Name)
		}
	}
	if agent == "" || slices.ContainsFunc(m.Groups, func(g api.Group) bool { return g.Agent == agent || g.Name == agent }) {
		return nil
	}
	if _, _, err := createGroup(ctx, a, c, agent, agent, yes); err != nil {
		return err
	}
	m.Added = append(m.Added, agent)
	if lack := lackOf(ctx, a.Program, c, agent); lack != "" {
		m.Lacks = append(m.Lacks, lack)
	}
	m.Groups, err = list()
	return err
}

// report says what was made, and the next command.
func (m *madeHome) report(a *app) error {
	m.Next = a.command("sallyport group list")
	if n := len(m.Added); n > 0 {
		m.Next = a.command("sallyport chat " + m.Added[n-1])
	} else if len(m.Groups) > 0 {
		m.Next = a.command("sallyport chat " + m.Groups[0].Name)
	}
	if a.document(m) {
		return nil
	}
	s := a.sheet(a.Out)
	what := "is a home and lacks nothing"
	switch {
	case m.Made:
		what = s.green("made") + ": a home, which is a git repository"
	case m.Change != nil:
		what = s.green("completed") + " by " + m.Change.ID + "; what was there is as it was"
	case len(m.Added) > 0:
		what = "has a new group"
	}
	s.line("%s %s", inert.Path(m.Home), what)
	if m.Source != "" {
		s.line("  source of the host in %s, as of commit %s", inert.Path(filepath.Join(m.Home, config.SourceFolder)), short(m.Source))
	}
	for _, g := range m.Groups {
		words := standingWords(s, g)
		if g.Agent == config.Echo {
			words[0] += ", which needs no account"
		}
		s.line("  group %-10s %s", g.Name, strings.Join(words, ", "))
	}
	for _, g := range m.Groups {
		if slices.Contains(m.Added, g.Name) {
			s.line("  its words: %s", inert.Path(filepath.Join(m.Home, "groups", g.Name, "AGENTS.md")))
		}
	}
	for _, lack := range m.Lacks {
		s.line("  %s %s", s.yellow("note:"), lack)
	}
	s.line("next: %s", m.Next)
	return nil
}
