package supervise_test

import (
	"sync/atomic"
	"testing"
	"time"

	"sallyport/internal/base/git"
	"sallyport/internal/drive/control"
	"sallyport/internal/drive/drivetest"
	"sallyport/internal/drive/live"
	"sallyport/internal/path/change"
	"sallyport/internal/path/request"
	"sallyport/internal/rule/budget"
	"sallyport/internal/rule/credential"
	"sallyport/internal/rule/secret"
)

// looking is an agency that counts who asks it what an agent is given.
type looking struct {
	times atomic.Int32
	then  func(times int32)
}

func (l *looking) Chosen(string) live.Choice {
	l.then(l.times.Add(1))
	return live.Choice{}
}

func (*looking) Budgets() budget.Limits { return budget.Limits{} }

// The key comes after the agent has looked for it, and whoever gives it finds a change that does not wait yet.
func TestAKeyThatComesBeforeAChangeWaitsForItLetsItGoOn(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		var there atomic.Bool
		there.Store(true)
		ring := func() *credential.Ring {
			return credential.NewRing(&secret.Held{}, func(string) string {
				if there.Load() {
					return "a-key-of-somebody"
				}
				return ""
			})
		}
		agency := &looking{then: func(int32) {}}
		h.Parts.Agents["codex"], h.Parts.Agency, h.Parts.Keys = drivetest.Played{}, agency, ring()
		h.Acts(func(s *drivetest.Scene, _ func(time.Duration) bool) { s.Write("page.txt", "two\n") })
		r, err := control.New(h.Parts).TakeRequest(t.Context(), request.Request{By: h.By(), Text: "x", Agent: "codex", Project: git.Project{Top: h.Repo}, Approve: request.Later}, nil)
		if err != nil {
			t.Fatal(err)
		}

		there.Store(false)
		looked := agency.times.Load()
		agency.then = func(times int32) { there.Store(times > looked+1) }
		h.Parts.Keys = ring()
		c, _ := h.Daemon()
		time.Sleep(time.Minute)
		d := h.Is(c, r.Change.ID, change.AwaitingApproval)
		if verbs := h.Verbs(c, r.Change.ID); agency.times.Load() < looked+2 {
			t.Errorf("it was not looked for again: %q %s", verbs, d.Change.Reason)
		}
	})
}
