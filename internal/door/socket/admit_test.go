package socket

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
	"sallyport/internal/drive/dispatch"
	"sallyport/internal/who/question"
)

// strangers are the questions about strangers and places, by hand.
type strangers struct {
	Places
	waits, over []question.Question
	told        []string
}

func (p *strangers) Waiting(context.Context) ([]question.Question, error)       { return p.waits, nil }
func (p *strangers) Answered(context.Context, int) ([]question.Question, error) { return p.over, nil }

func (p *strangers) Question(_ context.Context, of id.Question) (question.Question, error) {
	for _, q := range append(p.waits, p.over...) {
		if q.ID == of {
			return q, nil
		}
	}
	return question.Question{}, problem.Errorf(problem.NotFound, "sallyport approval list", "there is no %s", of)
}

func (p *strangers) Answer(_ context.Context, of id.Question, words string, by audit.Actor) (string, error) {
	p.told = append(p.told, fmt.Sprintf("%s %s %d", of, words, by.UID))
	return "it is done", nil
}

// TestQuestionsAboutStrangersAreListedShownAndAnswered holds CH-058: what waits, and with all of them what was answered, by whom and how.
func TestQuestionsAboutStrangersAreListedShownAndAnswered(t *testing.T) {
	asked := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	ask := func(n int, kind question.Kind, chosen, void string) question.Question {
		q := question.New("cht-00000001", "🙋 somebody", nil, asked.Add(-time.Duration(n)*time.Minute))
		q.ID, q.Kind, q.Words = id.Question(fmt.Sprintf("qst-0000000%d", n)), kind, false
		q.Card.Lines = []string{"They said: “hi”"}
		q.Options = []question.Option{{Key: "allow", Label: "Allow"}, {Key: dispatch.CreateNew, Label: "➕"}, {Key: "deny", Label: "Deny", Alone: true}}
		q.Outcome, q.Reason = question.Outcome(chosen), void
		if chosen != "" && void == "" {
			q.Answer = &question.Answer{By: audit.Actor{Kind: "person", Name: "ann"}, Option: chosen, Via: "irc", At: asked}
		}
		return q
	}
	p := &strangers{
		waits: []question.Question{ask(1, question.Sender, "", "")},
		over:  []question.Question{ask(2, question.Channel, "allow", ""), ask(3, question.Sender, "deny", ""), ask(4, question.Sender, string(question.Void), "it is gone")},
	}
	c, _ := serve(t, &verbs{}, func(o *Options) { o.Places = p })
	for all, want := range map[bool]string{
		false: "qst-00000001 sender pending  🙋 somebody They said: “hi”",
		true: "qst-00000001 sender pending  🙋 somebody They said: “hi”; qst-00000002 channel approved ann Allow; " +
			"qst-00000003 sender refused ann Deny; qst-00000004 sender void  it is gone",
	} {
		rows, err := client.Call(t.Context(), c, api.ApprovalList, api.Waiting{Pending: !all})
		var got []string
		for _, r := range rows {
			if r.Kind != string(question.Sender) && r.Kind != string(question.Channel) {
				continue
			}
			who := ""
			if r.By != nil {
				who = r.By.Name
			}
			got = append(got, fmt.Sprintf("%s %s %s %s %s", r.ID, r.Kind, r.Decision, who, r.Reason))
		}
		if strings.Join(got, "; ") != want || err != nil {
			t.Errorf("all %t: %q, %v", all, got, err)
		}
	}

	q, err := client.Call(t.Context(), c, api.ApprovalShow, "qst-00000001")
	if err != nil || q.Admission == nil || len(q.Admission.Lines) != 2 || fmt.Sprint(q.Admission.Options) != "[{allow Allow false false} {create ➕ false true} {deny Deny true false}]" {
		t.Errorf("shown %+v, %v", q, err)
	}
	done, err := client.Call(t.Context(), c, api.ApprovalAnswer, api.Answer{Of: "qst-00000001", Text: "allow"})
	if err != nil || done.Told != "it is done" || len(p.told) != 1 || !strings.HasPrefix(p.told[0], "qst-00000001 allow ") {
		t.Errorf("answered %v, told %q, %v", p.told, done.Told, err)
	}
}
