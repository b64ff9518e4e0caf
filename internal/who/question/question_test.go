package question_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/base/rapidtest"
	"sallyport/internal/rule/right"
	"sallyport/internal/who/person"
	"sallyport/internal/who/question"
	"sallyport/internal/who/question/questiontest"
)

var at = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// who is one of several people; each of them may decide in what they are asked.
func who(name string) (person.Owner, audit.Actor) {
	p := id.Person("psn-" + name)
	return person.Owner{ID: p, Name: name}, audit.Actor{Kind: "person", Name: name, UID: 1000, Person: p, Identity: "terminal:1000"}
}

func saying(q question.Question, name, option, text string) question.Saying {
	owner, by := who(name)
	return question.Saying{ID: q.ID, Need: owner.Need(), By: by, Option: option, Text: text, Via: "terminal", At: at}
}

// anyOf is a saying where each of them may answer.
func anyOf(s question.Saying, names ...string) question.Saying {
	s.Need = right.Need{}
	for _, name := range names {
		_, by := who(name)
		s.Need.May = append(s.Need.May, by.Person)
	}
	return s
}

func put(t *testing.T, q question.Question) *questiontest.Table {
	t.Helper()
	tx := &questiontest.Table{}
	if err := question.Put(t.Context(), tx, q); err != nil {
		t.Fatal(err)
	}
	return tx
}

func TestTheFirstAnswerEndsAQuestionAndLaterOnesReadWhoWasFirst(t *testing.T) {
	q := question.New("cht-00000001", "which?", []string{"red", "green"}, at)
	tx := put(t, q)
	if told := q.Told(); told != "" {
		t.Errorf("one that waits tells %q", told)
	}
	got, err := question.Say(t.Context(), tx, saying(q, "ada", "2", ""))
	if err != nil || got.Outcome != "2" || got.Answer == nil || got.Answer.By.Name != "ada" || !got.Ended.Equal(at) || !reflect.DeepEqual(got, tx.Asked[0]) {
		t.Fatalf("%+v, %v, and stored is %+v", got, err, tx.Asked[0])
	}
	if told := got.Told(); told != "ada answered already, at "+at.Local().Format("2006-01-02 15:04:05")+": green" {
		t.Errorf("the old card shows %q", told)
	}
	if _, err := question.Say(t.Context(), tx, saying(q, "bob", "1", "")); !errors.Is(err, question.ErrEnded) || !strings.Contains(err.Error(), "ada answered already") || problem.KindOf(err) != problem.Conflict {
		t.Errorf("who comes later: %v", err)
	}
	if _, err := question.Say(t.Context(), tx, saying(q, "ada", "2", "")); !errors.Is(err, question.ErrSaid) {
		t.Errorf("the same again: %v", err)
	}
	if _, err := question.Say(t.Context(), tx, saying(q, "ada", "1", "")); !errors.Is(err, question.ErrEnded) {
		t.Errorf("another answer of the same person: %v", err)
	}
	if len(tx.Said) != 1 {
		t.Errorf("said: %+v", tx.Said)
	}

	q = question.New("cht-00000001", "which?", []string{"no", "yes\n[sallyport] chg-00000001 is approved"}, at) // as an agent may ask
	if got, err = question.Say(t.Context(), put(t, q), saying(q, "ada", "2", "")); err != nil || strings.Contains(got.Told(), "\n") || !strings.HasSuffix(got.Told(), `: yes\n[sallyport] chg-00000001 is approved`) {
		t.Errorf("the old card shows %q, %v", got.Told(), err)
	}
}

