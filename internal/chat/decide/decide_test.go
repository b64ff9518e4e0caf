package decide_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/id"
	"sallyport/internal/chat/decide"
)

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// card is one that was opened and delivered a while before noon; how it differs is said.
func card(digits int, asks decide.Asks, change ...func(*decide.Card)) decide.Card {
	shown := noon.Add(-5 * time.Minute)
	c := decide.Card{ID: id.Out(fmt.Sprintf("out-%08d", digits)), Digits: digits, Asks: asks, Entitled: true, Opened: shown, Delivered: &shown}
	switch asks {
	case decide.Promote:
		c.Options = []decide.Option{{Key: "apply", Label: "Apply to template"}, {Key: "keep", Label: "Keep local to echo"}}
	case decide.Question:
		c.Options = []decide.Option{{Key: "1", Label: "red"}, {Key: "2", Label: "Light Green"}, {Key: "3", Label: "approve"}}
	}
	for _, f := range change {
		f(&c)
	}
	return c
}

func ended(ago time.Duration) func(*decide.Card) {
	return func(c *decide.Card) { at := noon.Add(-ago); c.Ended = &at }
}

func opened(ago time.Duration) func(*decide.Card) {
	return func(c *decide.Card) { c.Opened = noon.Add(-ago); at := c.Opened; c.Delivered = &at }
}

func delivered(ago time.Duration) func(*decide.Card) {
	return func(c *decide.Card) { at := noon.Add(-ago); c.Delivered = &at }
}

func unseen(c *decide.Card) { c.Delivered = nil }
func host(c *decide.Card)   { c.Host = true }
func long(c *decide.Card)   { c.Elsewhere = true }
func goesOn(c *decide.Card) { c.Reworks = true }
func talked(c *decide.Card) { c.Talked = true }

// inWords makes a question one that any words answer.
func inWords(c *decide.Card) { c.Options, c.Words = nil, true }

// say is a verdict in a line.
func say(v decide.Verdict) string {
	switch v.Kind {
	case decide.Talk:
		return "talk"
	case decide.Which, decide.Unseen:
		var words []string
		for _, a := range v.Fits {
			words = append(words, a.Words())
		}
		said := string(v.Kind) + " " + strings.Join(words, " or ")
		if v.Missed != nil {
			said += ", missed " + v.Missed.Words()
		}
		return said
	}
	return strings.TrimSpace(fmt.Sprintf("%s %d %s %s", v.Kind, v.Answer.Card.Digits, v.Answer.Does, v.Answer.Option))
}

