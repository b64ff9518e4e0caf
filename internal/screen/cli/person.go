package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

const personLong = `A person is somebody whom the home knows: by their accounts, as the platforms authenticate them, and
never by a name that a platform shows. What a person may do, their roles say: global_admin of every
group, group_admin or member of one. A member talks and decides nothing. You, who made the home, are
its owner. PERSON is a name or an id (psn-1a2b3c4d).`

func newPersonListCommand(a *app) *cobra.Command {
	return a.remote("list", "list the people whom the home knows, their roles and accounts",
		`Lists the people whom the home knows, with the roles of each and the accounts by which platforms
know them. An account is PLATFORM:ACCOUNT; the platform "terminal" is this machine, and its account
a uid. "sallyport person show PERSON" says whether somebody is reached.`,
		"  sallyport person list\n  sallyport person list --json", exactly(), func(ctx context.Context, c *client.Client, _ []string) error {
			all, err := client.Call(ctx, c, api.PersonList, api.Nothing{})
			if err != nil || a.document(all) {
				return err
			}
			return table(a.Out, "PERSON\tNAME\tROLES\tACCOUNTS", all, func(t io.Writer, p api.Person) {
				var accounts []string
				for _, one := range p.Accounts {
					accounts = append(accounts, one.Identity)
				}
				fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", p.ID, inert.Line(p.Name), dash(roleList(p)), dash(strings.Join(accounts, ", ")))
			})
		})
}

// roleList has the roles of a person in one line.
func roleList(p api.Person) string {
	var all []string
	for _, r := range p.Roles {
		all = append(all, roleName(r))
	}
	return strings.Join(all, ", ")
}

func roleName(r api.Role) string {
	if r.Group == "" {
		return r.Role
	}
	return r.Role + " of " + r.Group
}

func newPersonShowCommand(a *app) *cobra.Command {
	return a.remote("show PERSON", "show somebody's roles and accounts, and whether a card reaches them",
		`Shows somebody whom the home knows: their roles, each of their accounts, and whether the assistant
reaches them by it. It reaches an account on a platform once that has written to it directly.`,
		"  sallyport person show ann\n  sallyport person show psn-1a2b3c4d --json", exactly("PERSON"),
		func(ctx context.Context, c *client.Client, words []string) error {
			return tell(ctx, a, c, api.PersonShow, words[0], printPerson)
		})
}

func printPerson(s sheet, p api.Person) {
	s.line("%s (%s)", s.bold(inert.Line(p.Name)), p.ID)
	s.line("  roles:    %s", dash(roleList(p)))
	for n, one := range p.Accounts {
		title := "          "
		if n == 0 {
			title = "accounts: "
		}
		label, reached := "", ", which has not written to the assistant directly yet"
		if one.Label != "" && one.Label != p.Name {
			label = " (" + inert.Line(one.Label) + ")"
		}
		if one.Direct {
			reached = ""
		}
		s.line("  %s%s%s%s", title, inert.Line(one.Identity), label, reached)
	}
	if len(p.Accounts) == 0 {
		s.line("  accounts: -")
	}
	if !p.Reachable {
		s.line("  no card comes to them yet")
	}
}

func newPersonAddCommand(a *app) *cobra.Command {
	var in api.NewPerson
	uid := 0
	cmd := a.cmd("add NAME [--uid N]", "let the home know somebody",
		`Lets the home know somebody by a name. --uid says which user of this machine they are: the kernel
authenticates that account, so they may then use "sallyport chat --home DIR" as themselves. An
account on a platform is linked by "sallyport person link". A person without a role may do
nothing yet: "sallyport person role" gives one.`,
		"  sallyport person add ann\n  sallyport person add bob --uid 1001", exactly("NAME"), func(cmd *cobra.Command, words []string) error {
			in.Name = words[0]
			if cmd.Flags().Changed("uid") {
				if uid < 0 {
					return problem.Errorf(problem.Usage, "id -u", "%d is no uid", uid)
				}
				in.UID = &uid
			}
			c, err := a.connect(cmd.Context())
			if err != nil {
				return err
			}
			return tell(cmd.Context(), a, c, api.PersonAdd, in, func(s sheet, p api.Person) {
				s.line("%s is known as %s", inert.Line(p.Name), p.ID)
				s.line("  may talk with a group: %s", a.command("sallyport person role "+p.ID+" member --group GROUP"))
				s.line("  has an account:        %s", a.command("sallyport person link "+p.ID))
			})
		})
	cmd.Flags().IntVar(&uid, "uid", 0, "the user of this machine that they are: `N`, as \"id -u NAME\" says it")
	return cmd
}

