package approve_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/code"
	"sallyport/internal/base/git/gittest"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/approve"
	"sallyport/internal/drive/control"
	"sallyport/internal/drive/drivetest"
	"sallyport/internal/path/approval"
)

// giving gives by the code of a change.
type giving func(by audit.Actor, hand func(id.Change, string) (string, error)) bool

// hostYes plays a change of the host that was approved with the yes that its approval needed.
func hostYes(t *testing.T, test func(t *testing.T, h *drivetest.Home, of id.Change, c *control.Controller, give giving)) {
	t.Helper()
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		drivetest.Keep(h)
		yes, show, c := proposedWith(h, "docs/more.md")
		d := show()
		time.Sleep(time.Minute)
		if c.GiveCode(gittest.Context(t), d.Approval.ID, h.By(), nil) {
			t.Error("a code was given before anybody approved it")
		}
		if err := yes(approve.Words{Via: "chat", Marked: true, Typed: "CONFIRM HOST"}); err != nil {
			t.Fatal(err)
		}
		test(t, h, d.Change.ID, c, func(by audit.Actor, hand func(id.Change, string) (string, error)) bool {
			return c.GiveCode(gittest.Context(t), d.Approval.ID, by, hand)
		})
	})
}

// TestTheCodeOfAHostChangeIsGivenOnceAndKeptNowhere holds SM-923: what the home keeps has no code in it, and says where it went.
func TestTheCodeOfAHostChangeIsGivenOnceAndKeptNowhere(t *testing.T) {
	hostYes(t, func(t *testing.T, h *drivetest.Home, of id.Change, c *control.Controller, give giving) {
		other := h.By()
		other.Person = "psn-0000else"
		agent := h.By()
		agent.Kind = "agent"
		for _, by := range []audit.Actor{other, agent, {Kind: "person"}} {
			if give(by, nil) {
				t.Errorf("it was given to %+v", by)
			}
		}

		var plain string
		hand := func(about id.Change, code string) (string, error) {
			plain = code
			if about != of {
				t.Errorf("it is of %s, not %s", about, of)
			}
			return "at the command line", nil
		}
		if !give(h.By(), hand) || !code.Is(plain) {
			t.Fatalf("the code given is %q", plain)
		}
		if give(h.By(), func(id.Change, string) (string, error) { t.Error("it was shown twice"); return "", nil }) {
			t.Error("it was given twice")
		}
		hash, err := c.Codes.Take(t.Context(), of)
		if err != nil || !hash.Matches(plain) || hash.Matches("ABCD-EFGH-JKLM") {
			t.Errorf("what the keeper is told: %v", err)
		}
		if again, err := c.Codes.Take(t.Context(), of); err != nil || !again.Matches(plain) {
			t.Errorf("taken again: %v", err)
		}

		if said := h.Reasons(c, of, "gave the code"); !slices.Equal(said, []string{"gave the code: to ann, at the command line"}) {
			t.Errorf("the audit log says of where it went: %q", said)
		}
		bare := strings.ReplaceAll(plain, "-", "")
		err = filepath.WalkDir(filepath.Dir(h.Repo), func(path string, e fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) || err == nil && !e.Type().IsRegular() {
				return nil
			}
			if err != nil {
				return err
			}
			raw, err := os.ReadFile(path)
			if errors.Is(err, fs.ErrNotExist) { // what lands comes and goes
				return nil
			}
			if raw = bytes.ToUpper(raw); bytes.Contains(raw, []byte(plain)) || bytes.Contains(raw, []byte(bare)) {
				t.Errorf("the code stands in %s", path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

// TestAHomeThatGivesCodesAtItsMachineTakesTheYesThereOnly holds `host: code: terminal` (SM-923).
func TestAHomeThatGivesCodesAtItsMachineTakesTheYesThereOnly(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		h.Parts.Terminal = func() bool { return true }
		drivetest.Keep(h)
		yes, show := proposed(h, "docs/more.md")
		time.Sleep(time.Minute)
		w := approve.Words{Via: "chat", Marked: true, Typed: "CONFIRM HOST", Away: true}
		if err := yes(w); problem.KindOf(err) != problem.Refused || !strings.Contains(err.Error(), "is given at this machine alone (host: code: terminal)") {
			t.Errorf("on a platform: %v", err)
		}
		if d := show(); d.Approval.Decision != approval.Pending {
			t.Errorf("it is %s", d.Approval.Decision)
		}
		w.Away = false
		if err := yes(w); err != nil {
			t.Errorf("at the machine: %v", err)
		}
	})
}

// TestAHostChangeWhoseCodeNobodyHasDoesNotLand holds SM-923: what nobody could confirm is not begun.
func TestAHostChangeWhoseCodeNobodyHasDoesNotLand(t *testing.T) {
	refused := func(t *testing.T, err error, want string) {
		t.Helper()
		if p := problem.Of(err); !errors.Is(err, approve.ErrUngiven) || p.Kind != problem.Refused || !strings.Contains(p.Text, want) || !strings.HasPrefix(p.Next, "sallyport approve chg-") {
			t.Errorf("%v, next %q", err, p.Next)
		}
	}
	hostYes(t, func(t *testing.T, h *drivetest.Home, of id.Change, c *control.Controller, give giving) {
		if give(h.By(), func(id.Change, string) (string, error) { return "", errors.New("the platform is not connected") }) {
			t.Error("what could not be handed over counts as given")
		}
		_, err := c.Codes.Take(t.Context(), of)
		refused(t, err, "the platform is not connected")
		c.Codes.Forget(of)
		_, err = c.Codes.Take(t.Context(), of)
		refused(t, err, "started again")
	})

	hostYes(t, func(t *testing.T, h *drivetest.Home, of id.Change, c *control.Controller, give giving) {
		taken := make(chan error, 1)
		go func() {
			_, err := c.Codes.Take(t.Context(), of)
			taken <- err
		}()
		time.Sleep(approve.GiveTime - time.Second)
		synctest.Wait()
		if len(taken) > 0 {
			t.Errorf("it did not wait: %v", <-taken)
		}
		refused(t, <-taken, "nothing took it within 2m0s")
		if give(h.By(), nil) {
			t.Error("it was given after it was given up")
		}
	})
}