func TestWordsDecideWhereTheyCanMeanOneCardAloneAndAreNeverGuessed(t *testing.T) {
	approval, trial, promote, asked := card(10, decide.Approval), card(20, decide.Trial), card(30, decide.Promote), card(40, decide.Question)
	for _, c := range []struct {
		text  string
		want  string
		cards []decide.Card
	}{
		// What each kind of card takes, in any case, as a whole message.
		{"approve", "decided 10 approve", []decide.Card{approval}},
		{" Approve\n", "decided 10 approve", []decide.Card{approval}},
		{"1", "decided 10 approve", []decide.Card{approval}},
		{"2", "decided 10 refuse", []decide.Card{approval}},
		{"REFUSE", "decided 10 refuse", []decide.Card{approval}},
		{"confirm", "decided 20 confirm", []decide.Card{trial}},
		{"Rollback", "decided 20 rollback", []decide.Card{trial}},
		{"1", "decided 20 confirm", []decide.Card{trial}},
		{"2", "decided 20 rollback", []decide.Card{trial}},
		{"Reject", "decided 10 refuse", []decide.Card{approval}}, // a no, in other words
		{"roll back", "decided 20 rollback", []decide.Card{trial}},
		{"REVERT", "decided 20 rollback", []decide.Card{trial}},
		{"revert 20", "decided 20 rollback", []decide.Card{trial, card(21, decide.Trial)}},

		// A trial of the host is kept by its code alone (SM-923).
		{"confirm ABCD-EFGH-JKLM", "decided 20 confirm", []decide.Card{card(20, decide.Trial, host)}},
		{" CONFIRM  abcd efgh 2345\n", "decided 20 confirm", []decide.Card{card(20, decide.Trial, host)}},
		{"confirm abcdefgh2345", "decided 20 confirm", []decide.Card{card(20, decide.Trial, host)}},
		{"20 confirm ABCD-EFGH-JKLM", "decided 20 confirm", []decide.Card{card(20, decide.Trial, host)}},
		{"confirm ABCD-EFGH-JKLM 20", "decided 20 confirm", []decide.Card{card(20, decide.Trial, host)}},
		{"confirm AB CD EF GH JK 22", "decided 20 confirm", []decide.Card{card(20, decide.Trial, host), card(22, decide.Trial)}}, // these digits are its own
		{"confirm", "typed 20 confirm", []decide.Card{card(20, decide.Trial, host)}},
		{"1", "typed 20 confirm", []decide.Card{card(20, decide.Trial, host)}},
		{"confirm ABCD-EFGH-JKL", "typed 20 confirm", []decide.Card{card(20, decide.Trial, host)}},  // eleven
		{"confirm ABCD-EFGH-JKLO", "typed 20 confirm", []decide.Card{card(20, decide.Trial, host)}}, // no code has an O
		{"confirm it", "talk", []decide.Card{card(20, decide.Trial, host)}},
		{"please confirm ABCD-EFGH-JKLM", "talk", []decide.Card{card(20, decide.Trial, host)}},
		{"confirm ABCD-EFGH-JKLM", "talk", []decide.Card{trial}},
		{"confirm ABCD-EFGH-JKLM", "talk", []decide.Card{card(20, decide.Approval, host)}},
		{"confirm ABCD-EFGH-JKLM", "decided 20 confirm", []decide.Card{card(20, decide.Trial, host), card(21, decide.Trial)}},
		{"confirm ABCD-EFGH-JKLM", "unseen 20 confirm CODE", []decide.Card{card(20, decide.Trial, host, unseen)}},
		{"confirm ABCD-EFGH-JKLM", "over 20 confirm", []decide.Card{card(20, decide.Trial, host, ended(time.Second))}},
		{"rollback", "decided 20 rollback", []decide.Card{card(20, decide.Trial, host)}},
		{"apply to template", "decided 30 choose apply", []decide.Card{promote}},
		{"Keep local to echo", "decided 30 choose keep", []decide.Card{promote}},
		{"2", "decided 30 choose keep", []decide.Card{promote}},
		{"light green", "decided 40 choose 2", []decide.Card{asked}},
		{"1", "decided 40 choose 1", []decide.Card{asked}},

		// A host's card takes the words that it asks to be typed, and says so.
		{"confirm host", "decided 10 approve", []decide.Card{card(10, decide.Approval, host)}},
		{"CONFIRM HOST", "decided 10 approve", []decide.Card{card(10, decide.Approval, host)}},
		{"approve", "typed 10 approve", []decide.Card{card(10, decide.Approval, host)}},
		{"1", "typed 10 approve", []decide.Card{card(10, decide.Approval, host)}},
		{"refuse", "decided 10 refuse", []decide.Card{card(10, decide.Approval, host)}},
		{"reject", "decided 10 refuse", []decide.Card{card(10, decide.Approval, host)}},
		{"CONFIRM HOST", "talk", []decide.Card{approval}},
		{"CONFIRM HOST", "talk", []decide.Card{trial}},

		// What is said with a no, and what somebody wants different of what an agent goes on with.
		{"refuse: say Hi instead", "decided 10 refuse say Hi instead", []decide.Card{approval}},
		{" Reject :\nsay: Hi ", "decided 10 refuse say: Hi", []decide.Card{approval}},
		{"refuse:", "decided 10 refuse", []decide.Card{approval}},
		{"11 refuse: at most 10", "decided 11 refuse at most 10", []decide.Card{approval, card(11, decide.Approval)}},
		{"refuse: at most 10", "which 10 refuse: … or 11 refuse: …", []decide.Card{approval, card(11, decide.Approval)}},
		{"Change: say Hi, Bob", "decided 10 rework say Hi, Bob", []decide.Card{card(10, decide.Approval, goesOn)}},
		{"10 change: say Hi to 11", "decided 10 rework say Hi to 11", []decide.Card{card(10, decide.Approval, goesOn), card(11, decide.Approval, goesOn)}},
		{"change: say Hi", "decided 10 rework say Hi", []decide.Card{card(10, decide.Approval, goesOn, long, host)}},
		{"change", "wordless 10 rework", []decide.Card{card(10, decide.Approval, goesOn)}},
		{"change: ", "wordless 10 rework", []decide.Card{card(10, decide.Approval, goesOn)}},
		{"change: say Hi", "unseen 10 change: …", []decide.Card{card(10, decide.Approval, goesOn, unseen)}},
		{"change: say Hi", "over 10 rework say Hi", []decide.Card{card(10, decide.Approval, goesOn, ended(time.Minute))}},
		{"change: say Hi", "talk", []decide.Card{approval, trial, promote, asked}},
		{"change it: say Hi", "talk", []decide.Card{card(10, decide.Approval, goesOn)}},
		{"change say Hi", "talk", []decide.Card{card(10, decide.Approval, goesOn)}},
		{"refuse to answer Bob", "talk", []decide.Card{approval}},
		{"2: the other", "talk", []decide.Card{approval}},
		{"approve: as it is", "talk", []decide.Card{approval}},
		{"CONFIRM HOST: yes", "talk", []decide.Card{card(10, decide.Approval, host)}},
		{"rollback: it is slow", "talk", []decide.Card{trial}},

		// What the conversation cannot show whole is refused there, and not approved.
		{"approve", "elsewhere 10 approve", []decide.Card{card(10, decide.Approval, long)}},
		{"CONFIRM HOST", "elsewhere 10 approve", []decide.Card{card(10, decide.Approval, long, host)}},
		{"refuse", "decided 10 refuse", []decide.Card{card(10, decide.Approval, long)}},

		// Anything else is talk.
		{"confirm", "talk", nil},
		{"confirm", "talk", []decide.Card{approval}},
		{"approve", "talk", []decide.Card{trial}},
		{"confirm!", "talk", []decide.Card{trial}},
		{"please confirm", "talk", []decide.Card{trial}},
		{"confirm it", "talk", []decide.Card{trial}},
		{"> confirm", "talk", []decide.Card{trial}},
		{"`confirm`", "talk", []decide.Card{trial}},
		{"confirm\nrollback", "talk", []decide.Card{trial}},
		{"rollbac\u212a", "talk", []decide.Card{trial}},
		{"no", "talk", []decide.Card{approval, trial}},
		{"ok", "talk", []decide.Card{approval, trial}},
		{"approved", "talk", []decide.Card{approval, trial}},
		{"reject", "talk", []decide.Card{trial}},
		{"revert", "talk", []decide.Card{approval}},
		{"reject it", "talk", []decide.Card{approval}},
		{"yes", "talk", []decide.Card{approval, trial}},
		{"3", "talk", []decide.Card{approval, trial}},
		{"01", "talk", []decide.Card{approval}},
		{"", "talk", []decide.Card{approval}},

		// Two that fit are asked back, with names that fit one alone.
		{"1", "which 10 approve or 20 confirm", []decide.Card{approval, trial}},
		{"confirm", "decided 20 confirm", []decide.Card{approval, trial}},
		{"confirm", "which 20 confirm or 21 confirm", []decide.Card{trial, card(21, decide.Trial)}},
		{"approve", "which 10 approve or 40 3", []decide.Card{approval, asked}},
		{"20 confirm", "decided 20 confirm", []decide.Card{trial, card(21, decide.Trial)}},
		{"confirm 21", "decided 21 confirm", []decide.Card{trial, card(21, decide.Trial)}},
		{"21   ROLLBACK", "decided 21 rollback", []decide.Card{trial, card(21, decide.Trial)}},
		{"40 2", "decided 40 choose 2", []decide.Card{asked, card(41, decide.Question)}},
		{"2 40", "talk", []decide.Card{asked, card(41, decide.Question)}},
		{"22 confirm", "talk", []decide.Card{trial, card(21, decide.Trial)}},
		{"confirm   21", "decided 21 confirm", []decide.Card{trial, card(21, decide.Trial)}},
		{"99 confirm", "decided 99 confirm", []decide.Card{trial, card(99, decide.Trial)}},
		{":0 confirm", "talk", []decide.Card{trial, card(100, decide.Trial)}}, // it has no two digits
		{"1", "which 10 approve or 40 1", []decide.Card{approval, asked}},
		{"20 approve", "talk", []decide.Card{trial}},
		{"20", "talk", []decide.Card{trial}},
		{"20confirm", "talk", []decide.Card{trial}},
		{"confirm 20 20", "talk", []decide.Card{trial}},
		{"20 confirm", "decided 20 confirm", []decide.Card{card(20, decide.Trial, ended(time.Hour)), trial}}, // the digits came again

		// What may have answered an agent is asked back, too: any words may, while its question takes them; a number may, after it said something.
		{"10 1", "which 10 approve or 40 10 1", []decide.Card{approval, card(40, decide.Question, inWords)}},
		{"10 1", "decided 10 approve", []decide.Card{approval, card(40, decide.Question, inWords, opened(decide.WordsFor))}},
		{"10 1", "over 10 approve", []decide.Card{card(10, decide.Approval, ended(time.Second)), card(40, decide.Question, inWords)}},
		{"10 1", "unseen 10 approve", []decide.Card{card(10, decide.Approval, unseen), card(40, decide.Question, inWords)}},
		{"10 12", "talk", []decide.Card{approval, card(40, decide.Question, inWords)}},
		{"10 approve", "decided 10 approve", []decide.Card{approval, card(40, decide.Question, inWords)}},
		{"approve", "which 10 approve or 40 approve", []decide.Card{approval, card(40, decide.Question, inWords)}},
		{"1", "which 10 approve or 40 1", []decide.Card{approval, card(40, decide.Question, inWords)}},
		{"2", "which 10 refuse or 40 2", []decide.Card{approval, card(40, decide.Question, inWords)}},
		{"CONFIRM HOST", "which 10 CONFIRM HOST or 40 CONFIRM HOST", []decide.Card{card(10, decide.Approval, host), card(40, decide.Question, inWords)}},
		{"confirm", "which 20 confirm or 41 confirm", []decide.Card{trial, card(40, decide.Question, inWords), card(41, decide.Question, inWords)}},
		{"2", "which 30 2 or 40 2", []decide.Card{promote, card(40, decide.Question, inWords)}},
		{"refuse", "decided 10 refuse", []decide.Card{approval, card(40, decide.Question, inWords)}}, // a no is a no
		{"rollback", "decided 20 rollback", []decide.Card{trial, card(40, decide.Question, inWords)}},
		{"confirm ABCD-EFGH-JKLM", "decided 20 confirm", []decide.Card{card(20, decide.Trial, host), card(40, decide.Question, inWords)}},
		{"10 approve", "decided 10 approve", []decide.Card{approval, card(40, decide.Question, inWords)}},
		{"40 approve", "decided 40 reply approve", []decide.Card{approval, card(40, decide.Question, inWords)}},
		{"approve 40", "decided 40 reply approve", []decide.Card{approval, card(40, decide.Question, inWords)}},
		{"40 minutes", "talk", []decide.Card{approval, card(40, decide.Question, inWords)}}, // and an answer whole
		{"40 approve", "talk", []decide.Card{trial, card(40, decide.Question, inWords)}},    // so is what no card takes
		{"40 approve", "talk", []decide.Card{approval, card(40, decide.Question, inWords, ended(time.Hour))}},
		{"hello", "talk", []decide.Card{approval, card(40, decide.Question, inWords)}},
		{"1", "decided 41 choose 1", []decide.Card{card(40, decide.Question, inWords), card(41, decide.Question)}},
		{"approve", "decided 10 approve", []decide.Card{approval, card(40, decide.Question, inWords, opened(10*time.Minute))}},
		{"approve", "which 10 approve or 40 approve", []decide.Card{approval, card(40, decide.Question, inWords, opened(10*time.Minute-time.Second))}},
		{"approve", "decided 10 approve", []decide.Card{approval, card(40, decide.Question, inWords, opened(-time.Second))}},
		{"approve", "decided 10 approve", []decide.Card{approval, card(40, decide.Question, inWords, ended(time.Second))}},
		{"1", "which 10 approve", []decide.Card{card(10, decide.Approval, talked)}},
		{"2", "which 20 rollback", []decide.Card{card(20, decide.Trial, talked)}},
		{"10 1", "which 10 approve", []decide.Card{card(10, decide.Approval, talked)}},
		{"10 approve", "decided 10 approve", []decide.Card{card(10, decide.Approval, talked)}},
		{"approve", "which 10 approve", []decide.Card{card(10, decide.Approval, talked)}},
		{"refuse", "decided 10 refuse", []decide.Card{card(10, decide.Approval, talked)}},
		{"1", "decided 40 choose 1", []decide.Card{card(40, decide.Question, talked)}},

		// It counts for what was delivered here before it was received.
		{"confirm", "unseen 20 confirm", []decide.Card{card(20, decide.Trial, unseen)}},
		{"confirm", "unseen 20 confirm", []decide.Card{card(20, decide.Trial, delivered(-time.Millisecond))}},
		{"confirm", "decided 20 confirm", []decide.Card{card(20, decide.Trial, delivered(0))}},
		{"20 confirm", "unseen 20 confirm", []decide.Card{card(20, decide.Trial, unseen)}},
		{"confirm", "talk", []decide.Card{card(20, decide.Trial, opened(-time.Second))}},
		{"20 confirm", "talk", []decide.Card{card(20, decide.Trial, opened(-time.Second))}},
		{"approve", "unseen 10 approve", []decide.Card{card(10, decide.Approval, unseen, long)}},

		// Another that has opened or ended within a minute may have been meant.
		{"confirm", "which 20 confirm or 21 confirm", []decide.Card{trial, card(21, decide.Trial, opened(59*time.Second), unseen)}},
		{"confirm", "decided 20 confirm", []decide.Card{trial, card(21, decide.Trial, opened(time.Minute), unseen)}},
		{"confirm", "which 21 confirm, missed 20 confirm", []decide.Card{card(20, decide.Trial, ended(59*time.Second)), card(21, decide.Trial)}},
		{"21 confirm", "decided 21 confirm", []decide.Card{card(20, decide.Trial, ended(time.Second)), card(21, decide.Trial)}},
		{"confirm", "decided 21 confirm", []decide.Card{card(20, decide.Trial, ended(time.Second), unseen), card(21, decide.Trial)}},
		{"confirm", "decided 21 confirm", []decide.Card{card(20, decide.Trial, ended(time.Minute)), card(21, decide.Trial)}},
		{"confirm", "decided 21 confirm", []decide.Card{card(10, decide.Approval, ended(time.Second)), card(21, decide.Trial)}},
		{"1", "which 21 confirm, missed 10 approve", []decide.Card{card(10, decide.Approval, ended(time.Second)), card(21, decide.Trial)}},
		{"1", "which 10 approve, missed 40 1", []decide.Card{card(40, decide.Question, ended(time.Second)), approval}},
		{"1", "which 41 1, missed 10 approve", []decide.Card{card(10, decide.Approval, ended(time.Second)), card(41, decide.Question)}},
		{"confirm", "decided 21 confirm", []decide.Card{card(20, decide.Trial, ended(30*time.Second), delivered(10*time.Second)), card(21, decide.Trial)}}, // it came when it was over
		{"2", "which 30 2, missed 20 rollback", []decide.Card{card(10, decide.Approval, ended(2*time.Second)), card(20, decide.Trial, ended(time.Second)), promote}},
		{"1", "decided 41 choose 1", []decide.Card{card(40, decide.Question, ended(time.Second)), card(41, decide.Question)}},
		{"confirm", "decided 20 confirm", []decide.Card{card(20, decide.Trial, opened(time.Second))}}, // it alone: nothing else can be meant

		// An old card says how it has ended.
		{"confirm", "over 20 confirm", []decide.Card{card(20, decide.Trial, ended(0))}},
		{"confirm", "over 20 confirm", []decide.Card{card(20, decide.Trial, ended(9*time.Minute))}},
		{"confirm", "talk", []decide.Card{card(20, decide.Trial, ended(10*time.Minute))}},
		{"20 confirm", "over 20 confirm", []decide.Card{card(20, decide.Trial, ended(time.Hour))}},
		{"1", "over 20 confirm", []decide.Card{card(20, decide.Trial, ended(59*time.Second))}},
		{"1", "talk", []decide.Card{card(20, decide.Trial, ended(time.Minute))}},
		{"approve", "over 11 approve", []decide.Card{card(10, decide.Approval, ended(2*time.Minute)), card(11, decide.Approval, ended(time.Minute))}},
		{"red", "talk", []decide.Card{card(40, decide.Question, ended(time.Second))}},
		{"confirm", "decided 20 confirm", []decide.Card{card(20, decide.Trial, ended(-time.Second))}}, // it stood when it was received
	} {
		w := decide.Word{Text: c.text, Received: noon}
		if got := say(decide.Decide(w, c.cards)); got != c.want {
			t.Errorf("%q to %d cards, the first of %s: %s, not %s", c.text, len(c.cards), first(c.cards), got, c.want)
		}
	}
}