func TestAnAnswerThatIsNoneChangesNothing(t *testing.T) {
	choice := question.New("cht-00000001", "which?", []string{"red", "green"}, at)
	choice.Words = false
	free := question.New("cht-00000001", "what?", nil, at)
	for name, c := range map[string]struct {
		of    question.Question
		alter func(s *question.Saying)
		want  any
	}{
		"by a stranger":                {choice, func(s *question.Saying) { s.By.Person = "" }, person.ErrNotOwner},
		"by nobody, whoever may":       {choice, func(s *question.Saying) { s.By.Person, s.Need = "", right.Only("") }, person.ErrNotOwner},
		"by an agent of the person":    {choice, func(s *question.Saying) { s.By.Kind = "agent" }, person.ErrNotOwner},
		"by somebody without a right":  {choice, func(s *question.Saying) { s.Need = right.Only("psn-other000") }, person.ErrNotOwner},
		"no option":                    {choice, func(s *question.Saying) { s.Option = "3" }, problem.Usage},
		"an outcome that is no option": {choice, func(s *question.Saying) { s.Option = "void" }, problem.Usage},
		"words where none are taken":   {choice, func(s *question.Saying) { s.Option, s.Text = "", "blue" }, problem.Usage},
		"nothing":                      {free, func(s *question.Saying) { s.Option = "" }, problem.Usage},
		"endless":                      {free, func(s *question.Saying) { s.Option, s.Text = "", strings.Repeat("x", question.TextBytesMax+1) }, problem.Usage},
		"not UTF-8":                    {free, func(s *question.Saying) { s.Option, s.Text = "", "\xff" }, problem.Usage},
		"no such question":             {free, func(s *question.Saying) { s.ID = "qst-nowhere0" }, problem.NotFound},
	} {
		tx := put(t, c.of)
		s := saying(c.of, "ada", "1", "")
		c.alter(&s)
		_, err := question.Say(t.Context(), tx, s)
		if want, ok := c.want.(error); ok && !errors.Is(err, want) || !ok && problem.KindOf(err) != c.want {
			t.Errorf("%s: %v", name, err)
		}
		if len(tx.Said) != 0 || tx.Asked[0].Outcome != question.Waiting {
			t.Errorf("%s: it counts: %+v", name, tx)
		}
	}
}

func TestAQuestionThatNobodyCanAnswerOrReadIsNotAsked(t *testing.T) {
	for name, alter := range map[string]func(q *question.Question){
		"no answer at all":   func(q *question.Question) { q.Options, q.Words = nil, false },
		"nobody is needed":   func(q *question.Question) { q.Need = 0 },
		"one option twice":   func(q *question.Question) { q.Options[1].Key = "1" },
		"a reserved option":  func(q *question.Question) { q.Options[1].Key = string(question.Void) },
		"no label":           func(q *question.Question) { q.Options[1].Label = "" },
		"an endless label":   func(q *question.Question) { q.Options[1].Label = strings.Repeat("x", question.LabelBytesMax+1) },
		"an endless card":    func(q *question.Question) { q.Card.Lines = []string{strings.Repeat("x", question.CardBytesMax)} },
		"a card of bytes":    func(q *question.Question) { q.Card.Title = "\xff" },
		"answered already":   func(q *question.Question) { q.Outcome = "1" },
		"the same label":     func(q *question.Question) { q.Options[1].Label = " RED " },
		"a blank label":      func(q *question.Question) { q.Options[1].Label = " " },
		"an option of bytes": func(q *question.Question) { q.Options[1].Label = "\xff" },
		"a key of bytes":     func(q *question.Question) { q.Options[1].Key = "\xff" },
		"another reserved":   func(q *question.Question) { q.Options[1].Key = string(question.Said) },
		"no key":             func(q *question.Question) { q.Options[1].Key = "" },
		"one option too many": func(q *question.Question) {
			var labels []string
			for i := range question.OptionsMax + 1 {
				labels = append(labels, fmt.Sprintf("the %dth", i))
			}
			*q = question.New("cht-1", "?", labels, at)
		},
	} {
		q := question.New("cht-00000001", "which?", []string{"red", "green"}, at)
		alter(&q)
		tx := &questiontest.Table{}
		if err := question.Put(t.Context(), tx, q); problem.KindOf(err) != problem.Refused || len(tx.Asked) != 0 {
			t.Errorf("%s: %v, %+v", name, err, tx.Asked)
		}
	}
	most := question.New("cht-00000001", strings.Repeat("x", question.CardBytesMax), strings.Fields("a b c d e f g h i j k l m n o p q r s t"), at)
	most.Options[0].Label = strings.Repeat("x", question.LabelBytesMax)
	put(t, most)
}

