package secret_test

import (
	"strings"
	"testing"

	"sallyport/internal/rule/secret"
)

// What is not trusted only adds: no allowlist, no disabled rule, no other words for a rule that is there, no mark.
func TestARepositoryTightensAndDoesNotLoosen(t *testing.T) {
	slackHook := "hooks.slack.com" + "/services/" + strings.Repeat("aB3", 15)
	for name, toml := range map[string]string{
		"everything allowed":  "[allowlist]\npaths=['.*']\nregexes=['.*']\n",
		"a list of today":     "[[allowlists]]\npaths=['.*']\n",
		"a rule disabled":     "[extend]\nuseDefault=true\ndisabledRules=['slack-webhook-url','aws-access-token','generic-api-key']\n",
		"a rule's own list":   "[[rules]]\nid='slack-webhook-url'\n[[rules.allowlists]]\nregexes=['aB3']\n",
		"other words for one": "[[rules]]\nid='slack-webhook-url'\nregex='''nothing_at_all'''\nkeywords=['nothing_at_all']\n",
		"less entropy":        "[[rules]]\nid='slack-webhook-url'\nentropy=9.9\n",
	} {
		s := scanner(t, secret.Config{Toml: []byte(toml + "[[rules]]\nid='ours'\nregex='''qqq_[0-9]{10}'''\n")})
		fs, err := s.ScanBlob(t.Context(), blob("f", slackHook+"\nqqq"+"_0123456789\n"))
		if got := rules(fs); err != nil || !strings.Contains(got, "f:1:slack-webhook-url") || !strings.Contains(got, "f:2:ours") || !s.Loose() {
			t.Errorf("%s: %s, loose %v, %v", name, got, s.Loose(), err)
		}
	}
	marked := "key = \"" + awsKey + "\" // " + "gitleaks:allow\n"
	listed := scanner(t, secret.Config{Ignore: []byte("a.go:aws-access-key:1\n")})
	for _, s := range []*secret.Scanner{scanner(t, secret.Config{}), listed} {
		if fs, err := s.ScanBlob(t.Context(), based(blob("a.go", marked), marked)); err != nil || len(fs) == 0 || s.Loose() != (s == listed) {
			t.Errorf("a mark or an entry counts untrusted: %s %v", rules(fs), err)
		}
	}
	own := scanner(t, secret.Config{Toml: []byte("[[rules]]\nid='ours'\nregex='''qqq_[0-9]{10}'''\n[[rules.allowlists]]\nregexes=['0$']\n")})
	fs, err := own.ScanBlob(t.Context(), blob("f", "qqq"+"_0123456789\nqqq"+"_9876543210\n"))
	if got := rules(fs); err != nil || own.Loose() || !strings.Contains(got, "f:1:ours") || strings.Contains(got, "f:2:") {
		t.Errorf("one rule more, with exceptions of its own: %s, loose %v, %v", got, own.Loose(), err)
	}

	pair := scanner(t, secret.Config{Toml: []byte("[[rules]]\nid='ours'\nregex='''qqq_[0-9]{10}'''\n[[rules.required]]\nid='other'\n[[rules]]\nid='other'\nregex='''rrr_[0-9]{10}'''\n")})
	fs, err = pair.ScanBlob(t.Context(), blob("f", "qqq"+"_0123456789\n"))
	if got := rules(fs); err != nil || !pair.Loose() || !strings.Contains(got, "f:1:ours") {
		t.Errorf("one that counts only beside another: %s, loose %v, %v", got, pair.Loose(), err)
	}
}