func first(cards []decide.Card) string {
	if len(cards) == 0 {
		return "none"
	}
	return fmt.Sprintf("%s %d", cards[0].Asks, cards[0].Digits)
}

func TestWordsOfOthersAndWordsThatWereNotSaidHereAreTalk(t *testing.T) {
	cards := []decide.Card{card(10, decide.Approval), card(20, decide.Trial), card(30, decide.Trial, ended(time.Second))}
	for name, change := range map[string]func(*decide.Word){
		"in a quote": func(w *decide.Word) { w.Quoted = true },
		"forwarded":  func(w *decide.Word) { w.Forwarded = true },
		"edited":     func(w *decide.Word) { w.Edited = true },
		"from a bot": func(w *decide.Word) { w.Bot = true },
	} {
		for _, text := range []string{"confirm", "approve", "1", "20 confirm", "30 confirm", "CONFIRM HOST"} {
			w := decide.Word{Text: text, Received: noon}
			change(&w)
			if v := decide.Decide(w, cards); v.Kind != decide.Talk {
				t.Errorf("%s, %q: %s", name, text, say(v))
			}
		}
	}
}

// TestWordsThatNearlyDecideAreTalkAndTold: a trial runs out while its person believes to have said it.
func TestWordsThatNearlyDecideAreTalkAndTold(t *testing.T) {
	trial, approval := card(20, decide.Trial), card(10, decide.Approval)
	for _, c := range []struct {
		text  string
		want  string
		cards []decide.Card
	}{
		{"Confirm!", "20 confirm", []decide.Card{trial}},
		{"`confirm`", "20 confirm", []decide.Card{trial}},
		{"approve.", "10 approve", []decide.Card{approval, trial}},
		{"\"Rollback\"", "20 rollback", []decide.Card{trial}},
		{"17 approve", "10 approve", []decide.Card{approval}},
		{"confirm!", "20 confirm CODE", []decide.Card{card(20, decide.Trial, host)}},
		{"confirm", "", []decide.Card{trial}}, // it decides
		{"1.", "", []decide.Card{approval}},
		{"yes!", "", []decide.Card{trial}},
		{"please confirm.", "", []decide.Card{trial}},
		{"approve.", "", []decide.Card{card(40, decide.Question)}},
		{"approve.", "", []decide.Card{approval, card(11, decide.Approval)}},
		{"approve.", "", nil},
		{"10 approv", "10 approve, 10 refuse", []decide.Card{approval, trial}},
		{"aprove 10", "10 approve, 10 refuse", []decide.Card{approval, trial}},
		{"20 9", "20 confirm, 20 rollback", []decide.Card{approval, trial}},
		{"20 yes", "20 confirm CODE, 20 rollback", []decide.Card{card(20, decide.Trial, host)}},
		{"10 yes", "10 CONFIRM HOST, 10 refuse", []decide.Card{card(10, decide.Approval, host)}},
		{"10 yes", "10 refuse", []decide.Card{card(10, decide.Approval, long)}},
		{"30 yes", "30 1, 30 2", []decide.Card{card(30, decide.Promote)}},
		{"10 bags of flour", "", []decide.Card{approval}},
		{"40 years", "", []decide.Card{card(40, decide.Question)}},
		{"20 yes", "", []decide.Card{card(20, decide.Trial, ended(time.Second))}},
		{"20 yes", "", []decide.Card{card(20, decide.Trial, unseen)}},
		{"20 yes", "", []decide.Card{card(20, decide.Trial, func(c *decide.Card) { c.Entitled = false })}},
	} {
		w, said := decide.Word{Text: c.text, Received: noon}, ""
		bot := w
		bot.Bot = true
		if all := decide.Nearly(bot, c.cards); all != nil {
			t.Errorf("a program's %q is nearly %v", c.text, all)
		}
		for _, a := range decide.Nearly(w, c.cards) {
			said = strings.TrimPrefix(said+", "+a.Words(), ", ")
		}
		if said != c.want {
			t.Errorf("%q is nearly %q, want %q", c.text, said, c.want)
		}
	}
}

