package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

// waitDefault is how long chat --say waits for an answer unless it is told otherwise.
const waitDefault = 2 * time.Minute

// sayBytesMax bounds what is read of standard input; what a message may have is the daemon's to say.
const sayBytesMax = 1 << 20

func newChatCommand(a *app) *cobra.Command {
	var text string
	wait := waitDefault
	cmd := a.cmd("chat [GROUP]", "talk with a group's assistant",
		`Talks with the assistant of a group. At a terminal it shows the last messages and then what is said
as it is said. A line that you type is a message; one that ends in \ goes on in the next, and so
does what you paste. Rows of the assistant begin with |, yours with >, and those of sallyport itself
with [sallyport]. Ctrl-C, Ctrl-D and /quit leave. Nothing is lost by that: the assistant goes on,
and "sallyport chat GROUP" shows what it has said. A question of the assistant's is answered with
the number of an option or in words; "/answer QUESTION WORDS" answers one by its name.

Without GROUP it is the home's only group, or the one of your chat that had the last message.

--say TEXT says one thing, prints the answer and ends. Without a terminal the whole of standard
input is the message; where that is empty, what was said is printed instead. A message stays
accepted when the answer takes longer than --wait: it is answered later, and the note on standard
error says how to read that.

A change of what the assistant runs is shown as a card. Answer that with the number of an option or
with its word, and what is on trial with "confirm" or "rollback". sallyport takes such words, and
the assistant never sees them. They count for a card that you were shown here. If they could mean
more than one, you are asked which: say the card's two digits with them, such as "11 approve".
"refuse: WHY" refuses a change with a reason. "change: WHAT" has it done differently first.

A home of another user's is named by --home. Its owner lets you in: "sallyport person add --help".

Exit status: 0 when it was answered, also if the assistant chose to send nothing, and when you left;
1 if your words were meant for a card and decided nothing, 3 if no answer came within --wait, 6 if
the message was given up, with the reason.`,
		`  sallyport chat echo
  sallyport chat --say "What is on my list for today?"
  git diff | sallyport chat helper --wait 10m
  sallyport chat echo --say hello --json
  sallyport chat host                       # what sallyport itself wants to know from you`, atMost("GROUP"), func(cmd *cobra.Command, words []string) error {
			if len(words) == 1 && words[0] != api.HostChat {
				if err := api.CheckGroup(words[0]); err != nil {
					return err
				}
			}
			says := cmd.Flags().Changed("say")
			if err := a.canChat(says, wait); err != nil {
				return err
			}
			if _, typed := terminal(a.In); !says && !typed {
				var err error
				if text, err = allOf(a.In); err != nil {
					return err
				}
				says = text != ""
			}

			c, err := a.connect(cmd.Context())
			if err != nil {
				return err
			}
			group, err := chatGroup(cmd.Context(), c, words)
			if err != nil {
				return err
			}
			if says {
				return sayOnce(cmd.Context(), a, c, group, text, wait)
			}
			if _, typed := terminal(a.In); !typed {
				return readChat(cmd.Context(), a, c, group)
			}
			return talkWith(cmd.Context(), a, c, group)
		})
	cmd.Flags().StringVar(&text, "say", "", "say `TEXT`, print the answer and end")
	cmd.Flags().DurationVar(&wait, "wait", wait, "wait so long for the answer of --say: `DURATION`, such as 30s or 10m")
	return cmd
}

// canChat refuses what cannot be talked with.
func (a *app) canChat(says bool, wait time.Duration) error {
	_, typed := terminal(a.In)
	switch {
	case wait < 0:
		return problem.Errorf(problem.Usage, "sallyport chat --help", "--wait %s is no time to wait", wait)
	case says || !typed:
		return nil
	case a.json:
		return problem.Errorf(problem.Usage, "sallyport chat --help",
			"--json is for one message and its answer: give the message with --say, or on standard input")
	case !onTerminal(a.Out):
		return problem.Errorf(problem.Usage, "sallyport chat --help",
			"standard output is not a terminal to talk at: give the message with --say, or on standard input")
	}
	return nil
}

// allOf is the whole of an input as one message, without the newlines at its end; "" for an input that has nothing at all. Errors:
// problem.Usage.
func allOf(in io.Reader) (string, error) {
	raw, err := io.ReadAll(io.LimitReader(in, sayBytesMax+1))
	if err != nil {
		return "", fmt.Errorf("read standard input: %w", err)
	}
	text := strings.TrimRight(string(raw), "\n")
	switch {
	case len(raw) > sayBytesMax:
		return "", problem.Errorf(problem.Usage, "sallyport chat --help", "standard input has more than %s; that is no message", size(sayBytesMax))
	case len(raw) > 0 && strings.TrimSpace(text) == "":
		return "", problem.Errorf(problem.Usage, "sallyport chat --help", "standard input is no terminal, and holds no message")
	}
	return text, nil
}

// say says something once, however often it has to be told to a daemon that went away. JSON would make a text that is no UTF-8
// another. Errors: problem.Usage.
func say(ctx context.Context, c *client.Client, group, text, nonce string) (api.Message, error) {
	if !utf8.ValidString(text) {
		return api.Message{}, problem.Errorf(problem.Usage, "sallyport chat --help", "the message is no text: it is not UTF-8")
	}
	return client.Surely(ctx, c, api.ChatSay, api.Say{Group: group, Text: text, Nonce: nonce})
}

// answerByName answers the question that words name; false if they name none.
func answerByName(ctx context.Context, c *client.Client, text string) (m api.Message, is bool, err error) {
	rest, is := strings.CutPrefix(text, "/answer ")
	if !is {
		return m, false, nil
	}
	question, words, _ := strings.Cut(strings.TrimSpace(rest), " ")
	m, err = client.Call(ctx, c, api.CardAnswer, api.Answer{Of: question, Text: strings.TrimSpace(words)})
	return m, true, err
}

// chatGroup is the group that is talked with: the one that is named, the only one, or the one that was talked with last.
func chatGroup(ctx context.Context, c *client.Client, words []string) (string, error) {
	if len(words) == 1 {
		return words[0], nil
	}
	all, err := client.Call(ctx, c, api.GroupList, api.OfUser{})
	if err != nil {
		return "", err
	}
	var names []string
	for _, g := range all.Groups {
		names = append(names, g.Name)
	}
	switch len(names) {
	case 0:
		return "", problem.Errorf(problem.NotFound, "sallyport group create --help", "there is no group to talk with")
	case 1:
		return names[0], nil
	}

	chats, err := client.Call(ctx, c, api.ChatList, api.InGroup{})
	if err != nil {
		return "", err
	}
	var last api.Chat
	for _, chat := range chats {
		if chat.Platform == terminalPlatform && chat.Last != nil && (last.Last == nil || chat.Last.After(*last.Last)) {
			last = chat
		}
	}
	if last.Last == nil {
		return "", problem.Errorf(problem.Usage, "sallyport chat "+names[0],
			"%d groups could be meant, and you have talked with none yet; name one: %s", len(names), strings.Join(names, ", "))
	}
	return last.Group, nil
}

// systemKind is the kind of a message of the host's own to an agent.
const systemKind = "system"

// terminalPlatform is the platform of a chat at a terminal.
const terminalPlatform = "terminal"
