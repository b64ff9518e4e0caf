package dispatch

import (
	"testing"

	"sallyport/internal/who/question"
)

// TestAQuestionAboutAStrangerOrAPlaceEndsByAdmissionAlone holds that no other path records an answer to it.
func TestAQuestionAboutAStrangerOrAPlaceEndsByAdmissionAlone(t *testing.T) {
	for _, kind := range []question.Kind{question.Sender, question.Channel} {
		if need, err := (decider{}).need(t.Context(), nil, question.Question{Kind: kind}); err == nil || len(need.May) > 0 {
			t.Errorf("%s: %+v may answer it otherwise, %v", kind, need, err)
		}
	}
}