// Whoever answers to a card where it stands means that one: others that the words would fit are no matter, and its digits may be said too.
func TestWordsThatAnswerToACardAreAboutItAlone(t *testing.T) {
	not := func(c *decide.Card) { c.Entitled = false }
	cards := []decide.Card{card(20, decide.Trial), card(21, decide.Trial, opened(time.Second)), card(22, decide.Trial, ended(time.Second)),
		card(23, decide.Trial, unseen), card(24, decide.Trial, not), card(25, decide.Approval, host),
		card(27, decide.Question, inWords), card(28, decide.Question, inWords, ended(time.Hour)), card(29, decide.Question, inWords)}
	for _, c := range []struct {
		to   int
		text string
		want string
	}{
		{20, "confirm", "decided 20 confirm"}, {20, "2", "decided 20 rollback"}, {20, "20 confirm", "decided 20 confirm"}, {21, "confirm", "decided 21 confirm"},
		{20, "21 confirm", "talk"}, {20, "approve", "talk"}, {20, "thanks", "talk"}, {22, "confirm", "over 22 confirm"}, {23, "confirm", "unseen 23 confirm"},
		{24, "confirm", "talk"}, {25, "approve", "typed 25 approve"}, {25, "confirm", "talk"}, {26, "confirm", "talk"},
		{27, "confirm", "decided 27 reply confirm"}, {27, "27 minutes", "decided 27 reply 27 minutes"}, {27, "27 confirm", "decided 27 reply confirm"}, {28, "confirm", "talk"}, {20, "confirm", "decided 20 confirm"},
	} {
		w := decide.Word{Text: c.text, Received: noon, To: card(c.to, decide.Trial).ID}
		if got := strings.TrimSpace(say(decide.Decide(w, cards))); got != c.want {
			t.Errorf("%q to %d: %s, not %s", c.text, c.to, got, c.want)
		}
		w.Edited = true
		if got := say(decide.Decide(w, cards)); got != "talk" {
			t.Errorf("%q to %d, edited: %s", c.text, c.to, got)
		}
	}
}