func newPersonLinkCommand(a *app) *cobra.Command {
	return a.remote("link PERSON", "make a code by which an account on a platform becomes somebody's",
		`Prints a code. The account that sends it to the assistant in a direct message, with nothing beside
it, on any channel of the home, is PERSON's from then on. The code is good for ten minutes and for
one account. Give it to nobody but PERSON: whoever sends it is taken for them. A code that is said
in any other way is good no more. It is shown once, and the home keeps only a hash of it.`,
		"  sallyport person link ann\n  sallyport person link psn-1a2b3c4d --json", exactly("PERSON"),
		func(ctx context.Context, c *client.Client, words []string) error {
			return tell(ctx, a, c, api.PersonLink, words[0], func(s sheet, made api.LinkCode) {
				s.line("%s", s.bold(made.Code))
				s.line("%s sends it to the assistant in a direct message, until %s: that account is theirs then",
					inert.Line(made.Person.Name), clock(made.Expires))
				if len(made.Channels) == 0 {
					s.line("%s this home has no channel where it could be sent: %s", s.yellow("note:"), a.command("sallyport channel add --help"))
				} else {
					s.line("  channels: %s", inert.Line(strings.Join(made.Channels, ", ")))
				}
			})
		})
}

func newPersonUnlinkCommand(a *app) *cobra.Command {
	return a.remote("unlink ACCOUNT", "take an account from the person who has it",
		`Takes an account, PLATFORM:ACCOUNT, from the person who has it. Whoever writes from it is a stranger
then. The account that the home was made with stays its owner's.`,
		"  sallyport person unlink telegram:4711\n  sallyport person unlink terminal:1001", exactly("ACCOUNT"),
		func(ctx context.Context, c *client.Client, words []string) error {
			return tell(ctx, a, c, api.AccountUnlink, api.Unlink{Identity: words[0]}, func(s sheet, p api.Person) {
				s.line("%s is not %s any more", inert.Line(words[0]), inert.Line(p.Name))
			})
		})
}

// roleNames are those that can be given.
var roleNames = []string{"member", "group_admin", "global_admin"}

func newPersonRoleCommand(a *app) *cobra.Command {
	var in api.SetRole
	cmd := a.remote("role PERSON ROLE", "give somebody a role, or take it",
		`Gives PERSON a role, or takes it with --remove. A role counts from the next thing that they say or
decide. What they have said already, and you were asked about, is heard.

  member        talks with the group of --group, and decides nothing
  group_admin   of the group of --group: decides about changes of what it runs, and who talks there
  global_admin  the same for every group

Who decides about a group may take the role of its members, and so end what they say. All other
roles are the owner's to give and take.

Whoever decides is asked where they are alone with the assistant on a platform. Another user of this
machine is asked in "sallyport chat host".`,
		`  sallyport person role ann member --group echo
  sallyport person role ann group_admin --group echo
  sallyport person role ann global_admin --remove`, exactly("PERSON", "ROLE"), func(ctx context.Context, c *client.Client, words []string) error {
			in.Person, in.Role = words[0], words[1]
			return tell(ctx, a, c, api.PersonRole, in, func(s sheet, p api.Person) {
				does := "is"
				if in.Remove {
					does = "is not"
				}
				end := ""
				if in.Remove {
					end = " any more"
				}
				s.line("%s %s %s%s", inert.Line(p.Name), does, roleName(api.Role{Role: in.Role, Group: in.Group}), end)
			})
		})
	cmd.Flags().StringVar(&in.Group, "group", "", "the `GROUP` of a member or a group_admin")
	cmd.Flags().BoolVar(&in.Remove, "remove", false, "take the role")
	cmd.ValidArgsFunction = func(cmd *cobra.Command, given []string, _ string) ([]string, cobra.ShellCompDirective) {
		switch len(given) {
		case 0:
			return a.ids(cmd, personIDs), cobra.ShellCompDirectiveNoFileComp
		case 1:
			return roleNames, cobra.ShellCompDirectiveNoFileComp
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return cmd
}

func newPersonRemoveCommand(a *app) *cobra.Command {
	return a.remote("remove PERSON", "have the home know somebody no more",
		`Takes all accounts, roles and codes of PERSON. Whoever writes from one of these accounts is then a
stranger. What they said and decided stays in the audit under their id. The owner of the home stays.`,
		"  sallyport person remove ann", exactly("PERSON"), func(ctx context.Context, c *client.Client, words []string) error {
			return tell(ctx, a, c, api.PersonRemove, words[0], func(s sheet, p api.Person) {
				s.line("the home knows %s no more; %s lost all accounts and roles", inert.Line(p.Name), p.ID)
			})
		})
}
