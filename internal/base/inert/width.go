package inert

// Width is how many columns a text takes on a terminal, or more: never fewer. Terminals disagree on what lies beyond the
// alphabets.
func Width(text string) (columns int) {
	for _, r := range text {
		columns++
		if r >= 0x1100 && !(r >= 0x2010 && r <= 0x2027) {
			columns++
		}
	}
	return columns
}