// Who may decide about one card alone, such as the trial of what they asked for, decides about no other by their words.
func TestWordsReachOnlyTheCardsThatWhoSpeaksMayDecideAbout(t *testing.T) {
	not := func(c *decide.Card) { c.Entitled = false }
	approval, trial, promote := card(10, decide.Approval, not), card(20, decide.Trial), card(30, decide.Promote, not)
	for text, want := range map[string]string{
		"approve": "talk", "CONFIRM HOST": "talk", "10 approve": "talk", "apply to template": "talk", "30 1": "talk",
		"confirm": "decided 20 confirm", "rollback": "decided 20 rollback", "1": "decided 20 confirm", "20 2": "decided 20 rollback",
	} {
		if got := say(decide.Decide(decide.Word{Text: text, Received: noon}, []decide.Card{approval, trial, promote})); got != want {
			t.Errorf("%q: %s, not %s", text, got, want)
		}
	}
	for _, text := range []string{"confirm", "1", "20 confirm", "rollback"} {
		if got := say(decide.Decide(decide.Word{Text: text, Received: noon}, []decide.Card{card(20, decide.Trial, not), card(21, decide.Trial, not, ended(time.Second))})); got != "talk" {
			t.Errorf("%q from nobody who may: %s", text, got)
		}
	}
}

