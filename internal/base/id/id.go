// Package id makes and reads the names that cross a process border.
//
// Every id carries its kind as a prefix, so that a person who pastes the wrong
// one is told what they pasted and what was wanted.
package id

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strings"
	"time"

	"sallyport/internal/base/problem"
)

// The kinds of id. A session's identity is `<slug>-<5 base36>` and has no prefix (RM-024).
type (
	Change     string // chg-<8 base36>
	Approval   string // apr-<8 base36>
	Landing    string // lnd-<8 base36>
	Checkpoint string // ckpt-<3 or more digits>-<first 8 hex of its commit> (SV-041)
	Session    string // <slug>-<5 base36>
	Person     string // psn-<8 base36>
	Question   string // qst-<8 base36>

	Conversation string // cnv-<8 base36>
	Chat         string // cht-<8 base36>: a group in a conversation
	Message      string // msg-<10 base36>: one that reaches a group
	Out          string // out-<10 base36>: one that leaves it
	Task         string // tsk-<8 base36>: what a schedule wakes a group with
)

// Subject is what a session, a question or a cost belongs to: the id of a change or of a chat session.
type Subject string

const base36 = "0123456789abcdefghijklmnopqrstuvwxyz"

// random returns n base36 characters from the system's random source.
func random(n int) string {
	raw := make([]byte, n)
	out := make([]byte, n)
	for i := 0; i < n; {
		if _, err := rand.Read(raw); err != nil {
			panic("no randomness from the system: " + err.Error()) // crypto/rand never returns one on Linux
		}
		for _, b := range raw {
			if b >= 252 { // 252 = 7*36: beyond it the first letters would come up more often
				continue
			}
			out[i] = base36[b%36]
			if i++; i == n {
				break
			}
		}
	}
	return string(out)
}

// recent returns two base36 characters that are the same for ten seconds. There are many messages, and so the newest stand together in an
// index: a thousand of them change few of its pages, not a page each.
func recent(now time.Time) string {
	const n = uint64(len(base36))
	at := uint64(now.Unix()) / 10 % (n * n) // of a clock before 1970, too
	return string([]byte{base36[at/n], base36[at%n]})
}

// Change returns the change that a subject is; false if it is a chat.
func (s Subject) Change() (Change, bool) { return Change(s), strings.HasPrefix(string(s), "chg-") }

// Subject is what sessions of a change run for.
func (c Change) Subject() Subject { return Subject(c) }

// Subject is what sessions of a chat run for.
func (c Chat) Subject() Subject { return Subject(c) }

func NewConversation() Conversation { return Conversation("cnv-" + random(8)) }
func NewChat() Chat                 { return Chat("cht-" + random(8)) }
func NewMessage() Message           { return Message("msg-" + recent(time.Now()) + random(8)) }
func NewOut() Out                   { return Out("out-" + recent(time.Now()) + random(8)) }
func NewTask() Task                 { return Task("tsk-" + random(8)) }

// TaskOf is the same for the same call of a tool, by its key.
func TaskOf(key string) Task { return Task("tsk-" + same(key)) }

// QuestionOf is the same for the same matter, by its key.
func QuestionOf(key string) Question { return Question("qst-" + same(key)) }

// ChangeOf is the same for the same call of a tool, by its key.
func ChangeOf(key string) Change { return Change("chg-" + same(key)) }

// same is as long as what random makes, and the same for the same key.
func same(key string) string {
	sum := sha256.Sum256([]byte(key))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:8])
}

func NewChange() Change     { return Change("chg-" + random(8)) }
func NewApproval() Approval { return Approval("apr-" + random(8)) }
func NewLanding() Landing   { return Landing("lnd-" + random(8)) }
func NewPerson() Person     { return Person("psn-" + random(8)) }
func NewQuestion() Question { return Question("qst-" + random(8)) }

// NewCheckpoint names the nth checkpoint of a change after its commit.
func NewCheckpoint(n int, commit string) Checkpoint {
	return Checkpoint(fmt.Sprintf("ckpt-%03d-%.8s", n, commit))
}

// NewSession returns an identity for one launch of the named agent.
func NewSession(agent string) Session {
	return Session(Slug(agent) + "-" + random(5))
}

