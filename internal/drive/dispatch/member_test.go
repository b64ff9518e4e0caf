package dispatch_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/git/gittest"
	"sallyport/internal/base/id"
	"sallyport/internal/chat/prompt"
	"sallyport/internal/drive/dispatch"
	"sallyport/internal/port/tool"
	"sallyport/internal/rule/right"
	"sallyport/internal/store"
	"sallyport/internal/who/person"
)

// TestAMemberAtTheTerminalAnswersInWords holds that whom the group knows answers its agent there as on a platform, and nobody else does.
func TestAMemberAtTheTerminalAnswersInWords(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		s.turn = func(_ context.Context, words string, st *stage) (string, error) {
			if strings.Contains(words, ">name<") {
				if _, err := st.ask(tool.AskUserQuestion, tool.Question{Question: "What name?"}); err != nil {
					t.Error(err)
				}
			}
			return "", nil
		}
		d, _ := s.lives()
		for who, c := range map[string]struct {
			held []right.Held
			want prompt.Kind
		}{
			"psn-0000memb": {[]right.Held{{Role: right.Member, Group: "echo"}}, prompt.Answer},
			"psn-0000othr": {[]right.Held{{Role: right.Member, Group: "notes"}}, prompt.Chat},
		} {
			s.Tx(func(ctx context.Context, tx store.Tx) error {
				err := tx.AddPerson(ctx, person.Person{ID: id.Person(who), Name: who})
				for _, h := range c.held {
					err = errors.Join(err, tx.Grant(ctx, id.Person(who), h))
				}
				return err
			})
			by := audit.Actor{Kind: "person", Name: who, UID: 1001, Person: id.Person(who)}
			for _, text := range []string{"name", "Tulip"} {
				m, err := d.Say(gittest.Context(t), dispatch.Said{Group: "echo", Text: text, Account: who, Name: who, By: by})
				synctest.Wait()
				if err != nil || text == "Tulip" && m.Kind != c.want {
					t.Errorf("%s: %q is %+v, %v", who, text, m, err)
				}
			}
		}
	})
}