// A label that fits two options of one question is none of them.
func TestWordsThatFitTwoOptionsOfACardDoNothing(t *testing.T) {
	two := card(40, decide.Question, func(c *decide.Card) {
		c.Options = []decide.Option{{Key: "1", Label: "2"}, {Key: "2", Label: "3"}}
	})
	for text, want := range map[string]string{"1": "decided 40 choose 1", "2": "talk", "3": "decided 40 choose 2"} {
		if got := say(decide.Decide(decide.Word{Text: text, Received: noon}, []decide.Card{two})); got != want {
			t.Errorf("%q: %s, not %s", text, got, want)
		}
	}
}

// FuzzNothingButAListedMessageDecides holds that whatever is said, only the whole messages that are listed here decide anything.
func FuzzNothingButAListedMessageDecides(f *testing.F) {
	for _, seed := range []string{"confirm", "rollback", "approve", "CONFIRM HOST", "1", "20 confirm", "confirm 20", "Apply to template", "confirm\x00", "10 1", "refuse: 11", "10 change: no", "change 10", "ｃonfirm", "con\u200bfirm", "confirm ABCD-EFGH-JKLM", "20 confirm abcd efgh 2345", "confirm appointments"} {
		f.Add(seed, uint8(0))
	}
	f.Fuzz(func(t *testing.T, text string, open uint8) {
		all := []decide.Card{card(10, decide.Approval, goesOn), card(11, decide.Approval, host), card(20, decide.Trial), card(30, decide.Promote), card(40, decide.Trial, host)}
		var cards []decide.Card
		for i, c := range all {
			if open&(1<<i) == 0 {
				cards = append(cards, c)
			}
		}
		v := decide.Decide(decide.Word{Text: text, Received: noon}, cards)
		if v.Kind == decide.Talk {
			return
		}
		if _, like := decide.Code(text); like && strings.Contains(strings.ToUpper(text), "CONFIRM") {
			return
		}
		listed := strings.ToUpper(strings.TrimSpace(text))
		if word, _, ok := strings.Cut(listed, ":"); ok { // more stands behind it
			word = strings.TrimSpace(word)
			for _, name := range []string{"", "10 ", "11 "} {
				if rest, ok := strings.CutPrefix(word, name); ok && slices.Contains([]string{"REFUSE", "REJECT", "CHANGE"}, strings.TrimSpace(rest)) {
					return
				}
			}
		}
		for _, name := range []string{"10", "11", "20", "30", "40"} {
			if rest, ok := strings.CutPrefix(listed, name+" "); ok {
				listed = strings.TrimSpace(rest)
				break
			}
			if rest, ok := strings.CutSuffix(listed, " "+name); ok {
				listed = strings.TrimSpace(rest)
				break
			}
		}
		if !slices.Contains([]string{"1", "2", "APPROVE", "REFUSE", "REJECT", "CHANGE", "CONFIRM", "ROLLBACK", "ROLL BACK", "REVERT", "CONFIRM HOST", "APPLY", "APPLY TO TEMPLATE", "KEEP", "KEEP LOCAL TO ECHO"}, listed) {
			t.Errorf("%q is %s", text, say(v))
		}
	})
}

