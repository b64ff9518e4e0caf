package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"sallyport/internal/base/inert"
	"sallyport/internal/door/api"
	"sallyport/internal/port/sandbox"
)

// duration shows a length of time with two units at most.
func duration(d time.Duration) string {
	switch {
	case d <= 0:
		return "0s"
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < 10*time.Second:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", d.Seconds()), ".0") + "s"
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd%02dh", int(d.Hours())/24, int(d.Hours())%24)
}

// ago shows how long something is past.
func ago(at, now time.Time) string {
	if d := now.Sub(at); d >= time.Second {
		return duration(d.Truncate(time.Second)) + " ago"
	}
	return "just now"
}

// size shows a number of bytes as the daemon does and as limits are written.
func size(n int64) string { return sandbox.Bytes(n) }

// count shows a number of things; "1 file", "2 files".
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return strconv.Itoa(n) + " " + thing + "s"
}

// short cuts a commit or digest to what a person can compare.
func short(oid string) string {
	if len(oid) > 12 {
		return oid[:12]
	}
	return oid
}

// digestMin is how many characters of a digest say what was read. An agent that knows what a digest is made of finds two trees whose first
// twelve are the same in seconds.
const digestMin = 32

// digits are as much of a proposal's digest as approve --digest takes.
func digits(digest string) string { return digest[:min(digestMin, len(digest))] }

// clip cuts s to a number of characters, with a mark.
func clip(s string, columns int) string {
	if r := []rune(s); len(r) > columns && columns > 1 {
		return string(r[:columns-1]) + "…"
	}
	return s
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return clip(line, 72)
}

func isAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// wish is the first line of what is asked for; that of a group's agent is quoted (SM-908).
func wish(c api.Change) string {
	if c.Dev != "" {
		return inert.Line(fmt.Sprintf("%s asks: %q", c.Group, firstLine(c.Text)))
	}
	return inert.Line(firstLine(c.Text))
}

// dash stands in a table for what there is none of.
func dash(text string) string {
	if text == "" {
		return "-"
	}
	return inert.Line(text)
}

// clock shows a time by the user's clock.
func clock(at time.Time) string { return at.Local().Format(clockForm) }

const clockForm = "2006-01-02 15:04:05"
