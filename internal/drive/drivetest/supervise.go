package drivetest

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"sallyport/internal/drive/grounds"
	"sallyport/internal/drive/view"
	"sallyport/internal/path/session"
	"sallyport/internal/rule/policy"
)

// Forbidding are rules under which docs may not change, watched as mode says.
func Forbidding(mode session.Supervision) Rules {
	return Rules{Judging: grounds.Judging{Rules: policy.Rules{ForbiddenAreas: []string{"docs"}}, Supervision: mode}}
}

// Scene is what a played agent does: at times after its start it writes files, and it ends when told.
type Scene struct {
	T    *testing.T
	Tree string
}

func (s *Scene) Write(path, text string) {
	path = filepath.Join(s.Tree, path)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		s.T.Error(err)
	}
}

func (s *Scene) Read(path string) string {
	raw, err := os.ReadFile(filepath.Join(s.Tree, path))
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

// Acts is a program that does a scene and ends with status 0; it stops where it stands when it is killed.
func (h *Home) Acts(scenes ...func(s *Scene, after func(time.Duration) bool)) {
	h.Cage.Play = func(n int, tree string, killed <-chan struct{}) int {
		after := func(d time.Duration) bool {
			select {
			case <-killed:
				return false
			case <-time.After(d):
				return true
			}
		}
		scenes[min(n, len(scenes))-1](&Scene{T: h.T, Tree: tree}, after)
		return 0
	}
}

// Statuses are the verdicts of a change's checkpoints with their triggers, in order.
func Statuses(d view.Detail) (out []string) {
	for _, cp := range d.Checkpoints {
		out = append(out, string(cp.Trigger)+" "+string(cp.Status))
	}
	return out
}
