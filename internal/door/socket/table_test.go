package socket

import (
	"slices"
	"testing"

	"sallyport/internal/door/api"
	"sallyport/internal/rule/right"
)

func TestEveryVerbOfTheTableIsServedAndNoOther(t *testing.T) {
	var served []string
	for _, v := range New(options(&verbs{})).verbs() {
		served = append(served, v.Pattern())
	}
	var known []string
	for _, v := range api.Verbs() {
		known = append(known, v.Pattern())
	}
	if len(known) < 40 {
		t.Fatalf("the table has %d verbs", len(known))
	}
	for _, p := range known {
		if !slices.Contains(served, p) {
			t.Errorf("%s stands in the table and is not served", p)
		}
	}
	for _, p := range served {
		if !slices.Contains(known, p) {
			t.Errorf("%s is served and stands in no table", p)
		}
	}
}

// TestEveryVerbSaysWhatItTakesToAskForIt holds that no verb is without a row in the table of rights, and no row without a verb.
func TestEveryVerbSaysWhatItTakesToAskForIt(t *testing.T) {
	var known []string
	for _, v := range api.Verbs() {
		known = append(known, v.Pattern())
		if _, ok := right.Needed(v.Pattern()); !ok {
			t.Errorf("%s has no row in rule/right/verb.go", v.Pattern())
		}
	}
	for _, v := range right.Verbs() {
		if !slices.Contains(known, v) {
			t.Errorf("%s has a row, and is no verb", v)
		}
	}
}