// TestNumbersThatMeanTwoOptionsAreRefusedWhereTheyAreAsked holds that an answer by number is never two answers (CH-096).
func TestNumbersThatMeanTwoOptionsAreRefusedWhereTheyAreAsked(t *testing.T) {
	for _, c := range []struct {
		labels string
		good   bool
	}{
		{"2 1", false},
		{"3 2 5", false},        // 3 is the third too
		{"10 2 30", true},       // 2 is the second either way
		{"1 2 3", true},         // each is its own number
		{"2 3 4", false},        // off by one
		{"10 20 30", true},      // none is a number of an option
		{"two one", true},       //
		{"2nd 1st", true},       //
		{"yes no yes", false},   //
		{"Yes yEs", false},      //
		{"02 01", true},         // what is typed is a number as it is shown
		{"１ ２", true},           // and no other digits
		{"red red,light", true}, // a beginning is no answer
	} {
		tx := &questiontest.Table{}
		q := question.New("cht-00000001", "how many?", strings.Fields(c.labels), at)
		err := question.Put(t.Context(), tx, q)
		if (err == nil) != c.good {
			t.Errorf("%q: %v", c.labels, err)
		}
		if err != nil && (problem.KindOf(err) != problem.Refused || !strings.Contains(err.Error(), "Ask again with labels")) {
			t.Errorf("%q is refused with %v", c.labels, err)
		}
		for i, o := range q.Options {
			if key, _, err := q.Read(fmt.Sprint(i + 1)); c.good && (err != nil || key != o.Key) {
				t.Errorf("%q: %d is read as %q (%v)", c.labels, i+1, key, err)
			}
		}
	}
}

func TestARefusedLabelIsNamedByTheNumberThatWasAsked(t *testing.T) {
	for labels, want := range map[string]string{
		"2 1":         `option 1, "2", cannot be told from another by its number`,
		"no yes yes":  `option 2, "yes", cannot be told from another: its label`,
		"red 4 a 9 2": `option 2, "4", cannot be told from another`,
	} {
		err := question.Put(t.Context(), &questiontest.Table{}, question.New("cht-00000001", "how many?", strings.Fields(labels), at))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is refused with %v, not %s", labels, err, want)
		}
	}
}

func TestALineIsReadAsANumberAnOptionOrWordsAndNeverGuessed(t *testing.T) {
	colours := question.New("cht-00000001", "which?", []string{"red", "Light Green"}, at)
	numbers := question.New("cht-00000001", "how many?", []string{"2", "3"}, at)
	closed := colours
	closed.Words = false
	swap := closed
	swap.Options = []question.Option{{Key: "approve", Label: "land it"}, {Key: "refuse", Label: "do not"}}
	for _, c := range []struct {
		of         question.Question
		line       string
		key, words string
		good       bool
	}{
		{colours, "2", "2", "", true},
		{colours, "  RED ", "1", "", true},
		{colours, "light green", "2", "", true},
		{colours, "3", "", "3", true},
		{colours, "blue, please", "", "blue, please", true},
		{colours, "   ", "", "", false},
		{numbers, "1", "1", "", true},
		{numbers, "3", "2", "", true},
		{numbers, "2", "", "", false}, // the second one, or the one that is "2"?
		{closed, "blue", "", "", false},
		{swap, "2", "refuse", "", true},
		{swap, "Approve", "approve", "", true},
		{swap, "do not", "refuse", "", true},
		{swap, "0", "", "", false},
	} {
		key, words, err := c.of.Read(c.line)
		if key != c.key || words != c.words || (err == nil) != c.good || err != nil && problem.KindOf(err) != problem.Usage {
			t.Errorf("%q is read as %q, %q, %v", c.line, key, words, err)
		}
	}
}