// Slug folds a name to lower-case letters, digits and single dashes, at most 32 characters; "agent" if nothing is left.
func Slug(name string) string {
	var b strings.Builder
	dash := false
	for _, r := range strings.ToLower(name) {
		if !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9') {
			dash = b.Len() > 0
			continue
		}
		if dash && b.Len() < slugMax-1 {
			b.WriteByte('-')
		}
		dash = false
		if b.WriteRune(r); b.Len() == slugMax {
			break
		}
	}
	if b.Len() == 0 {
		return "agent"
	}
	return b.String()
}

const slugMax = 32

var kinds = []struct{ prefix, noun, list string }{
	{"chg-", "change", "sallyport change list"},
	{"apr-", "approval", "sallyport approval list"},
	{"ckpt-", "checkpoint", "sallyport checkpoint list CHANGE"},
	{"lnd-", "landing", "sallyport change list"},
	{"cht-", "chat", "sallyport session list"},
	{"msg-", "message", "sallyport message list"},
	{"tsk-", "task", "sallyport schedule list"},
	{"cnv-", "conversation", "sallyport wiring list"},
	{"psn-", "person", "sallyport person list"},
	{"qst-", "question", "sallyport approval list"},
}

// Each of these returns s if it is an id of its kind; a usage error naming both kinds otherwise.
func ParseChange(s string) (Change, error)             { return parse[Change]("chg-", s) }
func ParseApproval(s string) (Approval, error)         { return parse[Approval]("apr-", s) }
func ParseLanding(s string) (Landing, error)           { return parse[Landing]("lnd-", s) }
func ParseCheckpoint(s string) (Checkpoint, error)     { return parse[Checkpoint]("ckpt-", s) }
func ParseQuestion(s string) (Question, error)         { return parse[Question]("qst-", s) }
func ParseMessage(s string) (Message, error)           { return parse[Message]("msg-", s) }
func ParseTask(s string) (Task, error)                 { return parse[Task]("tsk-", s) }
func ParseConversation(s string) (Conversation, error) { return parse[Conversation]("cnv-", s) }
func ParseChat(s string) (Chat, error)                 { return parse[Chat]("cht-", s) }

// ParseSession returns s if it is a session's identity; a usage error otherwise, which says what it is if it is the id of something else.
func ParseSession(s string) (Session, error) {
	at := strings.LastIndexByte(s, '-')
	if at > 0 && at <= slugMax && len(s)-at-1 == 5 && strings.Trim(s[at+1:], base36) == "" && Slug(s[:at]) == s[:at] {
		return Session(s), nil
	}
	if got := KindOf(s); got != "" {
		return "", problem.Errorf(problem.Usage, "sallyport change list",
			"%q is the id of %s; the identity of a session was wanted (sh-1a2b3)", s, article(got))
	}
	return "", problem.Errorf(problem.Usage, "sallyport change list", "%q is not the identity of a session (sh-1a2b3)", s)
}

// KindOf returns the noun of an id's prefix, or "" if it has none.
func KindOf(s string) string {
	for _, k := range kinds {
		if strings.HasPrefix(s, k.prefix) {
			return k.noun
		}
	}
	return ""
}

// parse returns s if it is an id with prefix.
func parse[T ~string](prefix, s string) (T, error) {
	var want struct{ prefix, noun, list string }
	for _, k := range kinds {
		if k.prefix == prefix {
			want = k
		}
	}
	body, ok := strings.CutPrefix(s, prefix)
	if ok && strings.Trim(body, "-") != "" && len(s) <= 64 && strings.Trim(body, base36+"-") == "" {
		return T(s), nil
	}
	if got := KindOf(s); got != "" && got != want.noun {
		next := want.list
		if got == "change" {
			if change, err := ParseChange(s); err == nil {
				next = strings.Replace(next, "CHANGE", string(change), 1)
			}
		}
		return "", problem.Errorf(problem.Usage, next, "%.80q is the id of %s; %s was wanted (%s…)", s, article(got), article(want.noun), prefix)
	}
	return "", problem.Errorf(problem.Usage, want.list, "%.80q is not the id of %s (%s…)", s, article(want.noun), prefix)
}

// article returns a noun with its article.
func article(noun string) string {
	if strings.ContainsRune("aeiou", rune(noun[0])) {
		return "an " + noun
	}
	return "a " + noun
}
