package channels_test

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/disk"
	"sallyport/internal/drive/channels"
	"sallyport/internal/port/channel/channeltest"
	"sallyport/internal/rule/right"
	"sallyport/internal/store/sqlite"
)

const (
	onTrial  = "a host change is on trial until 14:32"
	sayAgain = "A host change is on trial until 14:32. What you said was not taken in: say it again after that."
)

// tries has a host of another schema live, in which during happens, and then go back as it does (SM-128), or stay. What comes after is the
// life of the host that is there then.
func (s *scene) tries(back bool, during func()) {
	s.T.Helper()
	ctx := s.T.Context()
	snapshot := filepath.Join(s.T.TempDir(), "before.db")
	if err := s.Parts.DB.Snapshot(ctx, snapshot); err != nil {
		s.T.Fatal(err)
	}
	s.quiet = onTrial
	end := s.lives()
	during()
	end()

	s.quiet = ""
	if back {
		live := filepath.Join(s.T.TempDir(), "live.db")
		if err := s.Parts.DB.Snapshot(ctx, live); err != nil {
			s.T.Fatal(err)
		}
		file, err := sql.Open("sqlite", live)
		if err == nil {
			_, err = file.ExecContext(ctx, `CREATE TABLE more (id INTEGER PRIMARY KEY) STRICT`) // the other schema
		}
		if err == nil {
			err = file.Close()
		}
		if err != nil {
			s.T.Fatal(err)
		}
		done, err := sqlite.Revert(ctx, live, snapshot, disk.Ops{})
		if err != nil || !done.Done || len(done.Left) > 0 {
			s.T.Fatalf("it went back with %+v, %v", done, err)
		}
		db, err := sqlite.Open(ctx, live, disk.Ops{})
		if err != nil {
			s.T.Fatal(err)
		}
		s.T.Cleanup(func() { _ = db.Close() }) // of a test that is over
		s.Parts.DB = db
	}
	s.lives()
}

// TestNobodyIsLetInWhileAHostOfAnotherSchemaIsOnTrial holds that nothing about strangers, places and codes is lost or half kept by going back,
// nor by staying: who speaks is told to say it again, an answer waits, and both work after that.
func TestNobodyIsLetInWhileAHostOfAnotherSchemaIsOnTrial(t *testing.T) {
	bobDM := channeltest.DirectOf(bob)
	for name, test := range map[string]func(t *testing.T, s *scene, trial func(during func())){
		"a stranger speaks": func(t *testing.T, s *scene, trial func(func())) {
			s.wire(bobDM, "echo")
			trial(func() {
				s.tells(bob, "hi")
				s.tells(bob, "hello?")
				same(t, "told", s.texts(bobDM), sayAgain)
				same(t, "asked", s.texts(olgaDM))
			})
			s.tells(bob, "hi again")
			s.press(olga, olgaDM, "allow")
			same(t, "heard", s.heard(), "echo: hi again")
		},
		"somebody speaks in a new place": func(t *testing.T, s *scene, trial func(func())) {
			trial(func() {
				s.mentions(bob, hallway, "hi")
				s.mentions(eve, hallway, "hello?")
				same(t, "told", s.texts(hallway), sayAgain)
				same(t, "asked", s.texts(olgaDM))
			})
			s.mentions(bob, hallway, "hi again")
			s.press(olga, olgaDM, channels.WireTo+"echo")
			same(t, "heard", s.heard(), "echo: hi again")
		},
		"a stranger is answered": func(t *testing.T, s *scene, trial func(func())) {
			s.wire(bobDM, "echo")
			end := s.lives()
			s.tells(bob, "hi")
			asked := s.questions(bobDM)[0].ID
			end()
			trial(func() {
				s.press(olga, olgaDM, "allow")
				s.tells(olga, "deny")
				told := strings.Join(s.texts(olgaDM)[1:], "\n")
				if strings.Count(told, "Nothing is decided: "+onTrial+", and nobody is let in or turned away meanwhile; answer again after that") != 2 {
					t.Errorf("told: %s", told)
				}
				if err := s.answers(asked, "allow", audit.Actor{Kind: "person", Name: "olga", UID: 1000, Person: s.Owner.ID}); err == nil || !strings.Contains(err.Error(), onTrial) {
					t.Errorf("at the command line: %v", err)
				}
				same(t, "heard", s.heard())
			})
			s.press(olga, olgaDM, "allow")
			same(t, "heard", s.heard(), "echo: hi")
			if k, _ := s.person(bob); len(k.Held) != 1 || k.Held[0] != (right.Held{Role: right.Member, Group: "echo"}) {
				t.Errorf("bob holds %+v", k.Held)
			}
		},
		"a place is answered, and somebody speaks there": func(t *testing.T, s *scene, trial func(func())) {
			end := s.lives()
			s.mentions(bob, hallway, "hi")
			end()
			trial(func() {
				s.mentions(bob, hallway, "hello?")
				same(t, "told", s.texts(hallway), sayAgain)
				s.press(olga, olgaDM, channels.WireTo+"echo")
				s.press(olga, olgaDM, "ignore")
				same(t, "heard", s.heard())
			})
			s.press(olga, olgaDM, channels.WireTo+"echo")
			same(t, "heard", s.heard(), "echo: hi")
		},
		"a code comes": func(t *testing.T, s *scene, trial func(func())) {
			code := s.code()
			trial(func() {
				s.tells(bob, code)
				same(t, "told", s.texts(bobDM), "A host change is on trial until 14:32. Your account was not linked: send the code again after that. If it is good no more by then: sallyport person link")
				if k, known := s.person(bob); known {
					t.Errorf("bob is %+v", k)
				}
			})
			s.tells(bob, code)
			if k, _ := s.person(bob); k.ID != s.Owner.ID {
				t.Errorf("bob is %+v", k)
			}
		},
		"a code is said in public": func(t *testing.T, s *scene, trial func(func())) {
			code := s.code()
			trial(func() { s.mentions(bob, hallway, code) })
			s.tells(eve, code)
			if k, known := s.person(eve); known {
				t.Errorf("by a code that others have read, eve is %+v", k)
			}
		},
		"who may talk is heard": func(t *testing.T, s *scene, trial func(func())) {
			s.know(bob, right.Held{Role: right.Member, Group: "echo"})
			s.wire(bobDM, "echo")
			trial(func() {
				s.tells(bob, "hi")
				same(t, "told", s.texts(bobDM), "heard: hi")
			})
			same(t, "heard", s.heard(), "echo: hi")
			same(t, "stored", s.stored("echo"), "hi")
		},
	} {
		for end, back := range map[string]bool{"and it goes back": true, "and it stays": false} {
			t.Run(name+" "+end, func(t *testing.T) {
				play(t, []string{"echo"}, func(t *testing.T, s *scene) {
					test(t, s, func(during func()) { s.tries(back, during) })
				})
			})
		}
	}
}
