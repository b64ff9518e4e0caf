package main

import (
	"bytes"
	"fmt"
	"html"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/creack/pty"

	"sallyport/internal/base/disk/disktest"
)

const (
	cardPicture   = "../../docs/card.svg" // at the top of the README
	pictureWidth  = 108                   // columns of the terminal
	pictureWanted = "sallyport run --request 'Greet people by name' --check 'sh test.sh' -- sed -i 's/world/$1/' greet.sh"
)

// The picture at the top of the README is a real run: a card, its question and what landed. With
// UPDATE_DOCS it is written; else it has to be as the program draws it today.
func TestThePictureOfACardIsOfARealRun(t *testing.T) {
	p := newPerson(t)
	p.write("greet.sh", "echo \"Hello, world\"\n")
	p.write("test.sh", "sh greet.sh Ann | grep 'Hello, Ann'\n")
	p.git("add", "-A")
	p.git("commit", "-q", "-m", "Greet the world")
	delete(p.env, "NO_COLOR")
	p.env["TERM"] = "xterm-256color"

	rows := append([]string{"\x1b[2m$\x1b[0m " + pictureWanted, ""}, steady(p.approves(pictureWanted))...)
	keepPicture(t, cardPicture, drawSVG("A card with its question, and what landed", rows))
}

// keepPicture holds a picture to what the program shows today.
func keepPicture(t *testing.T, path string, drawn []byte) {
	t.Helper()
	if os.Getenv("UPDATE_DOCS") != "" {
		disktest.Put(t, path, drawn, 0o644)
	}
	kept, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(kept, drawn) {
		t.Errorf("%s is not what the program shows today (make docs writes it):\n%s", path, drawn)
	}
}

// approves runs a command line on a terminal, says yes to its card and returns the rows of the screen from the card on.
func (p *person) approves(line string) []string {
	p.t.Helper()
	cmd := p.command(p.t.Context(), p.repo, "sh", "-c", "exec "+line)
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 50, Cols: pictureWidth})
	if err != nil {
		p.t.Skipf("SKIPPED: no pty here: %v", err)
	}
	defer terminal.Close()

	var seen bytes.Buffer
	buf := make([]byte, 4096)
	for answered := false; ; {
		n, err := terminal.Read(buf)
		seen.Write(buf[:n])
		if !answered && bytes.HasSuffix(seen.Bytes(), []byte("[l]ater? ")) {
			answered = true
			if _, err := io.WriteString(terminal, "a\n"); err != nil {
				p.t.Fatal(err)
			}
		}
		if err != nil { // the terminal is gone with its last program
			break
		}
	}
	if err := cmd.Wait(); err != nil {
		p.t.Fatalf("%s: %v\n%s", line, err, seen.String())
	}

	rows := screen(seen.String())
	for i, row := range rows {
		if strings.Contains(row, "Greet people by name\x1b") && strings.HasPrefix(row, "\x1b[1mchg-") {
			return rows[i:]
		}
	}
	p.t.Fatalf("there is no card in %q", rows)
	return nil
}

// screen returns the rows that stay on a screen: a row that was cleared and written again counts as it is at last.
func screen(output string) []string {
	var rows []string
	for line := range strings.SplitSeq(output, "\n") {
		line = strings.TrimLeft(strings.TrimSuffix(line, "\r"), "\a")
		if at := strings.LastIndex(line, "\r\x1b[K"); at >= 0 {
			line = line[at+len("\r\x1b[K"):]
		}
		rows = append(rows, line)
	}
	return rows
}

// unsteady are the parts of a card that differ from run to run, and what stands for them in the picture.
var unsteady = []struct {
	part *regexp.Regexp
	as   string
}{
	{regexp.MustCompile(`chg-[0-9a-z]{8}`), "chg-1a2b3c4d"},
	{regexp.MustCompile(`\b[0-9a-f]{12}\b`), "0123456789ab"},
	{regexp.MustCompile(`\b[0-9a-f]{32}\b`), "0123456789abcdef0123456789abcdef"},
	{regexp.MustCompile(`\(\d+(\.\d+)?m?s\)`), "(0.1s)"},
	{regexp.MustCompile(`/\S*/repo\b`), "~/src/greet"},
}

// steady makes one run's rows those of any run: ids, digests, times and places are replaced, and of the
// way from the answer to the landing only its end stays.
func steady(rows []string) []string {
	var out []string
	answered := false
	for _, row := range rows {
		if answered && !strings.Contains(row, "\x1b[32mlanded\x1b[0m on ") && !strings.HasPrefix(row, "  ") {
			continue
		}
		for _, u := range unsteady {
			row = u.part.ReplaceAllString(row, u.as)
		}
		out = append(out, row)
		answered = answered || strings.Contains(row, "[l]ater? ")
	}
	return out
}

// colours are those of the escapes that the program uses.
var colours = map[string]string{
	"1": "#ffffff", "2": "#8b949e", "31": "#ff7b72", "32": "#7ee787", "33": "#e3b341", "36": "#79c0ff",
}

// drawSVG draws rows of a terminal.
func drawSVG(title string, rows []string) []byte {
	const wide, high, margin = 8.4, 19.0, 16.0

	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" font-family="ui-monospace, Menlo, Consolas, monospace" font-size="14">`+"\n",
		pictureWidth*wide+2*margin, float64(len(rows))*high+2*margin)
	fmt.Fprintf(&b, "<title>%s</title>\n<rect width=\"100%%\" height=\"100%%\" rx=\"8\" fill=\"#0d1117\"/>\n", html.EscapeString(title))
	for i, row := range rows {
		fmt.Fprintf(&b, `<text x="%.0f" y="%.1f" fill="#c9d1d9" xml:space="preserve">%s</text>`+"\n", margin, margin+high*float64(i+1)-5, spans(row))
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

var escape = regexp.MustCompile(`\x1b\[(\d*)m`)

// spans makes a row with escapes text with colours.
func spans(row string) string {
	var b strings.Builder
	colour := ""
	write := func(text string) {
		switch {
		case text == "":
		case colour == "":
			b.WriteString(html.EscapeString(text))
		default:
			fmt.Fprintf(&b, `<tspan fill="%s">%s</tspan>`, colour, html.EscapeString(text))
		}
	}
	for {
		at := escape.FindStringSubmatchIndex(row)
		if at == nil {
			write(row)
			return b.String()
		}
		write(row[:at[0]])
		colour = colours[row[at[2]:at[3]]]
		row = row[at[1]:]
	}
}
