package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"sallyport/internal/base/id"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

const wiringLong = `A wiring has a group hear a conversation: a direct conversation or a room of a channel. It says what
makes the group answer, whom it listens to, and what becomes of what it does not answer. A change of
a wiring counts from the next thing that is said.`

func newWiringListCommand(a *app) *cobra.Command {
	var in api.OfChannel
	cmd := a.remote("list", "list the conversations of the channels, and which groups hear them",
		`Lists the conversations in which something was said, by channel: the name and kind of each, what
becomes of strangers there (strict: they are not heard; request_approval: somebody who may is asked;
public: they are heard), and the groups that hear it. A wiring that engages on nothing is marked.`,
		"  sallyport wiring list\n  sallyport wiring list --channel libera --json", exactly(), func(ctx context.Context, c *client.Client, _ []string) error {
			return tell(ctx, a, c, api.WiringList, in, func(s sheet, all []api.Conversation) {
				if len(all) == 0 {
					s.line("nothing was said on a channel yet; the channels: %s", a.command("sallyport channel list"))
				}
				for _, w := range all {
					printWired(s, w)
				}
			})
		})
	cmd.Flags().StringVar(&in.Channel, "channel", "", "only the conversations of this `CHANNEL`")
	return cmd
}

// printWired shows a conversation with its wirings.
func printWired(s sheet, w api.Conversation) {
	s.line("%s  %s, %s on %s; strangers: %s", s.bold(w.ID), clip(inert.Line(w.Name), 40), w.Kind, w.Channel, w.Policy)
	if len(w.Wirings) == 0 {
		s.line("  no group hears it")
	}
	for _, r := range w.Wirings {
		how := r.Mode
		if r.Pattern != "" {
			how += " " + inert.Line(r.Pattern)
		}
		s.rows("  ", "    ", fmt.Sprintf("%s  on %s, of %s senders; the rest: %s", r.Group, how, r.Scope, r.Ignored))
		if r.Problem != "" {
			s.rows("    ", "    ", s.red("it engages on nothing:")+" "+inert.Line(r.Problem))
		}
	}
}

func newWiringSetCommand(a *app) *cobra.Command {
	var in api.SetWiring
	cmd := a.remote("set CONVERSATION GROUP", "have a group hear a conversation, or change how it does",
		`Has GROUP hear CONVERSATION. What you do not say stays as it is, or is as the kind of the
conversation wants it: all that is said in a direct conversation; mentions in a room; in threads a
mention, and from then on all of that thread.

--mode is mention (the group is named, or the assistant's account is), mention-sticky (and from then
on all of that thread), or pattern: the text matches --pattern, in RE2; "." matches every message.
--scope known has the group listen to its members and to who stands higher; all to everybody who is
heard there. --ignored accumulate keeps what the group does not answer as context of its next turn;
drop forgets it.

If you were asked about the conversation, that is answered so: what was said there last is heard,
and whom the card names becomes a member of GROUP where somebody is asked about strangers.`,
		`  sallyport wiring set cnv-1a2b3c4d ada
  sallyport wiring set cnv-1a2b3c4d ada --pattern '^!ada' --scope known
  sallyport wiring set cnv-1a2b3c4d ada --mode mention --ignored accumulate`, oneWiring, func(ctx context.Context, c *client.Client, words []string) error {
			in.Conversation, in.Group = words[0], words[1]
			return tell(ctx, a, c, api.WiringSet, in, printWired)
		})
	cmd.Flags().StringVar(&in.Mode, "mode", "", "what makes the group answer: `MODE`, "+strings.Join(engageModes, ", "))
	cmd.Flags().StringVar(&in.Pattern, "pattern", "", "answer what matches this `RE2`; implies --mode pattern")
	cmd.Flags().StringVar(&in.Scope, "scope", "", "whom the group listens to: `SCOPE`, "+strings.Join(senderScopes, ", "))
	cmd.Flags().StringVar(&in.Ignored, "ignored", "", "what becomes of what it does not answer: `POLICY`, "+strings.Join(ignoredKinds, ", "))
	for name, words := range map[string][]string{"mode": engageModes, "scope": senderScopes, "ignored": ignoredKinds} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)) // each is registered once
	}
	return cmd
}

