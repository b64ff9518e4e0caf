package drivetest

import (
	"fmt"
	"strings"
	"testing/synctest"

	"sallyport/internal/base/git/gittest"
	"sallyport/internal/base/id"
	"sallyport/internal/drive/control"
	"sallyport/internal/path/change"
	"sallyport/internal/path/request"
)

// Pages is a file of nine lines with some of them said otherwise.
func Pages(other ...string) string {
	var b strings.Builder
	for n := 1; n <= 9; n++ {
		line := fmt.Sprint(n)
		for i := 0; i+1 < len(other); i += 2 {
			if other[i] == line {
				line = other[i+1]
				break
			}
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}

func (h *Home) Redo(c *control.Controller, chg id.Change) {
	h.T.Helper()
	if _, err := c.Redo(gittest.Context(h.T), chg, h.By(), nil); err != nil {
		h.T.Fatal(err)
	}
	synctest.Wait()
}

// Collides brings a change and its branch to differ in line 5, and returns the change as it waits.
func (h *Home) Collides(c *control.Controller) id.Change {
	h.T.Helper()
	chg := h.AskWithCheck(c, request.Later)
	h.Is(c, chg, change.AwaitingApproval)
	h.Commits("page.txt", Pages("5", "ann"), "Mine")
	return chg
}
