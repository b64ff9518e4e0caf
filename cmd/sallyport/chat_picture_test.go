package main

import (
	"os/user"
	"regexp"
	"strings"
	"testing"
	"time"
)

const (
	chatPicture = "../../docs/chat.svg" // beside the second example of the README
	chatWish    = "/change append template/runner/prompts/system.md: Greeting: Hello, {name}!"
)

// The picture of the README's second example is a real conversation: a group has itself changed, and is kept. With UPDATE_DOCS it is written;
// else it has to be as the program tells it today.
func TestThePictureOfAConversationIsOfARealRun(t *testing.T) {
	p := newPerson(t)
	for _, step := range []struct{ say, until string }{
		{chatWish, "2. refuse"},
		{"approve", "to revert."},
		{"hello", "| hello"},
		{"confirm", "2. Keep local to echo"},
		{"Keep local to echo", "stays local"},
	} {
		p.sallyport("chat", "echo", "--say", step.say)
		for began := time.Now(); !strings.Contains(p.sallyport("chat", "echo").out, step.until); {
			if time.Since(began) > patience {
				t.Fatalf("%q was not told: %s", step.until, p.sallyport("chat", "echo").out)
			}
		}
	}
	rows := append([]string{"\x1b[2m$\x1b[0m sallyport chat echo", ""}, p.conversation()...)
	keepPicture(t, chatPicture, drawSVG("A group that has itself changed, and is kept", rows))
}

// named are the names that an agent which makes a change is given.
var named = regexp.MustCompile(`\bdev-[0-9a-z]{8}\b`)

// conversation is what was said with echo, as it is in any run, in the colours of a terminal.
func (p *person) conversation() (rows []string) {
	p.t.Helper()
	me, err := user.Current()
	if err != nil {
		p.t.Fatal(err)
	}
	speaker := regexp.MustCompile(`\b` + regexp.QuoteMeta(me.Username) + `\b`)
	_, said, _ := strings.Cut(p.sallyport("chat", "echo").out, "> "+chatWish)
	for row := range strings.SplitSeq("> "+chatWish+strings.TrimRight(said, "\n"), "\n") {
		for _, u := range unsteady {
			row = u.part.ReplaceAllString(row, u.as)
		}
		row = speaker.ReplaceAllString(named.ReplaceAllString(row, "dev-1a2b3c4d"), "ann")
		rows = append(rows, folded(row)...)
	}
	return rows
}

// folded is a row as a terminal of the picture's width shows it, in its colour.
func folded(row string) (rows []string) {
	colour := ""
	switch {
	case strings.HasPrefix(row, "> "):
		colour = "\x1b[1m"
	case strings.HasPrefix(row, "[sallyport] +") && !strings.HasPrefix(row, "[sallyport] +++"):
		colour = "\x1b[32m"
	case strings.HasPrefix(row, "[sallyport]"):
		colour = "\x1b[2m"
	}
	for letters := []rune(row); len(letters) > 0; {
		n := min(len(letters), pictureWidth)
		if space := strings.LastIndex(string(letters[:n]), " "); n < len(letters) && space > pictureWidth/2 {
			n = len([]rune(string(letters[:n])[:space+1]))
		}
		rows = append(rows, colour+string(letters[:n]))
		letters = letters[n:]
	}
	return rows
}
