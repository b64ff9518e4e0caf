package secret

import "strings"

// runMin is how many readable bytes in a row are read in a binary file; no rule is met by fewer.
const runMin = 6

// readable returns a text with zero bytes in it, which is a binary file, with everything blanked but
// its runs of readable bytes; lines and offsets stay. Other texts stay as they are. Random bytes
// hold some short keyword of some rule every few bytes, and each costs a search around it.
func readable(text string) string {
	if strings.IndexByte(text, 0) < 0 {
		return text
	}
	out := []byte(text)
	from := 0 // where the present run began
	for i := 0; i <= len(out); i++ {
		if i < len(out) && printable(out[i]) {
			continue
		}
		if i-from < runMin {
			blank(out[from:i])
		}
		if i < len(out) {
			out[i] = ' '
		}
		from = i + 1
	}
	return string(out)
}

func printable(b byte) bool { return b >= ' ' && b <= '~' || b == '\t' || b == '\n' || b == '\r' }

// blank wipes bytes but not the ends of lines, which are counted.
func blank(b []byte) {
	for i := range b {
		if b[i] != '\n' {
			b[i] = ' '
		}
	}
}