// oneWiring takes a conversation and a group.
func oneWiring(words []string) error {
	if err := exactly("CONVERSATION", "GROUP")(words); err != nil {
		return err
	}
	if _, err := id.ParseConversation(words[0]); err != nil {
		return err
	}
	return api.CheckGroup(words[1])
}

func newWiringRemoveCommand(a *app) *cobra.Command {
	return a.remote("remove CONVERSATION GROUP", "have a group hear a conversation no more",
		`Has GROUP hear CONVERSATION no more, from the next thing that is said. What was said stays. Where no
group is left, a mention there asks again which group the conversation is for.`,
		"  sallyport wiring remove cnv-1a2b3c4d ada", oneWiring, func(ctx context.Context, c *client.Client, words []string) error {
			return tell(ctx, a, c, api.WiringRemove, api.DropWiring{Conversation: words[0], Group: words[1]}, printWired)
		})
}

func newWiringPolicyCommand(a *app) *cobra.Command {
	return a.remote("policy CONVERSATION POLICY", "say what becomes of strangers in a conversation",
		`Says what becomes of what a stranger says in CONVERSATION, somebody whom no group there knows.
POLICY is strict: they are not heard; request_approval: somebody who may decide is asked; or public:
they are heard, and everybody who can write there can give the agent work.

Who decides about every group that hears it may say that, too; who decides about one of them may
make it strict. As another user of this machine: "sallyport --home DIR wiring policy …".`,
		"  sallyport wiring policy cnv-1a2b3c4d strict", takes(parses(id.ParseConversation), "CONVERSATION", "POLICY"),
		func(ctx context.Context, c *client.Client, words []string) error {
			return tell(ctx, a, c, api.WiringPolicy, api.SetPolicy{Conversation: words[0], Policy: words[1]}, printWired)
		})
}

// importMax bounds a file of wirings.
const importMax = 1 << 20

func newWiringImportCommand(a *app) *cobra.Command {
	return a.remote("import FILE", "take over wirings of older data",
		`Converts wirings of older data, which had response_scope and trigger_rules, and stores them: all
rows of the file, or none if one cannot be converted, which is named. FILE has one JSON object a
line. Its conversation is an id, or CHANNEL:ADDRESS, where ADDRESS is what the platform calls the
place: on IRC #room, elsewhere its id. Nothing needs to have been said there before.

response_scope all becomes the pattern ".", of all senders; triggered becomes mention, or
trigger_rules as its pattern, of all senders; allowlisted becomes the same of known senders. A row
replaces how its group heard that conversation.`,
		`  sallyport wiring import old-wirings.jsonl

  {"conversation": "libera:#team", "group": "ada", "response_scope": "triggered", "trigger_rules": "^!ada"}`, exactly("FILE"),
		func(ctx context.Context, c *client.Client, words []string) error {
			rows, err := readOldWirings(a, words[0])
			if err != nil {
				return err
			}
			return tell(ctx, a, c, api.WiringImport, api.OldWirings{Rows: rows}, func(s sheet, all []api.Conversation) {
				s.line("%s taken over:", count(len(rows), "row"))
				for _, w := range all {
					printWired(s, w)
				}
			})
		})
}

// readOldWirings reads a file of JSON lines.
func readOldWirings(a *app, name string) (rows []api.OldWiring, err error) {
	path, err := a.here(name)
	if err != nil {
		return nil, err
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, problem.Errorf(problem.NotFound, "sallyport wiring import --help", "read the file of wirings: %w", err)
	}
	if len(raw) > importMax {
		return nil, problem.Errorf(problem.Usage, "sallyport wiring import --help", "%s has %d bytes; %d is the limit", inert.Path(path), len(raw), importMax)
	}
	lines := bufio.NewScanner(bytes.NewReader(raw))
	lines.Buffer(nil, importMax)
	for n := 1; lines.Scan(); n++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var row api.OldWiring
		in := json.NewDecoder(bytes.NewReader(lines.Bytes()))
		in.DisallowUnknownFields()
		if err := in.Decode(&row); err != nil {
			return nil, problem.Errorf(problem.Usage, "sallyport wiring import --help", "line %d of %s is no wiring: %w", n, inert.Path(path), err)
		}
		rows = append(rows, row)
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, problem.Errorf(problem.Usage, "sallyport wiring import --help", "%s has no row", inert.Path(path))
	}
	return rows, nil
}