func TestWhatIsWithdrawnTakesNoAnswerAndSaysWhy(t *testing.T) {
	q := question.New("cht-00000001", "which?", []string{"red", "green"}, at)
	tx := put(t, q)
	swap := question.Question{ID: "qst-swap0000", Kind: question.Swap, Subject: q.Subject, Options: q.Options, Need: 1, Asked: at}
	if err := question.Put(t.Context(), tx, swap); err != nil {
		t.Fatal(err)
	}
	for range 2 { // a step may run twice
		if err := errors.Join(question.WithdrawAll(t.Context(), tx, q.Subject, question.Ask, "the session ended", at), question.Withdraw(t.Context(), tx, q.ID, "again", at)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := question.Say(t.Context(), tx, saying(q, "ada", "1", "")); !errors.Is(err, question.ErrEnded) || !strings.Contains(err.Error(), "the session ended") {
		t.Errorf("an answer to it: %v", err)
	}
	one := put(t, q)
	if err := question.Withdraw(t.Context(), one, q.ID, "the change ended", at); err != nil {
		t.Fatal(err)
	}
	if _, err := question.Say(t.Context(), one, saying(q, "ada", "1", "")); !errors.Is(err, question.ErrEnded) || !strings.Contains(err.Error(), "the change ended") {
		t.Errorf("an answer to one that was withdrawn alone: %v", err)
	}
	if err := question.Withdraw(t.Context(), tx, "qst-nowhere0", "", at); problem.KindOf(err) != problem.NotFound {
		t.Errorf("one that is not there: %v", err)
	}
	if open, _ := tx.OpenQuestions(t.Context(), q.Subject); len(open) != 1 || open[0].ID != swap.ID {
		t.Errorf("open: %+v", open)
	}
}

// Whoever answers what in whatever order: each person's first answer that was taken stays, the outcome comes with the answer that
// fulfils the need and with no other, and behind it nothing moves.
func TestAnswersHoldTheirRulesInAnyOrder(t *testing.T) {
	rapidtest.Check(t, func(t *rapid.T) {
		ctx := context.Background()
		q := question.New("cht-00000001", "which?", []string{"a", "b", "c"}, at)
		q.Need, q.Options[2].Alone, q.Words = rapid.IntRange(1, 3).Draw(t, "need"), rapid.Bool().Draw(t, "a no ends it"), rapid.Bool().Draw(t, "words")
		tx := &questiontest.Table{}
		if err := question.Put(ctx, tx, q); err != nil {
			t.Fatal(err)
		}
		chosen, by, outcome := map[string]int{}, map[string]string{}, question.Waiting
		for range rapid.IntRange(1, 20).Draw(t, "answers") {
			name := rapid.SampledFrom([]string{"ada", "bob", "cy", "dan", "eve"}).Draw(t, "who")
			option := rapid.SampledFrom([]string{"", "1", "2", "3"}).Draw(t, "option")
			text := ""
			if option == "" {
				text = rapid.SampledFrom([]string{"x", "y"}).Draw(t, "words")
			}
			before := len(tx.Said)
			now, err := question.Say(ctx, tx, anyOf(saying(q, name, option, text), "ada", "bob", "cy", "dan", "eve"))

			said, answered := by[name]
			taken := outcome == question.Waiting && !answered && (option != "" || q.Words)
			if (err == nil) != taken || len(tx.Said)-before != map[bool]int{true: 1}[taken] {
				t.Fatalf("%s says %q %q: %v, taken should be %v; said is %+v", name, option, text, err, taken, tx.Said)
			}
			if again := answered && said == option+"/"+text; again != errors.Is(err, question.ErrSaid) {
				t.Fatalf("%s says %q, and has said %q: %v", name, option, said, err)
			}
			if taken {
				by[name] = option + "/" + text
				chosen[option]++
				if chosen[option] == q.Need || option == "3" && q.Options[2].Alone {
					if outcome = question.Outcome(option); option == "" {
						outcome = question.Said
					}
				}
			}
			if stored := tx.Asked[0]; stored.Outcome != outcome || (stored.Answer == nil) != (outcome == question.Waiting) || err == nil && now.Outcome != outcome {
				t.Fatalf("the outcome is %q and %q, want %q", stored.Outcome, now.Outcome, outcome)
			}
			if stored := tx.Asked[0]; stored.Answer != nil && fmt.Sprint(*stored.Answer) != fmt.Sprint(tx.Said[len(tx.Said)-1]) {
				t.Fatalf("it is told that %+v ended it, of %+v", stored.Answer, tx.Said)
			}
		}
	})
}

// Who has to be among those who agree, and who may decide at all, is what holds at the moment of the last answer.
func TestAnAnswerCountsByTheNeedOfTheMoment(t *testing.T) {
	need := func(yeses int, must, may []string) right.Need {
		people := func(names []string) (all []id.Person) {
			for _, name := range names {
				all = append(all, id.Person("psn-"+name))
			}
			return all
		}
		return right.Need{Yeses: yeses, Must: people(must), May: people(may)}
	}
	all := []string{"ada", "bob", "cy"}
	for name, c := range map[string]struct {
		says []string // name and option
		need []right.Need
		ends int // the saying with which it ends; 0: none
	}{
		"the one who must is the second":        {[]string{"bob 1", "ada 1"}, []right.Need{need(1, []string{"ada"}, all), need(1, []string{"ada"}, all)}, 2},
		"the one who must says something else":  {[]string{"ada 2", "bob 1", "cy 1"}, []right.Need{need(2, []string{"ada"}, all), need(2, []string{"ada"}, all), need(2, []string{"ada"}, all)}, 0},
		"who lost the right counts no more":     {[]string{"ada 1", "bob 1"}, []right.Need{need(2, nil, all), need(2, nil, []string{"bob", "cy"})}, 0},
		"with one more who has it":              {[]string{"ada 1", "bob 1", "cy 1"}, []right.Need{need(2, nil, all), need(2, nil, []string{"bob", "cy"}), need(2, nil, []string{"bob", "cy"})}, 3},
		"the same again when fewer are needed":  {[]string{"ada 1", "ada 1"}, []right.Need{need(2, nil, all), need(1, nil, all)}, 2},
		"the same again when as many are":       {[]string{"ada 1", "ada 1"}, []right.Need{need(2, nil, all), need(2, nil, all)}, 0},
		"of another than the last when fewer":   {[]string{"ada 1", "bob 2", "ada 1"}, []right.Need{need(2, nil, all), need(2, nil, all), need(1, nil, all)}, 0},
		"the question's own where none is said": {[]string{"ada 1", "bob 1"}, []right.Need{need(0, nil, all), need(0, nil, all)}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			q := question.New("cht-00000001", "which?", []string{"yes", "no"}, at)
			q.Need = 2
			tx := put(t, q)
			for i, line := range c.says {
				who, option, _ := strings.Cut(line, " ")
				s := saying(q, who, option, "")
				s.Need, s.At = c.need[i], at.Add(time.Duration(i)*time.Hour)
				got, err := question.Say(t.Context(), tx, s)
				if ended := tx.Asked[0].Outcome != question.Waiting; ended != (c.ends == i+1) || ended && (err != nil || got.Answer == nil || got.Answer.Option != "1" || !got.Answer.At.Equal(tx.Said[len(tx.Said)-1].At)) {
					t.Fatalf("after %q: %+v, %v", line, got, err)
				}
			}
		})
	}
}

func TestTheSameOptionWithOtherWordsOrAnotherEditIsAnotherAnswer(t *testing.T) {
	q := question.New("cht-00000001", "which?", []string{"yes", "no"}, at)
	q.Need = 2
	tx := put(t, q)
	first := anyOf(saying(q, "ada", "1", "because"), "ada", "bob")
	first.Edit = "sha256:1"
	if _, err := question.Say(t.Context(), tx, first); err != nil {
		t.Fatal(err)
	}
	if _, err := question.Say(t.Context(), tx, first); !errors.Is(err, question.ErrSaid) {
		t.Errorf("the very same: %v", err)
	}
	words, edit := first, first
	words.Text, edit.Edit = "why not", "sha256:2"
	for _, s := range []question.Saying{words, edit} {
		if _, err := question.Say(t.Context(), tx, s); !errors.Is(err, question.ErrAnswered) || !strings.Contains(err.Error(), "ada has answered already, and others are waited for") {
			t.Errorf("%q %q: %v", s.Text, s.Edit, err)
		}
	}
	long := anyOf(saying(q, "bob", "", strings.Repeat("x", question.TextBytesMax)), "bob")
	if _, err := question.Say(t.Context(), tx, long); err != nil {
		t.Errorf("words of the greatest length: %v", err)
	}
}

func TestWhatIsAskedIsShownWhole(t *testing.T) {
	q := question.New("cht-00000001", "which?", []string{"red", "green"}, at)
	q.Card.Lines = []string{"of two"}
	if got, want := q.Text(), "which?\nof two\n1. red\n2. green"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