// What a person is told to say for something is what does it.
func TestTheWordThatAPersonIsToldIsOneThatDecides(t *testing.T) {
	for _, test := range []struct {
		does decide.Does
		host bool
		word string
		card decide.Card
	}{
		{decide.Approve, false, "approve", card(10, decide.Approval)},
		{decide.Approve, true, "CONFIRM HOST", card(10, decide.Approval, host)},
		{decide.Refuse, false, "refuse", card(10, decide.Approval)},
		{decide.Refuse, true, "refuse", card(10, decide.Approval, host)},
		{decide.Rework, false, "change", card(10, decide.Approval, goesOn)},
		{decide.Confirm, false, "confirm", card(10, decide.Trial)},
		{decide.RollBack, false, "rollback", card(10, decide.Trial)},
	} {
		word := decide.Say(test.does, test.host)
		said, want := word, "decided 10 "+string(test.does)
		if test.does == decide.Rework {
			said, want = word+": Hi", want+" Hi"
		}
		if got := say(decide.Decide(decide.Word{Text: said, Received: noon}, []decide.Card{test.card})); word != test.word || got != want {
			t.Errorf("%s: %q is %s", test.does, word, got)
		}
	}
}

// TestAPressDoesWhatAButtonOfItsCardShowsAndNothingElse holds CH-904 and CH-905.
func TestAPressDoesWhatAButtonOfItsCardShowsAndNothingElse(t *testing.T) {
	stranger := func(c *decide.Card) { c.Entitled = false }
	for _, test := range []struct {
		name, key string
		of        int
		bot       bool
		card      decide.Card
		want      string
	}{
		{"approve", "approve", 11, false, card(11, decide.Approval), "decided 11 approve"},
		{"refuse", "refuse", 11, false, card(11, decide.Approval), "decided 11 refuse"},
		{"nobody needs to have been shown it: it was pressed", "approve", 11, false, card(11, decide.Approval, unseen), "decided 11 approve"},
		{"confirm", "confirm", 11, false, card(11, decide.Trial), "decided 11 confirm"},
		{"roll back", "rollback", 11, false, card(11, decide.Trial), "decided 11 rollback"},
		{"an option", "keep", 11, false, card(11, decide.Promote), "decided 11 choose keep"},
		{"an answer", "2", 11, false, card(11, decide.Question), "decided 11 choose 2"},

		{"one who may not", "approve", 11, false, card(11, decide.Approval, stranger), "talk"},
		{"a bot", "approve", 11, true, card(11, decide.Approval), "talk"},
		{"another card", "approve", 12, false, card(11, decide.Approval), "talk"},
		{"no button of it", "confirm", 11, false, card(11, decide.Approval), "talk"},
		{"words that are typed", "1", 11, false, card(11, decide.Approval), "talk"},
		{"the host's yes, which is typed", "CONFIRM HOST", 11, false, card(11, decide.Approval, host), "talk"},
		{"a plain yes to the host", "approve", 11, false, card(11, decide.Approval, host), "talk"},
		{"a plain confirm of the host", "confirm", 11, false, card(11, decide.Trial, host), "talk"},
		{"a no to the host", "refuse", 11, false, card(11, decide.Approval, host), "decided 11 refuse"},
		{"a yes to what is not shown whole", "approve", 11, false, card(11, decide.Approval, long), "talk"},
		{"an old card", "approve", 11, false, card(11, decide.Approval, ended(time.Hour)), "over 11 approve"},
		{"words that are none, to an old card", "what", 11, false, card(11, decide.Approval, ended(time.Hour)), "talk"},
		{"an old card, by one who may not", "approve", 11, false, card(11, decide.Approval, ended(time.Hour), stranger), "talk"},
	} {
		w := decide.Word{Text: test.key, Received: noon, Bot: test.bot}
		if got := say(decide.Press(w, id.Out(fmt.Sprintf("out-%08d", test.of)), []decide.Card{test.card})); got != test.want {
			t.Errorf("%s: %s, not %s", test.name, got, test.want)
		}
	}
}

