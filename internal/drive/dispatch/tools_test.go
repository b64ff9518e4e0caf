package dispatch_test

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/git/gittest"
	"sallyport/internal/base/problem"
	"sallyport/internal/chat/message"
	"sallyport/internal/drive/dispatch"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/port/tool"
)

// TestAToolOfTheHostThatIsOffIsNotThere holds SM-165 for the host's tools, whatever engine its agent has.
func TestAToolOfTheHostThatIsOffIsNotThere(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		s.commit("groups/echo/runner/runner.yaml", "agent: echo\ntools_off: [schedule_task, Bash, request_dev_changes]\n")
		d, _ := s.lives()
		s.is(s.say(d, "echo", "hello").ID, message.Completed)
		has := slices.Sorted(maps.Keys(s.desk))
		if want := []tool.Name{tool.AskUserQuestion, tool.CancelTask, tool.ListTasks, tool.SendMessage}; !slices.Equal(has, want) {
			t.Errorf("it has the tools %q, want %q", has, want)
		}
	})
}

// TestTheSameWordsTwiceInATurnAreTwoMessages holds it where the turn is tried again too: no message more, and none less.
func TestTheSameWordsTwiceInATurnAreTwoMessages(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		tries := 0
		var ids [3][]string
		s.turn = func(_ context.Context, _ string, st *stage) (string, error) {
			for _, text := range []string{"Still at it", "Half way", "Still at it", "Still at it"} {
				r, err := st.ask(tool.SendMessage, tool.Message{Text: text})
				if err != nil {
					t.Error(err)
				}
				ids[tries] = append(ids[tries], r.ID)
			}
			if tries++; tries < 3 {
				return "", errors.New("no model")
			}
			return "done", nil
		}
		d, _ := s.lives()
		m := s.say(d, "echo", "work")
		time.Sleep(time.Hour)
		s.is(m.ID, message.Completed)
		same(t, "sent", s.sent(m.Chat), "Still at it", "Half way", "Still at it", "Still at it", "done")
		same(t, "the second try", ids[1], ids[0]...)
		same(t, "the third try", ids[2], ids[0]...)
	})
}

// What an agent says, asks and fails with goes through the host to people and into its rows. None of it keeps a secret (I8).
func TestNoWordOfAnAgentIsKeptWithASecret(t *testing.T) {
	const planted = "ghp_" + "9fK2mQx7LbR4vTz1WcN8sYd3HjP6gUe5AoXi"
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		s.turn = func(_ context.Context, words string, st *stage) (string, error) {
			if strings.Contains(words, "fail") {
				return "", errors.New("no model by " + planted)
			}
			_, err := st.ask(tool.SendMessage, tool.Message{Text: "I found " + planted})
			_, err2 := st.ask(tool.AskUserQuestion, tool.Question{Question: "Use " + planted + "?", Options: []string{"yes, " + planted, "no"}})
			_, err3 := st.ask(tool.ScheduleTask, tool.Schedule{Text: "look for " + planted, ProcessAfter: "2005-01-01T00:00"})
			return "done with " + planted, errors.Join(err, err2, err3)
		}
		d, _ := s.lives()
		m := s.say(d, "echo", "work")
		s.is(m.ID, message.Completed)
		failed := s.say(d, "echo", "fail")
		time.Sleep(24 * time.Hour)
		s.is(failed.ID, message.Dead)

		said := strings.Join(append(s.sent(m.Chat), s.now(failed.ID).Reason), "\n")
		for _, want := range []string{"I found [secret: ", "Use [secret: ", "yes, [secret: ", "done with [secret: ", "no model by [secret: "} {
			if !strings.Contains(said, want) {
				t.Errorf("nobody is told %q: %s", want, said)
			}
		}
		err := filepath.WalkDir(s.Parts.Home, func(path string, d os.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			raw, err := os.ReadFile(path)
			if bytes.Contains(raw, []byte(planted)) {
				t.Errorf("%s has it", path)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// What the host says of an agent that cannot be woken has words of the group's own files in it.
func TestNoWordOfTheHostIsKeptWithASecret(t *testing.T) {
	const planted = "ghp_" + "9fK2mQx7LbR4vTz1WcN8sYd3HjP6gUe5AoXi"
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		s.commit("groups/echo/runner/runner.yaml", "agent: "+planted+"\n")
		d, _ := s.lives()
		m := s.say(d, "echo", "hello")
		said := strings.Join(append(s.sent(m.Chat), s.now(m.ID).Reason), "\n")
		if strings.Contains(said, planted) || strings.Count(said, "[secret: ") < 2 {
			t.Errorf("it says %s", said)
		}
	})
}

// TestTheSessionOfAChatIsNotResumedAndSaysHowItGoesOn holds that an identity which session list shows leads on (RM-025).
func TestTheSessionOfAChatIsNotResumedAndSaysHowItGoesOn(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		d, _ := s.lives()
		m := s.say(d, "echo", "hello")
		s.is(m.ID, message.Completed)
		of := s.chat(m.Chat).Identity
		_, resumed := s.control.ResumeSession(gittest.Context(t), of, s.By(), nil)
		_, wanted := s.control.Requests.WantedBy(t.Context(), string(of))
		for _, err := range []error{resumed, wanted} {
			p := problem.Of(err)
			if want := "the session " + string(of) + " is a chat with the group echo: it goes on with your next message"; problem.KindOf(err) != problem.Usage || p.Text != want || p.Next != "sallyport chat echo" {
				t.Errorf("%v", err)
			}
		}
	})
}

// TestAnAgentIsToldItsGroupsSkills holds SM-011: by name, by what each is for, and where it can be read.
func TestAnAgentIsToldItsGroupsSkills(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		s.commit("groups/echo/skills/bake/SKILL.md", "---\nname: bake\ndescription: >\n  Bake\n  a cake.\n---\nTake flour.\n")
		d, _ := s.lives()
		s.is(s.say(d, "echo", "hello").ID, message.Completed)
		told := s.systems[0]
		for _, want := range []string{"\n- bake: Bake a cake. (" + dispatch.SkillsFolder + "/bake/SKILL.md)\n- keep-notes: Remember something", "(/app/skills/keep-notes/SKILL.md)"} {
			if !strings.Contains(told, want) {
				t.Errorf("it is not told %q: %q", want, told)
			}
		}
		if shown := s.starts[0].Own; !slices.ContainsFunc(shown, func(b sandbox.Bind) bool { return b.Target == dispatch.SkillsFolder && !b.Writable }) {
			t.Errorf("it is shown %+v", shown)
		}
	})
}
