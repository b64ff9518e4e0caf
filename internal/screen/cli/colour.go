package cli

// palette colours words of our own, never text from elsewhere. The zero value does not colour.
type palette bool

// colours says whether a stream takes colours: a terminal, and nobody said NO_COLOR.
func (p Program) colours(stream any) palette {
	_, ok := terminal(stream)
	return palette(ok && p.Getenv("NO_COLOR") == "" && p.Getenv("TERM") != "dumb")
}

func (c palette) in(code, s string) string {
	if !c || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (c palette) bold(s string) string   { return c.in("1", s) }
func (c palette) dim(s string) string    { return c.in("2", s) }
func (c palette) red(s string) string    { return c.in("31", s) }
func (c palette) green(s string) string  { return c.in("32", s) }
func (c palette) yellow(s string) string { return c.in("33", s) }
func (c palette) cyan(s string) string   { return c.in("36", s) }
