package cli

import (
	"fmt"
	"os"
	"os/signal"
	"strings"

	"golang.org/x/sys/unix"
)

// canAsk reports whether somebody can be asked before something goes for good.
func (a *app) canAsk() bool { return !a.json && a.interactive() }

// sure asks before something goes for good. No answer is no.
func (a *app) sure(question string) bool {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGINT)
	defer signal.Stop(signals)
	word, err := a.prompt(question+" type yes: ", signals)
	if err != nil {
		fmt.Fprintln(a.Err)
		return false
	}
	return strings.TrimSpace(word) == "yes"
}