// TestACardHasAButtonForEachAnswerThatIsNotTyped holds SM-084 and SM-909: no button gives a yes that is typed, or given elsewhere.
func TestACardHasAButtonForEachAnswerThatIsNotTyped(t *testing.T) {
	for name, test := range map[string]struct {
		card decide.Card
		want string
	}{
		"an approval":                {card(11, decide.Approval), "approve refuse"},
		"of the host":                {card(11, decide.Approval, host), "refuse"},
		"that an agent goes on with": {card(11, decide.Approval, goesOn), "approve refuse"},
		"that is not shown whole":    {card(11, decide.Approval, long), "refuse"},
		"a trial":                    {card(11, decide.Trial), "confirm rollback"},
		"a trial of the host":        {card(11, decide.Trial, host), "rollback"},
		"a promotion":                {card(11, decide.Promote), "apply keep"},
		"an agent's question":        {card(11, decide.Question), "1 2 3"},
		"a question in words alone":  {decide.Card{Asks: decide.Question}, ""},
	} {
		var keys []string
		for _, o := range test.card.Buttons() {
			keys = append(keys, o.Key)
		}
		if got := strings.Join(keys, " "); got != test.want {
			t.Errorf("%s has %q, not %q", name, got, test.want)
		}
	}
}

// TestWordsThatAreMeantForACodeAreKnownHoweverTheyWereCopied holds SM-923: what is read as a code, and what is kept out of all that is stored.
func TestWordsThatAreMeantForACodeAreKnownHoweverTheyWereCopied(t *testing.T) {
	for text, want := range map[string]struct {
		code string
		like bool
	}{
		"confirm ABCD-EFGH-JKLM":    {"ABCD-EFGH-JKLM", true},
		"20 confirm ABCD-EFGH-JKLM": {"ABCD-EFGH-JKLM", true},
		"confirm ABCD-EFGH-JKLM 20": {"ABCD-EFGH-JKLM", true},
		"confirm ABCD EFGH JK 22":   {"ABCD EFGH JK 22", true}, // the end of the code, and no card's name
		"confirm ABCD-EFGH-JKLM ok": {"ABCD-EFGH-JKLM ok", true},
		"confirm 20":                {"20", false},
		"confirm 09AZaz0":           {"09AZaz0", false},
		"confirm 09AZaz09":          {"09AZaz09", true},
		"confirm 0123456789abcdef":  {"0123456789abcdef", true},
		"confirm 0123456789abcdefg": {"0123456789abcdefg", false},
		"confirm ABCD/FGHJ":         {"ABCD/FGHJ", false},
		"confirm ABCD:FGHJ":         {"ABCD:FGHJ", false},
		"confirm ABCD@FGHJ":         {"ABCD@FGHJ", false},
		"confirm ABCD[FGHJ":         {"ABCD[FGHJ", false},
		"confirm ABCD{FGHJ":         {"ABCD{FGHJ", false},
		"confirm !ABCDFGHJ":         {"!ABCDFGHJ", false},
		"confirm":                   {},
		"ABCD-EFGH-JKLM":            {},
	} {
		if code, like := decide.Code(text); code != want.code || like != want.like {
			t.Errorf("%q: %q, %t", text, code, like)
		}
	}
}

// TestNothingIsKeptOfACode holds SM-923: while somebody may know one, words are kept without it.
func TestNothingIsKeptOfACode(t *testing.T) {
	for text, want := range map[string]string{
		"confirm ABCD-EFGH-JKLM":                          "confirm ••••",
		" 20 Confirm abcd efgh 2345":                      "confirm ••••",
		"confirm ABCD-EFGH-JKL":                           "confirm ••••", // mistyped
		"confirm ABCDEFGHJKLMN":                           "confirm ••••",
		"This code keeps chg-1: ABCD-EFGH-JKLM\nReply it": "This code keeps chg-1: ••••\nReply it",
		"is it abcd-efgh-2345?":                           "is it ••••?",
		"is it ABCD EFGH 2345, or ABCDEFGH2345":           "is it ••••, or ••••",
		"confirm ABCD–EFGH–JKLM":                          "confirm ••••", // as a telephone writes it
		"Confirm `ABCD\u2011EFGH\u2011JKLM`":              "confirm ••••",
		"is it ABCD–EFGH – JKLM or ABCD\u00a0EFGH\nJKLM?": "is it •••• or ••••?",
		"I confirm it with abcd efgh 2345 now":            "I confirm it with •••• now",
		"confirm abcd–efgh–2345 please":                   "confirm •••• please",
		"confirm":                                         "confirm",
		"confirm it all":                                  "confirm it all",
		"then make that work, will you":                   "then make that work, will you",
		"please confirm that this is so":                  "please confirm that this is so",
		"chg-abcd2345 is ABCD-EFGH":                       "chg-abcd2345 is ABCD-EFGH",
		"c9xzurj8qvuj":                                    "••••",
		"is it c9xz urj8 qvuj?":                           "is it ••••?",
		"that were c9xz urj8 qvuj then":                   "••••", // what could be a part of one goes, too
		"acknowledges a bench-pressed leak":               "acknowledges a bench-pressed leak",
	} {
		if got := decide.Hush(text); got != want {
			t.Errorf("of %q is kept %q", text, got)
		}
	}
}
